//! The activity and progress of a running agent, line by line.

use crate::recorded::{all, is_exec_stream, read};
use delegator_transcript::{FoldOptions, Framer, LineSummarizer, Report, StreamOutcome, TurnState};

/// The report after every line.
fn reports(bytes: &[u8]) -> Vec<Report> {
    let options = FoldOptions { workdir: Some("/home/dev/project".into()), ..FoldOptions::default() };
    let mut summarizer = LineSummarizer::new(options);
    let mut reports = Vec::new();
    Framer::default().push(bytes, |line| {
        summarizer.push_line(&line);
        reports.push(summarizer.report());
    });
    reports
}

fn activities(name: &str) -> Vec<String> {
    let words = |report: Report| report.current_activity.unwrap_or_else(|| "-".to_owned());
    reports(&read(name)).into_iter().map(words).collect()
}

#[test]
fn activities_are_plain_words() {
    let waiting = "Waiting for the model";
    assert_eq!(activities("shell_fail.jsonl")[2..4], ["Running echo oops >&2; exit 3", waiting]);
    assert_eq!(activities("patch_multi.jsonl")[2], "Editing dir/a.txt and 2 more");
    assert_eq!(activities("plain.jsonl"), ["Starting", waiting, "Thinking", waiting, "-"]);
    assert_eq!(activities("mcp.jsonl")[2..4], ["Calling lab.echo", waiting]);
    assert_eq!(activities("web.jsonl")[2], "Searching the web");
    assert_eq!(activities("spawn_agent.jsonl")[2], "Starting a sub-agent");
    assert_eq!(activities("spawn_agent.jsonl")[4], "Waiting for sub-agents");
    assert_eq!(activities("err500_then_ok.jsonl")[2], "Reconnecting to the model (1/2)");
    assert_eq!(activities("conn_refused.jsonl")[2], "Reconnecting to the model (waiting for network)");
    assert_eq!(activities("err400.jsonl")[2..], ["Retrying after an error", "-"]);
    assert_eq!(activities("sigint_plan.jsonl")[2], waiting, "a plan is not an activity");
}

#[test]
fn a_search_with_a_query_and_a_call_of_the_agent_itself_are_named() {
    let stream = "{\"type\":\"turn.started\"}\n{\"type\":\"item.started\",\"item\":{\"id\":\"a\",\"type\":\"web_search\",\"query\":\"rust mcp\"}}\n{\"type\":\"item.started\",\"item\":{\"id\":\"b\",\"type\":\"web_search\",\"query\":\"https://example.com/\",\"action\":{\"type\":\"open_page\"}}}\n{\"type\":\"item.started\",\"item\":{\"id\":\"c\",\"type\":\"mcp_tool_call\",\"server\":\"agent\",\"tool\":\"write_file\"}}\n{\"type\":\"item.started\",\"item\":{\"id\":\"d\",\"type\":\"command_execution\",\"command\":\"bash -lc 'cat <<EOF\\na\\u001b[31m\\nEOF'\"}}\n{\"type\":\"item.started\",\"item\":{\"id\":\"e\",\"type\":\"hologram\"}}\n";
    let words: Vec<_> =
        reports(stream.as_bytes()).into_iter().skip(1).filter_map(|r| r.current_activity).collect();
    let expected = [
        "Searching the web for rust mcp",
        "Reading https://example.com/",
        "Calling write_file",
        "Running cat <<EOF…",
        "Working (hologram)",
    ];
    assert_eq!(words, expected);
}

#[test]
fn progress_never_goes_down_within_a_turn_and_is_100_only_at_its_end() {
    for (name, bytes) in all() {
        let (mut turn, mut highest) = (0, None);
        for report in reports(&bytes) {
            let Some(progress) = report.progress else { continue };
            if report.turns != turn {
                (turn, highest) = (report.turns, None);
            }
            assert!(progress.percent >= highest, "{name}");
            highest = progress.percent;
            let is_completed = report.turn == delegator_transcript::TurnState::Completed;
            assert_eq!(progress.percent == Some(100), is_completed, "{name}");
            let steps = progress.steps;
            assert!(steps.is_none_or(|steps| steps.completed <= steps.total), "{name}");
            assert!(is_completed || progress.percent.is_some() == steps.is_some(), "{name}");
        }
    }
}

#[test]
fn retries_are_not_activity_and_items_are() {
    let mut summarizer = LineSummarizer::default();
    let mut active = Vec::new();
    Framer::default().push(&read("err500_then_ok.jsonl"), |line| {
        let info = summarizer.push_line(&line);
        assert!(info.understood);
        active.push(info.is_activity);
    });
    assert_eq!(active, [true, true, false, true, true]);
    assert!(summarizer.thread_id().is_some());
}

#[test]
fn folding_stored_lines_again_gives_the_same_report() {
    for (name, bytes) in all().into_iter().filter(|(name, _)| !is_exec_stream(name)).take(10) {
        assert_eq!(reports(&bytes), reports(&bytes), "{name}");
    }
}

#[test]
fn a_running_stream_differs_from_an_interrupted_one() {
    let mut summarizer = LineSummarizer::default();
    Framer::default().push(&read("sigint_cmd.jsonl"), |line| {
        summarizer.push_line(&line);
    });
    let running = summarizer.report();
    assert_eq!(running.turn, TurnState::Running);
    assert!(running.current_activity.is_some_and(|words| words.starts_with("Running ")));
    summarizer.finish();
    let ended = summarizer.report();
    assert_eq!((ended.turn, ended.outcome), (TurnState::Interrupted, StreamOutcome::Interrupted));
    assert_eq!(ended.current_activity, None);
}

#[test]
fn control_sequences_are_removed_from_activities() {
    let stream = "{\"type\":\"turn.started\"}\n{\"type\":\"item.started\",\"item\":{\"id\":\"a\",\"type\":\"command_execution\",\"command\":\"\\u001b[31mecho\\u001b[0m hi\"}}\n";
    let last = reports(stream.as_bytes()).pop().and_then(|report| report.current_activity);
    assert_eq!(last.as_deref(), Some("Running echo hi"));
}

#[test]
fn calls_of_unknown_effect_count_before_they_end() {
    let lines = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"1","type":"mcp_tool_call","server":"s","tool":"t","status":"in_progress"}}
{"type":"item.started","item":{"id":"2","type":"something_new"}}
{"type":"item.started","item":{"id":"3","type":"file_change","status":"in_progress","changes":[{"path":"a","kind":"update"}]}}
{"type":"item.completed","item":{"id":"2","type":"something_new"}}
{"type":"item.completed","item":{"id":"4","type":"something_new"}}
{"type":"item.completed","item":{"id":"5","type":"file_change","status":"failed","changes":[{"path":"b","kind":"update"}]}}
"#;
    let report = reports(lines.as_bytes()).pop().unwrap();
    assert_eq!((report.mcp_calls.unfinished, report.unknown_items), (1, 2));
    assert_eq!(
        (report.files.modified, report.files.attempted),
        (vec![], vec!["a".to_owned(), "b".to_owned()])
    );
}
