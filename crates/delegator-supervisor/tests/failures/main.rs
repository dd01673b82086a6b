//! Measures what failures are taken for: recorded ones have their kind, ordinary lines have none.
//!
//! A false kind makes callers retry a task that fails for another reason, so not one is tolerated. The
//! ordinary lines are recorded: programs that talk to a server which refuses everything, package managers,
//! compilers, test runners, and Codex with `RUST_LOG=trace`. Variations of them carry numbers and words that
//! occur in messages about limits. Some lines are ordinary only on stderr (`stderr_lines.txt`): as the
//! message of an error event they would be a provider's.

#![expect(clippy::unwrap_used, reason = "a recording that cannot be read is a failure")]

use std::collections::BTreeSet;
use std::path::Path;

use delegator_domain::agents::AgentProtocol;
use delegator_domain::task::{ExitStatus, FailureKind, TaskEnd};
use delegator_supervisor::verdict::{EndedRun, StderrDigest, has_acted, verdict};
use delegator_transcript::{FoldOptions, LineLimits, Report, Summarizer};
use jiff::Zoned;
use serde::Deserialize;
use serde_json::{Value, json};

const HOSTILE_NUMBERS: [&str; 9] = ["429", "401", "403", "402", "500", "503", "7429", "5032", "43.429123"];

const HOSTILE_WORDS: [&str; 20] = [
    "overloaded",
    "overloaded function",
    "token expired",
    "expired-tokens.json",
    "model.py not found",
    "model not found",
    "sandbox.rs: error",
    "sandbox failed",
    "quota exceeded",
    "rate limit",
    "usage limit",
    "at capacity",
    "connection refused",
    "connection reset",
    "401 Unauthorized",
    "403 Forbidden",
    "429 Too Many Requests",
    "503 Service Unavailable",
    "not logged in",
    "try again in 5 minutes",
];

#[derive(Deserialize)]
struct RecordedError {
    provoked_by: String,
    kind: String,
    message: String,
    codex_error_info: Value,
}

#[derive(Deserialize)]
struct RecordedStderr {
    run: String,
    kind: String,
    stderr: String,
}

fn rows<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn report_of(stream: &str) -> Report {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    summarizer.push(stream.as_bytes());
    summarizer.finish()
}

/// The kind, and whether a retry time was found.
fn judge(report: &Report, stderr: &str) -> (FailureKind, bool) {
    judge_run_of(AgentProtocol::CodexExec, report, stderr)
}

fn judge_run_of(protocol: AgentProtocol, report: &Report, stderr: &str) -> (FailureKind, bool) {
    let mut digest = StderrDigest::new(protocol);
    for line in stderr.lines() {
        digest.push_line(line);
    }
    let ended_at: Zoned = "2026-11-16T14:00:00Z[UTC]".parse().unwrap();
    let run = EndedRun {
        protocol,
        was_finished: false,
        cause: None,
        exit: Some(ExitStatus::Code(1)),
        report,
        stderr: &digest,
        expected_thread: None,
        ended_at: &ended_at,
    };
    match verdict(&run) {
        TaskEnd::Failed { kind, retry_at_ms, .. } => (kind, retry_at_ms.is_some()),
        end => panic!("{end:?}"),
    }
}

fn failed_turn(message: &str) -> Report {
    report_of(&json!({"type": "turn.failed", "error": {"message": message}}).to_string())
}

#[test]
fn recorded_errors_have_their_kind() {
    let recorded: Vec<RecordedError> = rows(include_str!("recorded_failures.jsonl"));
    for RecordedError { provoked_by, kind, message, codex_error_info } in &recorded {
        let expected = FailureKind::from_name(kind).unwrap();
        let (actual, has_time) = judge(&failed_turn(message), "");
        assert_eq!(actual, expected, "{provoked_by}: {message}");
        assert_eq!(has_time, message.contains("try again at") || message.contains("1.898s"), "{message}");
        // The same failure in a session file, where Codex adds a code.
        let error = json!({"message": message, "codex_error_info": codex_error_info});
        let event = json!({"type": "task_complete", "error": error});
        let line = json!({"timestamp": "2026-11-16T05:57:41Z", "type": "event_msg", "payload": event});
        assert_eq!(judge(&report_of(&line.to_string()), "").0, expected, "{provoked_by}: {line}");
        // Codex was killed between the error and the end of the turn.
        let line = json!({"type": "error", "message": message});
        let unreported = if expected == FailureKind::AgentError { FailureKind::AgentExit } else { expected };
        assert_eq!(judge(&report_of(&line.to_string()), "").0, unreported, "{provoked_by}: {line}");
        // Work that followed shows that the error was overcome.
        let item = json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": message}});
        let (overcome, _) = judge(&report_of(&format!("{line}\n{item}\n")), "");
        assert_eq!(overcome, FailureKind::AgentExit, "{provoked_by}: {line}");
    }
    let kinds: BTreeSet<&str> = recorded.iter().map(|error| error.kind.as_str()).collect();
    println!("{} recorded errors of {} kinds, all right", recorded.len(), kinds.len());
}

