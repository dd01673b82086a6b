//! What people read in the log of a task: durations of commands and the lines of edits, where an agent reports them.

use crate::recorded::read;
use delegator_transcript::{Effect, FoldOptions, Framer, Headlines, LineLimits, LineSummarizer, LogDetail};

fn log(recording: &str, detail: LogDetail) -> Vec<String> {
    log_of(&read(recording), detail)
}

fn log_of(stream: &[u8], detail: LogDetail) -> Vec<String> {
    let (mut texts, mut headlines) = (Vec::new(), Headlines::default());
    let mut lines = LineSummarizer::new(FoldOptions::default());
    Framer::new(LineLimits::STANDARD).push(stream, |line| {
        lines.push_line_with(&line, |effect| {
            if let Effect::Emit(event) = effect {
                texts.extend(headlines.log_text(event, Some("/home/dev/project"), detail));
            }
        });
    });
    texts
}

#[test]
fn edits_have_their_lines_if_the_agent_writes_them() {
    let edit = "Editing greet.py: done\n-print(\"helo\")\n+print(\"hello\")";
    let new = "Editing notes.txt: done\n+fixed a typo";
    for recording in ["claude/task_bypass.jsonl", "acp/claude-acp.task.jsonl"] {
        let log = log(recording, LogDetail::default());
        assert!([edit, new].iter().all(|text| log.iter().any(|line| line == text)), "{recording}: {log:#?}");
    }
    let log_of_codex = log("app_server/task.jsonl", LogDetail::default());
    let edit = edit.replace("done\n", "done\n@@ -1 +1 @@\n");
    assert!(log_of_codex.contains(&edit) && log_of_codex.iter().any(|line| line == new), "{log_of_codex:#?}");
    // Codex exec events have only paths.
    let exec = log("patch.jsonl", LogDetail::default());
    assert!(exec.iter().any(|line| line.starts_with("Editing ") && !line.contains('\n')), "{exec:#?}");
}

#[test]
fn an_edit_is_shortened_and_several_files_have_their_paths() {
    let long = "+line\\n".repeat(40);
    let changes = format!(
        r#"[{{"path":"/home/dev/project/a","kind":"update","diff":"{long}"}},{{"path":"b","kind":"delete"}}]"#
    );
    let item = format!(r#"{{"id":"item_1","type":"file_change","changes":{changes},"status":"completed"}}"#);
    let stream = format!("{{\"type\":\"item.completed\",\"item\":{item}}}\n");
    let short = log_of(stream.as_bytes(), LogDetail::default()).join("\n");
    assert!(short.starts_with("Editing a and 1 more: done\nupdate a\n+line\n"), "{short}");
    assert!(
        short.contains("[25 lines omitted; logs --full shows them]") && short.ends_with("\ndelete b"),
        "{short}"
    );
    let full = log_of(stream.as_bytes(), LogDetail { is_full: true, is_live: false }).join("\n");
    assert_eq!(full.matches("+line").count(), 40, "{full}");
}

#[test]
fn commands_have_their_duration_if_the_agent_reports_when_they_ran() {
    let durations = |recording| -> Vec<String> {
        let log = log(recording, LogDetail::default());
        let first = log.iter().filter_map(|text| text.lines().next());
        let commands = first.filter(|line| line.starts_with("Running ") && line.contains(": exit "));
        commands.map(|line| line.rsplit_once(": exit ").unwrap().1.to_owned()).collect()
    };
    assert_eq!(durations("app_server/steer.jsonl")[0], "0 (1s)");
    assert_eq!(durations("claude/task_bypass.jsonl")[0], "0 (<1s)");
    // The time in which the command waits for permission is not part of its duration.
    assert_eq!(durations("claude/task_ask.jsonl")[0], "0");
    assert_eq!(durations("shell_ok.jsonl")[0], "0");

    let claude = |at: &str, role: &str, block: &str| {
        format!(
            "{{\"type\":\"{role}\",\"session_id\":\"s\",\"timestamp\":\"2026-11-16T22:{at}Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":[{block}]}}}}\n"
        )
    };
    let call = r#"{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}"#;
    let result = r#"{"type":"tool_result","tool_use_id":"t","content":"ok"}"#;
    let stream = claude("10:00.500", "assistant", call) + &claude("11:05.600", "user", result);
    let log = log_of(stream.as_bytes(), LogDetail::default());
    assert_eq!(log.last().unwrap(), "Running make: exit 0 (1m 05s)\nok", "{log:?}");
}
