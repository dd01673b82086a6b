//! Full reports of a few recordings, as snapshots for review.

use crate::recorded::{read, summarize_with};
use delegator_transcript::{FoldOptions, Report};

#[test]
fn a_stored_report_is_read_as_it_was_written() {
    for (name, bytes) in crate::recorded::all() {
        let report = summarize_with(&bytes, FoldOptions::default());
        let stored = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&stored).unwrap(), report, "{name}");
    }
}

/// The report without the recent lines, which are in the recording.
fn report(name: &str) -> Report {
    let options = FoldOptions { workdir: Some("/home/dev/project".into()), ..FoldOptions::default() };
    let mut report = summarize_with(&read(name), options);
    report.recent_lines.clear();
    report
}

macro_rules! snapshot {
    ($($test:ident: $recording:literal;)*) => {$(
        #[test]
        fn $test() {
            insta::assert_json_snapshot!(report($recording));
        }
    )*};
}

snapshot! {
    commands_that_fail: "shell_fail.jsonl";
    files_added_updated_deleted: "patch_multi.jsonl";
    a_plan_interrupted: "sigint_plan.jsonl";
    calls_of_tools: "mcp.jsonl";
    sub_agents: "spawn_agent.jsonl";
    a_cut_stream: "drop_noterm.jsonl";
    warnings: "deprecated_cfg.jsonl";
    a_declined_command: "autoreview_escalate.jsonl";
    an_old_stream: "versions/0.40.0.plan.jsonl";
    a_session_file: "rollouts/0.166.0.sigint_cmd.rollout.jsonl";
    nothing_at_all: "bad_flag.jsonl";
}