#[test]
fn recorded_stderr_has_its_kind() {
    let nothing = report_of("");
    let recorded: Vec<RecordedStderr> = rows(include_str!("recorded_stderr.jsonl"));
    for RecordedStderr { run, kind, stderr } in &recorded {
        assert_eq!(judge(&nothing, stderr).0.name(), kind, "{run}: {stderr}");
    }
    println!("{} recorded outputs on stderr, all right", recorded.len());
}

/// All lines of the files below a directory.
fn lines_below(directory: &Path, lines: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines_below(&path, lines);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            lines.extend(text.lines().map(str::to_owned));
        }
    }
}

/// Different recorded lines, in a fixed order.
fn recorded_lines() -> Vec<String> {
    let text = include_str!("ordinary_lines.txt");
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with("## ")).map(str::to_owned).collect();
    let outputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../delegator-transcript/tests");
    lines_below(&outputs.join("test_runs"), &mut lines);
    lines_below(&outputs.join("error_locations"), &mut lines);
    let different: BTreeSet<String> = lines.into_iter().filter(|line| !line.trim().is_empty()).collect();
    different.into_iter().collect()
}

fn with_hostile_numbers(line: &str, number: usize) -> String {
    let mut varied = String::new();
    let mut rest = line;
    for count in 0.. {
        let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) else { break };
        let end =
            rest[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(rest.len(), |end| start + end);
        varied.push_str(&rest[..start]);
        varied.push_str(HOSTILE_NUMBERS[(number + count) % HOSTILE_NUMBERS.len()]);
        rest = &rest[end..];
    }
    varied + rest
}

/// Puts hostile words after a word of the line; before the first one if `at` is 0.
fn with_hostile_words(line: &str, words: &str, at: usize) -> String {
    let mut parts: Vec<&str> = line.split(' ').collect();
    parts.insert(at.min(parts.len()), words);
    parts.join(" ")
}

