//! Streams with lines of another dialect: these must not change the turns and outcome of the stream.

use crate::recorded::{normalize, summarize};
use delegator_transcript::{Dialect, Event, NormalizeOptions, StreamOutcome, TurnState, decode_text};

const TURN: [&str; 4] = [
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hi"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}"#,
];

/// At least one line of every other dialect, including the start and end of turns.
const STRAYS: [&str; 10] = [
    r#"{"type":"agent_message","content":"stray"}"#,
    r#"{"type":"tool_call","name":"n","call_id":"c"}"#,
    r#"{"type":"idle"}"#,
    r#"{"type":"done"}"#,
    r#"{"id":"0","msg":{"type":"task_started"}}"#,
    r#"{"id":"0","msg":{"type":"task_complete"}}"#,
    r#"{"id":"0","msg":{"type":"turn_aborted"}}"#,
    r#"{"type":"event_msg","payload":{"type":"user_message","message":"m"}}"#,
    r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#,
    r#"{"prompt":"p"}"#,
];

#[test]
fn a_stray_line_anywhere_changes_neither_turns_nor_verdict() {
    for stray in STRAYS {
        for at in 1..=TURN.len() {
            let mut lines = TURN.to_vec();
            lines.insert(at, stray);
            let stream = lines.join("\n");
            let report = summarize(stream.as_bytes());
            let actual = (report.dialect, report.turns, report.turn, report.outcome);
            let expected = (Some(Dialect::Thread), 1, TurnState::Completed, StreamOutcome::Completed);
            assert_eq!(actual, expected, "{stray} at {at}");
            assert_eq!(report.counts.mixed_dialect, 1);
            let (out, _) = normalize(stream.as_bytes(), NormalizeOptions::default());
            assert_eq!(out.matches("turn.").count(), 2, "{out}");
        }
    }
}

#[test]
fn an_ambiguous_first_line_does_not_decide_the_dialect() {
    for lead in [r#"{"type":"idle"}"#, r#"{"type":"done"}"#, r#"{"prompt":"p"}"#] {
        let stream = format!("{lead}\n{}", TURN.join("\n"));
        let report = summarize(stream.as_bytes());
        assert_eq!(
            (report.outcome, report.dialect),
            (StreamOutcome::Completed, Some(Dialect::Thread)),
            "{lead}"
        );
        assert_eq!((report.turns, report.counts.mixed_dialect), (1, 1));
        let cut = format!("{lead}\n{}", TURN[..3].join("\n"));
        assert_eq!(summarize(cut.as_bytes()).outcome, StreamOutcome::Interrupted, "{lead}");
    }
}

#[test]
fn stray_codex_exec_events_do_not_decide_other_streams() {
    let task =
        [r#"{"id":"0","msg":{"type":"task_started"}}"#, r#"{"id":"0","msg":{"type":"task_complete"}}"#];
    let idle = [r#"{"type":"agent_message","content":"m"}"#, r#"{"type":"idle"}"#];
    let failed = r#"{"type":"turn.failed","error":{"message":"e"}}"#;
    for own in [task, idle] {
        for stray in [TURN[1], TURN[3], failed] {
            for lines in [[own[0], stray, own[1]], [own[0], own[1], stray]] {
                let report = summarize(lines.join("\n").as_bytes());
                let actual = (report.turns, report.turn);
                assert_eq!(actual, (1, TurnState::Completed), "{lines:?}");
                // Any output clears the idle flag, and with it the end of an idle-dialect stream.
                let is_over = own == task || lines[2] == own[1];
                assert_eq!(report.outcome == StreamOutcome::Completed, is_over, "{lines:?}");
            }
        }
    }
}

#[test]
fn an_event_with_a_payload_beside_it_is_that_event() {
    let payload = r#""payload":{"type":"x","a":1},"msg":{"type":"task_started"}"#;
    for line in TURN {
        let with = line.replacen('{', &format!("{{{payload},"), 1);
        assert!(matches!(decode_text(&with), Event::Thread(_)), "{with}");
    }
    for kind in ["agent_message", "tool_call", "tool_result", "file_change", "idle", "done"] {
        let with = format!(r#"{{"type":"{kind}","timestamp":"t",{payload}}}"#);
        assert!(matches!(decode_text(&with), Event::Idle(_)), "{with}");
    }
}

#[test]
fn lines_of_session_files_need_no_time() {
    for kind in ["session_meta", "turn_context", "event_msg", "response_item", "compacted"] {
        let line = format!(r#"{{"type":"{kind}","payload":{{"type":"agent_message","message":"m"}}}}"#);
        let event = decode_text(&line);
        assert!(matches!(event, Event::Rollout(_)) && event.is_understood(), "{line}");
    }
    let report = summarize(br#"{"type":"event_msg","payload":{"type":"agent_message","message":"m"}}"#);
    assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("m"));
}
