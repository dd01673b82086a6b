//! Recordings of Codex's app server 0.166 in the stored form: its lines as they came, ours as `{"sent":…}`. Notifications that we
//! opt out of are left out, and of threads only a few members are kept.

use crate::recorded::{normalize, read, summarize, summarize_with};
use delegator_transcript::{
    Dialect, ErrorCode, FoldOptions, ItemStatus, NormalizeOptions, Report, StreamOutcome, TurnState, Usage,
};

fn recording(name: &str) -> Vec<u8> {
    read(&format!("app_server/{name}.jsonl"))
}

fn report(name: &str) -> Report {
    summarize(&recording(name))
}

macro_rules! snapshot {
    ($($test:ident: $recording:literal;)*) => {$(
        #[test]
        fn $test() {
            let (events, _) = normalize(&recording($recording), NormalizeOptions::default());
            insta::assert_snapshot!(events);
        }
    )*};
}

snapshot! {
    a_task: "task";
    an_approval_that_was_refused: "task_cancel";
    a_steered_turn: "steer";
    an_interrupted_command: "interrupt_command";
    a_tool_of_a_server: "mcp";
    an_error_that_was_retried: "err_auth";
}

#[test]
fn the_outcome_of_every_recording_is_that_of_its_last_turn() {
    let failed = |code| Some((true, code));
    let completed = Some((false, None));
    for (name, expected) in [
        ("task", completed),
        ("task_approve", completed),
        ("shell_fail", completed),
        ("steer", completed),
        ("background", completed),
        ("interrupt_command", completed),
        ("unknown_tool", completed),
        ("task_cancel", None),
        ("sigterm_command", None),
        ("err_auth", failed(Some(ErrorCode::Connection { http_status: Some(401) }))),
        ("err_badmodel", failed(Some(ErrorCode::ModelNotFound))),
        ("err_limit", failed(Some(ErrorCode::UsageLimit))),
        ("err_overloaded", failed(Some(ErrorCode::Overloaded))),
        // These have no code that decides: what they are about is in the message.
        ("err_drop", failed(None)),
        ("err_server", failed(None)),
        ("max_tokens", failed(None)),
    ] {
        let report = report(name);
        assert_eq!((report.dialect, report.counts.unknown), (Some(Dialect::AppServer), 0), "{name}");
        let outcome = match report.outcome {
            StreamOutcome::Completed => completed,
            StreamOutcome::Failed { message, code } => {
                assert!(!message.is_empty(), "{name}");
                failed(code)
            }
            StreamOutcome::Interrupted => None,
            StreamOutcome::NotAnnounced => panic!("{name}"),
        };
        assert_eq!(outcome, expected, "{name}");
    }
}

#[test]
fn a_task_has_the_report_of_any_agent() {
    let report = report("task");
    assert_eq!(report.files.added, ["/home/dev/project/notes.txt"]);
    assert_eq!(report.files.modified, ["/home/dev/project/greet.py"]);
    let command = report.commands.list.last().expect("a command");
    assert_eq!(
        (command.command.as_str(), command.exit_code),
        ("python3 greet.py; echo to-stderr >&2", Some(0))
    );
    assert_eq!(report.plan.iter().filter(|step| step.completed).count(), 2);
    let message = report.final_message.expect("a message").text;
    assert_eq!(message, "Fixed the greeting in greet.py, added notes.txt and ran it.");
}

#[test]
fn a_command_that_was_interrupted_stays_open_and_one_that_was_cleaned_up_failed() {
    let interrupted = report("interrupt_command");
    assert_eq!((interrupted.turns, interrupted.turn), (2, TurnState::Completed));
    assert_eq!(interrupted.open_items.len(), 1);
    let cleaned = &report("background").commands.list[0];
    assert_eq!((cleaned.status, cleaned.exit_code), (ItemStatus::Failed, Some(-1)));
}

#[test]
fn usage_of_a_resumed_thread_is_the_difference_to_what_it_reports_first() {
    let before = report("resume_1").usage.expect("usage");
    assert_eq!(before.own, before.thread_total);
    let resumed = report("resume_2").usage.expect("usage");
    assert_eq!(
        resumed.thread_total.input_tokens,
        before.thread_total.input_tokens + resumed.own.input_tokens
    );
    assert_eq!((resumed.own.input_tokens, resumed.own.output_tokens), (100, 20));
    // The stream knows better than the caller.
    let options = FoldOptions { usage_before: Some(Usage::default()), ..FoldOptions::default() };
    assert_eq!(summarize_with(&recording("resume_2"), options).usage.expect("usage").own, resumed.own);
}

#[test]
fn a_refused_request_fails_the_run_only_if_no_work_follows_without_it() {
    let refused = |method: &str| {
        let lines = format!(
            "{{\"sent\":{{\"id\":1,\"method\":\"{method}\",\"params\":{{}}}}}}\n\
             {{\"error\":{{\"code\":-32600,\"message\":\"no rollout found for thread id x\"}},\"id\":1}}\n"
        );
        summarize(lines.as_bytes()).outcome
    };
    let message = "no rollout found for thread id x".to_owned();
    let failed = StreamOutcome::Failed { message, code: None };
    for method in ["initialize", "thread/start", "thread/resume", "turn/start"] {
        assert_eq!(refused(method), failed, "{method}");
    }
    assert_eq!(refused("turn/steer"), StreamOutcome::Interrupted);
}

#[test]
fn threads_of_sub_agents_are_left_out() {
    let lines = [
        r#"{"method":"thread/started","params":{"thread":{"id":"t"}}}"#,
        r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"1"}}}"#,
        r#"{"method":"thread/started","params":{"thread":{"id":"sub"}}}"#,
        r#"{"method":"turn/started","params":{"threadId":"sub","turn":{"id":"2"}}}"#,
        r#"{"method":"item/completed","params":{"threadId":"sub","item":{"type":"agentMessage","id":"m","text":"sub"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"sub","turn":{"id":"2","status":"failed"}}}"#,
        r#"{"method":"item/completed","params":{"threadId":"t","item":{"type":"brandNew","id":"n"}}}"#,
        r#"{"method":"brand/new","params":{"threadId":"t"}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"1","status":"completed"}}}"#,
    ];
    let report = summarize(lines.join("\n").as_bytes());
    assert_eq!((report.turns, report.outcome), (1, StreamOutcome::Completed));
    assert_eq!((report.final_message, report.unknown_items), (None, 1));
    assert_eq!(report.counts.items.get("brand_new"), Some(&1));
}

#[test]
fn a_limit_that_is_exceeded_has_the_time_of_its_reset() {
    let limits = |primary: u32, secondary: u32| {
        format!(
            r#"{{"method":"account/rateLimits/updated","params":{{"rateLimits":{{"primary":{{"usedPercent":{primary},"resetsAt":10}},"secondary":{{"usedPercent":{secondary},"resetsAt":20}}}}}}}}"#
        )
    };
    let resets_at = |primary, secondary| summarize(limits(primary, secondary).as_bytes()).limit_resets_at;
    assert_eq!([resets_at(43, 7), resets_at(100, 7), resets_at(100, 101)], [None, Some(10), Some(20)],);
    assert_eq!(report("task").limit_resets_at, None);
}