#[test]
fn ordinary_lines_have_no_kind() {
    let recorded = recorded_lines();
    let nothing = report_of("");
    let mut stderr_lines = BTreeSet::new();
    let mut messages = BTreeSet::new();
    for (number, line) in recorded.iter().enumerate() {
        let words = HOSTILE_WORDS[number % HOSTILE_WORDS.len()];
        let inside = with_hostile_words(line.trim_start(), words, 1 + number % 7);
        let numbers = with_hostile_numbers(line, number);
        let logged = format!("2026-11-15T18:07:43.429123Z ERROR codex_core::session: {inside}");
        messages.extend([line.clone(), numbers.clone(), inside.clone()]);
        stderr_lines.extend([
            with_hostile_words(line, words, 0),
            format!("Error: {inside}"),
            line.clone(),
            numbers,
            inside,
            logged,
        ]);
    }
    let of_other_programs: Vec<&str> = include_str!("stderr_lines.txt").lines().collect();
    for line in &of_other_programs {
        let prefixed = with_hostile_words(line, "[mcp]", 0);
        stderr_lines.extend([
            (*line).to_owned(),
            format!("ERROR: {line}"),
            format!("error: {line}"),
            prefixed,
        ]);
        stderr_lines.extend((0..HOSTILE_NUMBERS.len()).map(|number| with_hostile_numbers(line, number)));
        // `Error: ` is of Codex, and so is what it quotes after its own phrases; a response of a provider
        // never is bare.
        stderr_lines.extend(line.starts_with('{').then(|| format!("Error: {line}")));
    }
    let mut wrong: Vec<String> = Vec::new();
    for line in &stderr_lines {
        let (kind, has_time) = judge(&nothing, line);
        if kind != FailureKind::AgentExit || has_time {
            wrong.push(format!("{}, stderr: {line}", kind.name()));
        }
    }
    for message in &messages {
        let (kind, _) = judge(&failed_turn(message), "");
        if kind != FailureKind::AgentError {
            wrong.push(format!("{}, turn.failed: {message}", kind.name()));
        }
    }
    println!(
        "{} ordinary lines; {} lines on stderr and {} error messages judged, {} wrong",
        recorded.len() + of_other_programs.len(),
        stderr_lines.len(),
        messages.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(stderr_lines.len() >= 10_000 && messages.len() >= 5_000);
    let all: String = recorded.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(judge(&nothing, &all).0, FailureKind::AgentExit);
}

#[test]
fn misleading_lines_have_no_kind() {
    let nothing = report_of("");
    for line in [
        "2026-11-15T18:07:43.429123Z ERROR codex_core: failed to parse config",
        "2026-11-15T18:07:43.429123Z  WARN codex_core: exceeded retry limit, last status: 429 Too Many Requests",
        "error: overloaded function `sum`",
        "model.py not found",
        "Error: model.py not found",
        "cannot open expired-tokens.json",
        "Error: run row 7429",
        "listening on port 5032",
        "sandbox.rs: error",
        "401 tests passed",
        "my-tool: rate limit, try again in 5 minutes",
        "Error: rate limit reached, try again in 5 minutes",
        "Error: connect ECONNREFUSED 127.0.0.1:429",
        "Error: unexpected status 401 from the npm registry",
        "Error: Session not found: playwright-7",
    ] {
        assert_eq!(judge(&nothing, line), (FailureKind::AgentExit, false), "{line}");
    }
    // A later error decides, and so does the last line.
    let limit = "Error: exceeded retry limit, last status: 429 Too Many Requests";
    assert_eq!(judge(&nothing, limit).0, FailureKind::RateLimit);
    assert_eq!(judge(&nothing, &format!("{limit}\nError: out of disk space\n")).0, FailureKind::AgentExit);
    assert_eq!(
        judge(&nothing, &format!("{limit}\nthread 'main' (7) panicked at src/main.rs:4:29:\n")).0,
        FailureKind::AgentExit
    );
    // Codex printed its last error, and another program printed something while it ended.
    assert_eq!(judge(&nothing, &format!("{limit}\nserver stopped\n")).0, FailureKind::RateLimit);
    // It went on after an error that it logged.
    let logged = "2026-11-15T18:07:43.429123Z ERROR codex_core::session: exceeded retry limit, last status: 429 Too Many Requests";
    assert_eq!(judge(&nothing, logged).0, FailureKind::RateLimit);
    let info = "2026-11-15T18:07:44.429123Z  INFO codex_core::session: turn started";
    let refusal = "2026-11-15T18:07:44.429123Z ERROR codex_core::tools::router: error=unsupported call: x";
    for later in ["segmentation fault", info, refusal] {
        assert_eq!(judge(&nothing, &format!("{logged}\n{later}\n")).0, FailureKind::AgentExit, "{later}");
    }
    for later in [info, refusal] {
        assert_eq!(judge(&nothing, &format!("{limit}\n{later}\n")).0, FailureKind::AgentExit, "{later}");
    }
    // What commands print and what the agent writes is not an error of the agent.
    let command = json!({"type": "item.completed", "item": {"id": "item_0", "type": "command_execution",
        "command": "curl x", "aggregated_output": format!("{limit}\n"), "exit_code": 22, "status": "failed"}});
    let message =
        json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": limit}});
    let warning =
        json!({"type": "item.completed", "item": {"id": "item_2", "type": "error", "message": limit}});
    for item in [command, message, warning] {
        assert_eq!(judge(&report_of(&item.to_string()), "").0, FailureKind::AgentExit, "{item}");
    }
}

const USAGE_LIMIT: &str = "API Error: Request rejected (429) · You have reached your usage limit.";

/// A turn of Claude Code that failed with this text.
fn claude_failure(text: &str, name: &str, status: u16) -> String {
    let error = json!({"type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}, "error": name, "session_id": "s"});
    let end = json!({"type": "result", "subtype": "success", "is_error": true, "result": text, "api_error_status": status, "session_id": "s"});
    format!("{}\n{error}\n{end}\n", json!({"type": "system", "subtype": "init", "session_id": "s"}))
}

/// A turn of an agent of the Agent Client Protocol that sent these messages and then failed with this error.
fn acp_failure(messages: &[&str], end: &Value) -> String {
    let sent = |message: Value| json!({"sent": message}).to_string();
    let mut lines = vec![
        sent(json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {}})),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}).to_string(),
        sent(json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": "s"}})),
    ];
    for (number, text) in messages.iter().enumerate() {
        let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": number.to_string(), "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": "s", "update": update});
        lines.push(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string());
    }
    let mut answer = json!({"jsonrpc": "2.0", "id": 2});
    answer.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
    lines.push(answer.to_string());
    lines.join("\n") + "\n"
}

