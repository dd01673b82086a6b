//! Recordings of ten agents that speak the Agent Client Protocol, each with a scripted model: what they become as Codex
//! exec events, and how their turns ended.

use std::fmt::Write;

use crate::recorded::{normalize, read, summarize, summarize_with, transcripts};
use delegator_transcript::{
    Dialect, ErrorCode, FoldOptions, NormalizeOptions, StreamOutcome, TurnState, Usage, wire,
};
use serde_json::Value;

/// Every recording, with its name.
pub(crate) fn recordings() -> Vec<(String, String)> {
    let folder = transcripts().join("acp");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| {
            let path = entry.expect("readable").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("readable"))
        })
        .collect();
    found.sort();
    assert!(found.len() > 50, "the recordings are missing: {}", found.len());
    found
}

fn recording(name: &str) -> Vec<u8> {
    read(&format!("acp/{name}.jsonl"))
}

/// The normalised lines, and what only the report has.
fn describe(stream: &str) -> String {
    let (mut text, _) = normalize(stream.as_bytes(), NormalizeOptions::default());
    let report = summarize(stream.as_bytes());
    let outcome = serde_json::to_string(&report.outcome).expect("JSON");
    writeln!(text, "outcome {outcome}").expect("text");
    if let Some(usage) = report.usage {
        writeln!(text, "usage {}", serde_json::to_string(&usage.own).expect("JSON")).expect("text");
    }
    if let Some(cost) = report.cost {
        writeln!(text, "cost {}", serde_json::to_string(&cost).expect("JSON")).expect("text");
    }
    text
}

#[test]
fn every_recording_becomes_the_events_that_were_reviewed() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("snapshots/acp");
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, stream) in recordings() {
            insta::assert_snapshot!(name.clone(), describe(&stream));
        }
    });
}

#[test]
fn every_line_is_a_known_message_of_the_protocol() {
    for (name, stream) in recordings() {
        let report = summarize(stream.as_bytes());
        let counts = &report.counts;
        assert_eq!(report.dialect, Some(Dialect::Acp), "{name}");
        assert_eq!((counts.unknown, counts.not_json, counts.mixed_dialect), (0, 0, 0), "{name}");
        assert_eq!(counts.events, stream.lines().count() as u64, "{name}");
        assert_eq!(report.oddities, [], "{name}");
    }
}

