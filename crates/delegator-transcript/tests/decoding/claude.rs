//! Recordings of Claude Code 2.1.325 in the stored form: its lines as they came, ours as `{"sent":…}`. Of `system/init`
//! and the response to `initialize` only a few members are kept.

use crate::recorded::{normalize, normalized, read, summarize, summarize_with};
use delegator_transcript::{
    Dialect, ErrorCode, FoldOptions, ItemStatus, NormalizeOptions, Report, StreamOutcome, Usage,
};

fn recording(name: &str) -> Vec<u8> {
    read(&format!("claude/{name}.jsonl"))
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
    a_task_with_permissions: "task_ask";
    a_task_without_permissions: "task_deny";
    two_turns: "two_messages";
    an_interrupted_command: "interrupt_command";
    a_sub_agent: "sub_agent";
    a_tool_of_a_server: "mcp";
    an_error_that_was_retried: "err_overloaded";
    a_structured_answer: "schema";
}

#[test]
fn the_outcome_of_every_recording_is_that_of_its_last_turn() {
    let failed = |code| Some((true, code));
    let completed = Some((false, None));
    for (name, expected) in [
        ("task_bypass", completed),
        ("task_default", completed),
        ("steer", completed),
        ("replay", completed),
        ("bash_background", completed),
        ("sub_agent_background", completed),
        // The half message is not marked in any way.
        ("err_drop", completed),
        ("err_auth", failed(Some(ErrorCode::Unauthorized))),
        ("no_login", failed(Some(ErrorCode::Unauthorized))),
        ("bad_model", failed(Some(ErrorCode::ModelNotFound))),
        ("err_limit", failed(Some(ErrorCode::RateLimit))),
        ("err_overloaded", failed(Some(ErrorCode::Overloaded))),
        ("err_server", failed(Some(ErrorCode::Connection { http_status: Some(500) }))),
        ("max_tokens", failed(None)),
        ("refusal", failed(None)),
        ("max_turns", failed(None)),
        ("resume_unknown", failed(None)),
        ("sigterm_command", None),
        ("interrupt_permission", completed),
    ] {
        let outcome = match report(name).outcome {
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
    let report = report("task_bypass");
    assert_eq!((report.dialect, report.turns), (Some(Dialect::ClaudeStream), 1));
    assert_eq!(report.files.added, ["/home/dev/project/notes.txt"]);
    assert_eq!(report.files.modified, ["/home/dev/project/greet.py"]);
    let command = &report.commands.list[0];
    assert_eq!((command.exit_code, command.output_head.as_str()), (Some(0), "hello\nto-stderr"));
    assert_eq!(report.plan.iter().filter(|step| step.completed).count(), 2);
    let message = report.final_message.expect("a message").text;
    assert_eq!(message, "Fixed the greeting in greet.py, added notes.txt and ran it.");
    assert_eq!(report.counts.unknown + report.counts.mixed_dialect, 0);
}

#[test]
fn a_failed_command_has_its_exit_code_and_a_refused_one_is_declined() {
    let command = &report("shell_fail").commands.list[0];
    assert_eq!((command.exit_code, command.output_head.as_str()), (Some(3), "oops"));
    let withdrawn = report("interrupt_permission").commands;
    assert_eq!((withdrawn.finished, withdrawn.declined), (0, 1), "an interrupt withdrew the question");
    for name in ["task_default", "task_deny"] {
        let report = report(name);
        assert_eq!((report.commands.finished, report.commands.declined), (0, 1), "{name}");
        assert_eq!((report.commands.list[0].status, report.files.failed_patches), (ItemStatus::Declined, 2));
        assert_eq!((report.files.added.len(), report.files.modified.len()), (0, 0), "{name}");
    }
    let killed = &report("interrupt_command").commands.list[0];
    assert_eq!((killed.exit_code, killed.status), (None, ItemStatus::Failed));
    let running = &report("bash_background").commands.list[0];
    assert_eq!((running.exit_code, running.status), (None, ItemStatus::Completed));
}

#[test]
fn tokens_include_cached_ones_and_those_of_sub_agents() {
    let usage = |input, cached, written, output| Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        cache_write_input_tokens: Some(written),
        output_tokens: output,
        reasoning_output_tokens: Some(0),
    };
    let own = |name| report(name).usage.expect("usage").own;
    assert_eq!(own("task_bypass"), usage(910 + 280 + 35, 280, 35, 161));
    assert_eq!(own("two_messages"), usage(310 + 120 + 15, 120, 15, 61), "the sum of both turns");
    assert_eq!(own("sub_agent"), usage(310 + 120 + 15, 120, 15, 61), "one call of three is the sub-agent's");
    assert_eq!(own("interrupt_command").input_tokens, 290, "an interrupted turn counts");
}

#[test]
fn costs_and_tokens_of_a_resumed_session_are_its_own() {
    let before = report("resume_1");
    let (usage, cost) = (before.usage.expect("usage"), before.cost.expect("a cost"));
    assert_eq!((usage.own, cost.own), (usage.thread_total, 1726));
    let options = FoldOptions {
        usage_before: Some(usage.thread_total),
        cost_before: Some(cost.thread_total),
        ..FoldOptions::default()
    };
    let resumed = summarize_with(&recording("resume_2"), options);
    assert_eq!(resumed.thread_id, before.thread_id);
    let (usage, cost) = (resumed.usage.expect("usage"), resumed.cost.expect("a cost"));
    assert_eq!((usage.own.input_tokens, usage.thread_total.input_tokens), (145, 445));
    assert_eq!((cost.own, cost.thread_total), (833, 2559));
}

#[test]
fn without_the_share_of_a_turn_its_usage_and_the_difference_of_costs_count() {
    let result = |cost: f64| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"total_cost_usd":{cost},"usage":{{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":4}}}}"#
        )
    };
    let report = summarize(format!("{}\n{}\n", result(0.5), result(0.75)).as_bytes());
    let usage = report.usage.expect("usage").own;
    assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (642, 40, 8));
    assert_eq!(report.cost.expect("a cost").own, 750_000);
}