fn acp_error(text: &str, data: Value) -> Value {
    json!({"error": {"code": -32603, "message": format!("Internal error: {text}"), "data": data}})
}

#[test]
fn the_same_words_have_the_same_kind_from_every_agent() {
    let claude = report_of(&claude_failure(USAGE_LIMIT, "rate_limit", 429));
    let acp = report_of(&acp_failure(&[], &acp_error(USAGE_LIMIT, json!({"errorKind": "rate_limit"}))));
    assert_eq!(judge_run_of(AgentProtocol::ClaudeStream, &claude, "").0, FailureKind::UsageLimit);
    assert_eq!(judge_run_of(AgentProtocol::Acp, &acp, "").0, FailureKind::UsageLimit);
    let recorded: Vec<RecordedError> = rows(include_str!("recorded_failures.jsonl"));
    let messages = recorded.iter().map(|error| error.message.as_str()).chain([
        USAGE_LIMIT,
        "API Error: 500 Internal server error. This is a server-side issue, usually temporary.",
        "Invalid API key · Fix external API key",
        "Not logged in · Please run /login",
        "Credit balance is too low",
        "Rate limit exceeded: The usage limit has been reached.",
        "401 Incorrect API key provided.",
        "Failed; retried 5 times Last error: 500 The server had an error.",
        "You exceeded your current quota, please check your plan.",
        "models/no-such-model is not found for API version v1beta",
        "the tests fail",
    ]);
    for message in messages {
        let exec = judge(&failed_turn(message), "").0;
        let claude = report_of(&claude_failure(message, "unknown", 0));
        assert_eq!(judge_run_of(AgentProtocol::ClaudeStream, &claude, "").0, exec, "{message}");
        let acp = report_of(&acp_failure(&[], &acp_error(message, json!({}))));
        assert_eq!(judge_run_of(AgentProtocol::Acp, &acp, "").0, exec, "{message}");
        let app_server = judge_run_of(AgentProtocol::CodexAppServer, &failed_turn(message), "").0;
        assert_eq!(app_server, exec, "{message}");
    }
}

#[test]
fn a_response_that_the_model_ended_is_not_about_the_network() {
    for reason in ["content_filter", "max_output_tokens"] {
        let text =
            format!("stream disconnected before completion: Incomplete response returned, reason: {reason}");
        assert_eq!(judge(&failed_turn(&text), ""), (FailureKind::AgentError, false));
        assert_eq!(judge(&report_of(""), &format!("Error: {text}")).0, FailureKind::AgentExit);
        let error = json!({"message": text, "codex_error_info": {"response_stream_disconnected": {"http_status_code": null}}});
        let event = json!({"type": "task_complete", "error": error});
        let line = json!({"timestamp": "2026-11-16T05:57:41Z", "type": "event_msg", "payload": event});
        assert_eq!(judge(&report_of(&line.to_string()), "").0, FailureKind::AgentError, "{line}");
    }
    let lost = "stream disconnected before completion: stream closed before response.completed";
    assert_eq!(judge(&failed_turn(lost), "").0, FailureKind::Network);
}

#[test]
fn an_agent_that_only_reports_its_failure_has_not_acted() {
    let end_turn = json!({"result": {"stopReason": "end_turn"}});
    let goose = "Ran into this error: Rate limit exceeded: The usage limit has been reached.\n\nPlease retry if you think this is a transient or recoverable error.";
    let unauthorized = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let limit = acp_error(USAGE_LIMIT, json!({"errorKind": "rate_limit"}));
    let other = acp_error("The server sent something unknown", json!({}));
    for (messages, end, kind, acted) in [
        (vec![USAGE_LIMIT], &limit, FailureKind::UsageLimit, false),
        (
            vec!["Slow down, please."],
            &acp_error("Slow down, please.", json!({"errorKind": "rate_limit"})),
            FailureKind::RateLimit,
            false,
        ),
        (vec!["Invalid API key · Fix external API key"], &unauthorized, FailureKind::Auth, false),
        (vec![goose], &end_turn, FailureKind::UsageLimit, false),
        (vec!["The server sent something unknown\n"], &other, FailureKind::AgentError, false),
        (vec!["I change the file now.", USAGE_LIMIT], &limit, FailureKind::UsageLimit, true),
        (vec!["I change the file now."], &limit, FailureKind::UsageLimit, true),
        (vec!["I"], &other, FailureKind::AgentError, true),
    ] {
        let report = report_of(&acp_failure(&messages, end));
        assert_eq!(judge_run_of(AgentProtocol::Acp, &report, "").0, kind, "{messages:?}");
        assert_eq!(has_acted(&report), acted, "{messages:?}");
    }
}