#[test]
fn every_item_ends_once_and_every_turn_that_was_not_cancelled_ends() {
    for (name, stream) in recordings() {
        let (out, _) = normalize(stream.as_bytes(), NormalizeOptions::default());
        let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let ids = |kind: &str| -> Vec<String> {
            let items = events.iter().filter(|event| event["type"] == kind);
            items.map(|event| event["item"]["id"].as_str().expect("an id").to_owned()).collect()
        };
        let (started, mut completed) = (ids("item.started"), ids("item.completed"));
        let is_cancelled = stream.contains(r#""stopReason":"cancelled""#);
        assert!(is_cancelled || started.iter().all(|id| completed.contains(id)), "{name}: open items");
        completed.sort();
        completed.dedup();
        assert_eq!(completed.len(), ids("item.completed").len(), "{name}: an item ended twice");
    }
}

#[test]
fn end_turn_is_a_failure_if_the_agent_shows_one_of_its_signs() {
    let unauthorized = Some(ErrorCode::Unauthorized);
    let server_error = Some(ErrorCode::Connection { http_status: Some(500) });
    for (name, code, part) in [
        ("claude-acp.err_limit", Some(ErrorCode::UsageLimit), "usage limit"),
        ("claude-acp.no_login", unauthorized, "Authentication required"),
        ("codex-acp.err_server", None, "experiencing high demand"),
        ("codex-acp.err_limit", Some(ErrorCode::UsageLimit), "hit your usage limit"),
        ("codex-acp.no_login", unauthorized, "Ways to sign in to this agent: API Key"),
        ("codex-acp-zed.err_limit", Some(ErrorCode::UsageLimit), "hit your usage limit"),
        ("gemini.err_auth", unauthorized, "API key not valid"),
        ("gemini.refusal", None, "without a message"),
        ("gemini.no_login", unauthorized, "Ways to sign in to this agent: Log in with Google"),
        ("opencode.refusal", None, "the agent stopped: refusal"),
        ("qwen.err_auth", unauthorized, "401 Incorrect API key provided"),
        ("qwen.no_login", unauthorized, "Ways to sign in to this agent: Use OpenAI API key"),
        ("copilot.err_server", server_error, "Failed to get response from the AI model"),
        ("copilot.no_login", unauthorized, "Ways to sign in to this agent: Log in with Copilot CLI"),
        ("goose.err_auth", unauthorized, "provided. Ways to sign in to this agent: Configure Provider"),
        (
            "goose.no_login",
            unauthorized,
            "Missing provider. Ways to sign in to this agent: Configure Provider",
        ),
        ("kimi.err_auth", unauthorized, "401 Incorrect API key provided"),
        ("kimi.err_badmodel", None, "without a message and without a tool call"),
        ("kimi.no_login", unauthorized, "Ways to sign in to this agent: Login with Kimi account"),
        ("cline.err_auth", unauthorized, "provided. Ways to sign in to this agent: Sign in with Cline"),
        ("cline.no_login", unauthorized, "Ways to sign in to this agent: Sign in with Cline"),
    ] {
        let report = summarize(&recording(name));
        let StreamOutcome::Failed { message, code: found } = &report.outcome else {
            panic!("{name}: {:?}", report.outcome)
        };
        assert_eq!((*found, report.turn), (code, TurnState::Failed), "{name}");
        assert!(message.contains(part), "{name}: {message}");
    }
}

#[test]
fn a_stream_of_agent_lines_alone_gives_the_same_events() {
    for name in ["claude-acp.task", "gemini.task", "goose.task", "gemini.err_auth", "copilot.err_server"] {
        let both = String::from_utf8(recording(name)).expect("UTF-8");
        let is_agents = |line: &&str| !line.starts_with(r#"{"sent":"#);
        let alone: String = both.lines().filter(is_agents).map(|line| format!("{line}\n")).collect();
        assert_ne!(alone, both);
        assert_eq!(describe(&alone), describe(&both), "{name}");
    }
}

#[test]
fn usage_of_turns_adds_up_and_belongs_to_the_run() {
    // Two turns of 210 and 100 input tokens, in two processes of one stream.
    let report = summarize(&recording("goose.load"));
    assert_eq!(
        report.usage.map(|usage| usage.own.input_tokens),
        Some(110 + 100),
        "goose counts the last call"
    );
    // Copilot counts the session: 100 tokens when the first turn was cancelled, 200 after the second.
    let report = summarize(&recording("copilot.cancel_command"));
    assert_eq!(report.usage.map(|usage| usage.own.input_tokens), Some(200));
    let before = Usage { input_tokens: 1000, ..Usage::default() };
    let options = FoldOptions { usage_before: Some(before), ..FoldOptions::default() };
    let usage = summarize_with(&recording("qwen.task"), options).usage.expect("usage");
    assert_eq!((usage.own.input_tokens, usage.thread_total.input_tokens), (910, 1910));
}

#[test]
fn cost_of_a_resumed_session_is_the_difference() {
    let options = FoldOptions { cost_before: Some(1029), ..FoldOptions::default() };
    let cost = summarize_with(&recording("opencode.load"), options).cost.expect("a cost");
    assert_eq!((cost.thread_total, cost.own), (1521, 492));
    assert_eq!(summarize(&recording("goose.task")).cost, None);
}

fn sent(message: &str) -> String {
    let line = wire::sent_line(message.as_bytes());
    format!("{}\n", String::from_utf8(line).expect("UTF-8"))
}

/// A session with an open turn.
fn begun() -> String {
    [
        sent(r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}"#),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"sessionId\":\"s\"}}\n".to_owned(),
        sent(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#),
    ]
    .concat()
}

fn update(update: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{update}}}}}\n"
    )
}

const END: &str = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"stopReason\":\"end_turn\"}}\n";