#[test]
fn a_refused_request_after_an_exceeded_limit_is_about_the_usage_limit() {
    let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794870000,"rateLimitType":"five_hour"},"session_id":"s","uuid":"u"}"#;
    let stream = String::from_utf8(recording("err_limit")).expect("UTF-8");
    let (before, after) = stream.split_once("\n{\"type\":\"assistant\"").expect("a message");
    let report = summarize(format!("{before}\n{limit}\n{{\"type\":\"assistant\"{after}").as_bytes());
    let StreamOutcome::Failed { code, .. } = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((code, report.limit_resets_at), (Some(ErrorCode::UsageLimit), Some(1_794_870_000)));
}

#[test]
fn a_stream_without_our_lines_is_recognised() {
    let stream = String::from_utf8(recording("task_ask")).expect("UTF-8");
    let bare: String = stream
        .lines()
        .filter(|line| !line.starts_with(r#"{"sent":"#))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(normalized(&bare), normalized(&stream));
    assert_eq!(summarize(bare.as_bytes()).dialect, Some(Dialect::ClaudeStream));
}

#[test]
fn steps_of_a_plan_are_renamed_and_deleted() {
    let call = |id: &str, name: &str, input: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"model":"m","content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]}}}}"#
        )
    };
    let result = |id: &str, details: &str| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}]}},"tool_use_result":{details}}}"#
        )
    };
    let lines = [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#.to_owned(),
        call("a", "TaskCreate", r#"{"subject":"one"}"#),
        call("b", "TaskCreate", r#"{"subject":"two"}"#),
        result("b", r#"{"task":{"id":"7"}}"#),
        result("a", r#"{"task":{"id":6}}"#),
        call("c", "TaskUpdate", r#"{"taskId":"7","status":"deleted"}"#),
        result("c", "{}"),
        call("d", "TaskUpdate", r#"{"taskId":"6","status":"in_progress","subject":"first"}"#),
        result("d", "{}"),
    ];
    let plan = summarize(lines.join("\n").as_bytes()).plan;
    let plan: Vec<_> = plan.iter().map(|step| (step.text.as_str(), step.completed)).collect();
    assert_eq!(plan, [("first", false)]);
}

#[test]
fn lines_of_other_programs_are_not_taken_for_claude_codes() {
    for line in [
        r#"{"type":"assistant","text":"hi"}"#,
        r#"{"type":"user","name":"x"}"#,
        r#"{"type":"result","ok":true}"#,
        r#"{"type":"system"}"#,
        r#"{"type":"control_request"}"#,
    ] {
        let report = summarize(line.as_bytes());
        assert_eq!((report.dialect, report.counts.unknown), (None, 1), "{line}");
    }
}