#[test]
fn an_over_long_line_still_ends_its_call() {
    let call = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"execute","status":"completed","rawInput":{"command":"cargo test"},"rawOutput":{"exit_code":1,"output":"#;
    let stream =
        [begun(), update(&format!("{call}\"first {}last\"}}}}", "x".repeat(9 << 20))), END.to_owned()]
            .concat();
    let report = summarize(stream.as_bytes());
    let command = &report.commands.list[0];
    assert_eq!((command.command.as_str(), command.exit_code), ("cargo test", Some(1)));
    assert_eq!((report.outcome, report.counts.over_long), (StreamOutcome::Completed, 1));
}

#[test]
fn a_call_whose_output_reports_a_failure_has_failed() {
    let ended = |output: &str| {
        let call = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"edit","status":"completed","rawOutput":"#;
        let stream = [begun(), update(&format!("{call}{output}}}")), END.to_owned()].concat();
        let (out, _) = normalize(stream.as_bytes(), NormalizeOptions::default());
        out.contains(r#""type":"file_change","changes":[],"status":"completed"}"#)
    };
    assert!(ended(r#"{"result":"done","success":true}"#) && ended(r#"[{"success":true}]"#));
    assert!(
        !ended(r#"{"result":"","error":"EACCES: permission denied","success":false}"#),
        "as Cline writes it"
    );
    assert!(!ended(r#"[{"success":true},{"success":false}]"#));
}

#[test]
fn an_unfinished_message_is_emitted_at_the_end_of_the_stream() {
    let chunk = |text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    };
    let report = summarize([begun(), chunk("half "), chunk("a message")].concat().as_bytes());
    assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("half a message"));
    assert_eq!(report.outcome, StreamOutcome::Interrupted);
    let long = [begun(), chunk(&"x".repeat(1 << 20)), chunk("yy"), END.to_owned()].concat();
    let message = summarize(long.as_bytes()).final_message.expect("a message");
    assert_eq!((message.truncated, message.bytes), (true, (1 << 20) + 2));
}

#[test]
fn messages_of_another_stream_change_nothing() {
    let thread = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    let stream = [thread.to_owned(), begun(), END.to_owned()].concat();
    let report = summarize(stream.as_bytes());
    assert_eq!((report.dialect, report.turn), (Some(Dialect::Thread), TurnState::Interrupted));
    assert_eq!((report.turns, report.thread_id.as_deref()), (1, Some("t")));
}

#[test]
fn a_call_that_was_dropped_because_too_many_are_open_starts_again_when_it_ends() {
    let call = |number: u32, status: &str| {
        let input = "x".repeat(100);
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c{number}","kind":"execute","status":"{status}","rawInput":{{"command":"{input}"}}}}"#
        ))
    };
    let open: String = (0..1100).map(|number| call(number, "in_progress")).collect();
    let stream = [begun(), open, call(0, "completed"), END.to_owned()].concat();
    let report = summarize(stream.as_bytes());
    assert_eq!(report.outcome, StreamOutcome::Completed);
    let ended = report.commands.finished;
    assert!((2..1100).contains(&ended), "{ended}: the calls that are still known end with the turn");
}

#[test]
fn failures_are_recognised_whatever_the_agent_calls_itself() {
    let mut failed = 0;
    for (name, stream) in recordings() {
        let outcome = summarize(stream.as_bytes()).outcome;
        if !matches!(outcome, StreamOutcome::Failed { .. }) {
            continue;
        }
        failed += 1;
        let renamed: String = stream
            .lines()
            .map(|line| {
                let mut message: Value = serde_json::from_str(line).expect("JSON");
                if message["result"]["protocolVersion"].is_number() {
                    message["result"]["agentInfo"] = serde_json::json!({"name": "another", "version": "1"});
                }
                format!("{message}\n")
            })
            .collect();
        assert_eq!(summarize(renamed.as_bytes()).outcome, outcome, "{name}");
    }
    assert!(failed > 15, "{failed}");
}

/// A permission request that is the first message about a command, as Gemini CLI sends it.
fn unannounced_request(call_id: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session/request_permission\",\"params\":{{\"sessionId\":\"s\",\"options\":[{{\"optionId\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"}},{{\"optionId\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_once\"}}],\"toolCall\":{{\"toolCallId\":\"{call_id}\",\"status\":\"pending\",\"title\":\"make all\",\"kind\":\"execute\"}}}}}}\n"
    )
}

const CANCELLED: &str = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"stopReason\":\"cancelled\"}}\n";

#[test]
fn a_command_that_only_the_permission_request_names_runs_once_it_is_allowed() {
    let allowed =
        sent(r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}"#);
    let asked = [begun(), unannounced_request("c")].concat();
    assert_eq!(summarize(asked.as_bytes()).open_items, [], "it is not allowed yet");
    let running = [asked, allowed].concat();
    let open = summarize(running.as_bytes()).open_items;
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0].activity, "Running make all");
    let cancel = sent(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#);
    let report = summarize([running, cancel, CANCELLED.to_owned()].concat().as_bytes());
    assert_eq!(
        (report.open_items.len(), report.turn),
        (1, TurnState::Interrupted),
        "it was never reported to end"
    );
}

#[test]
fn a_question_that_a_cancellation_withdraws_is_no_command_that_ran() {
    let cancel = sent(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#);
    let withdrawn = sent(r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}"#);
    let announced = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","status":"pending","title":"make all","rawInput":{"command":"make all"}}"#,
    );
    for (before, answer, declined) in [
        (announced.clone(), withdrawn.clone(), 1),
        (announced, String::new(), 1),
        (String::new(), withdrawn, 0),
        (String::new(), String::new(), 0),
    ] {
        let stream =
            [begun(), before, unannounced_request("c"), cancel.clone(), answer, CANCELLED.to_owned()];
        let report = summarize(stream.concat().as_bytes());
        assert_eq!((report.commands.finished, report.commands.declined), (0, declined));
        assert_eq!(report.open_items, []);
    }
}

#[test]
fn a_title_with_server_and_tool_is_split_like_a_name() {
    for title in ["mcp__lab__echo", "mcp__lab__echo: {}"] {
        let call = format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c","kind":"other","status":"completed","title":"{title}","rawInput":{{"text":"hi"}}}}"#
        );
        let report = summarize([begun(), update(&call), END.to_owned()].concat().as_bytes());
        let tool = &report.mcp_calls.by_tool[0];
        assert_eq!((tool.server.as_str(), tool.tool.as_str()), ("lab", "echo"), "{title}");
    }
}
