//! Verdicts on recorded runs of Codex: its real output and exit status.

use delegator_transcript::{Dialect, FoldOptions, LineLimits, Summarizer};

use super::*;

fn report(name: &str) -> Report {
    let path =
        format!("{}/../delegator-transcript/tests/transcripts/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    report_of(&std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")))
}

fn report_of(bytes: &[u8]) -> Report {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    summarizer.push(bytes);
    summarizer.finish()
}

fn ended_at() -> Zoned {
    "2026-11-16T14:00:00Z[UTC]".parse().unwrap()
}

fn ended_run<'a>(
    report: &'a Report,
    stderr: &'a StderrDigest,
    exit: ExitStatus,
    ended_at: &'a Zoned,
) -> EndedRun<'a> {
    EndedRun {
        protocol: AgentProtocol::CodexExec,
        was_finished: false,
        cause: None,
        exit: Some(exit),
        report,
        stderr,
        expected_thread: None,
        ended_at,
    }
}

#[derive(Debug)]
struct Judged {
    end: TaskEnd,
    refused: RefusedCalls,
    lacks_sandbox_helper: bool,
}

fn digest_of(text: &str) -> StderrDigest {
    let mut digest = StderrDigest::new(AgentProtocol::CodexExec);
    for line in text.lines() {
        digest.push_line(line);
    }
    digest
}

fn verdict_for(report: &Report, exit: ExitStatus, stderr: &str) -> Judged {
    let stderr = digest_of(stderr);
    Judged {
        end: verdict(&ended_run(report, &stderr, exit, &ended_at())),
        refused: stderr.refused_calls(),
        lacks_sandbox_helper: stderr.no_sandbox_helper.is_some(),
    }
}

fn kind(end: &TaskEnd) -> Option<FailureKind> {
    match end {
        TaskEnd::Failed { kind, .. } => Some(*kind),
        _ => None,
    }
}

fn message(end: &TaskEnd) -> &str {
    match end {
        TaskEnd::Failed { message, .. } => message,
        _ => "",
    }
}

#[test]
fn recorded_runs_have_the_expected_verdict() {
    use ExitStatus::{Code, Signal};
    use FailureKind as Kind;
    let stderr = "Reading additional input from stdin...\n";
    let cases = [
        ("plain", Code(0), None),
        ("shell_fail", Code(0), None),
        ("err500_then_ok", Code(0), None),
        ("no_auth_default_provider", Code(0), None),
        ("unknown_model", Code(0), None),
        ("shell_orphan", Code(0), None),
        ("versions/0.40.0.plain", Code(0), None),
        ("versions/0.44.0.plain", Code(0), None),
        ("err400", Code(1), Some(Kind::AgentError)),
        ("err401", Code(1), Some(Kind::Auth)),
        ("missing_env_key", Code(1), Some(Kind::Auth)),
        ("err429", Code(1), Some(Kind::RateLimit)),
        ("err500", Code(1), Some(Kind::Network)),
        ("drop_mid", Code(1), Some(Kind::Network)),
        ("drop_noterm", Code(1), Some(Kind::Network)),
        ("failed", Code(1), Some(Kind::Network)),
        ("failed_ctx", Code(1), Some(Kind::AgentError)),
        ("incomplete", Code(1), Some(Kind::AgentError)),
        ("sigint_cmd", Code(1), Some(Kind::AgentExit)),
        ("sigterm_cmd", Signal(15), Some(Kind::Killed)),
        ("sigkill_model", Signal(9), Some(Kind::Killed)),
        ("conn_refused", Code(1), Some(Kind::Network)),
        // The exit code contradicts the events.
        ("err400", Code(0), Some(Kind::AgentError)),
        ("plain", Code(1), Some(Kind::AgentExit)),
        ("plain", Signal(11), Some(Kind::Killed)),
        ("sigint_cmd", Code(0), Some(Kind::NoTerminalEvent)),
    ];
    for (name, exit, expected) in cases {
        let actual = verdict_for(&report(name), exit, stderr);
        assert_eq!(kind(&actual.end), expected, "{name} with {exit:?}: {:?}", actual.end);
        assert_eq!((actual.refused.count, actual.lacks_sandbox_helper), (0, false), "{name}");
    }
}

#[test]
fn failures_before_the_first_event_are_classified() {
    use FailureKind as Kind;
    let nothing = report_of(b"");
    let cases = [
        (include_str!("../../tests/stderr/not_git.txt"), 1, Kind::UntrustedDirectory),
        (include_str!("../../tests/stderr/resume_6_unknown_uuid.txt"), 1, Kind::ThreadNotFound),
        (include_str!("../../tests/stderr/bad_flag.txt"), 2, Kind::AgentExit),
        (include_str!("../../tests/stderr/mcp_dead_required.txt"), 1, Kind::AgentExit),
        (include_str!("../../tests/stderr/stdin_empty_dash.txt"), 1, Kind::AgentExit),
        ("Error: thread/resume: thread x already has an active writer (code -32600)\n", 1, Kind::AgentError),
        ("Not signed in. Please run 'codex login' to sign in with ChatGPT\n", 1, Kind::Auth),
        ("bwrap: No permissions to create new namespace, likely because of the kernel\n", 1, Kind::Sandbox),
        ("", 101, Kind::AgentExit),
    ];
    for (stderr, code, expected) in cases {
        let actual = verdict_for(&nothing, ExitStatus::Code(code), stderr);
        assert_eq!(kind(&actual.end), Some(expected), "{stderr}: {:?}", actual.end);
    }
    let actual = verdict_for(&nothing, ExitStatus::Code(2), include_str!("../../tests/stderr/bad_flag.txt"));
    assert_eq!(message(&actual.end), "error: unexpected argument '--full-auto' found");
    let broken = "Error loading config.toml:\n/home/me/.codex/config.toml:2:9: invalid value\n  |\n2 | model = \n  |\n\
                  string values must be quoted\n";
    let actual = verdict_for(&nothing, ExitStatus::Code(1), broken);
    assert_eq!(
        message(&actual.end),
        "Error loading config.toml: /home/me/.codex/config.toml:2:9: invalid value string values must be quoted"
    );
    let actual = verdict_for(&nothing, ExitStatus::Code(0), "");
    assert_eq!(kind(&actual.end), Some(Kind::NoTerminalEvent));
}

#[test]
fn refused_calls_do_not_fail_a_run() {
    let stderr = include_str!("../../tests/stderr/patch_readonly.txt");
    let actual = verdict_for(&report("patch_readonly"), ExitStatus::Code(0), stderr);
    assert_eq!(actual.end, TaskEnd::Completed);
    assert_eq!((actual.refused.count, actual.lacks_sandbox_helper), (3, false), "{actual:?}");
    assert!(actual.refused.last[0].ends_with(
        "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"
    ));
    let stderr = include_str!("../../tests/stderr/codex_home_in_tmp_patch.txt");
    let actual = verdict_for(&report("codex_home_in_tmp_patch"), ExitStatus::Code(0), stderr);
    assert_eq!(kind(&actual.end), Some(FailureKind::Sandbox));
    assert_eq!((actual.refused.count, actual.lacks_sandbox_helper), (3, true), "{actual:?}");
    // It may not have tried to run anything, so this is no failure.
    let helper = stderr.lines().next().unwrap();
    let actual = verdict_for(&report("codex_home_in_tmp_shell"), ExitStatus::Code(0), helper);
    assert_eq!((actual.end, actual.lacks_sandbox_helper), (TaskEnd::Completed, true));
    let many: String =
        (0..50).map(|n| format!("x ERROR codex_core::tools::router: error=no {n}\n")).collect();
    let refused = digest_of(&many).refused_calls();
    assert_eq!((refused.count, refused.last.len()), (50, 20));
}

#[test]
fn an_error_after_a_refused_call_is_the_message() {
    let refusal =
        "2026-11-15T00:34:12.423336Z ERROR codex_core::tools::router: error=unsupported call: x\nmore\n";
    for error in [
        "Error: out of disk space",
        "error: unexpected argument '--x' found",
        "ERROR: no configuration",
        "Error loading config.toml: invalid type",
        "thread 'main' (7) panicked at src/main.rs:4:29:",
    ] {
        let actual = verdict_for(&report_of(b""), ExitStatus::Code(1), &format!("{refusal}{error}\n"));
        assert_eq!((message(&actual.end), actual.refused.count), (error, 1));
    }
}

#[test]
fn usage_limit_carries_the_retry_time() {
    let line = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"You've hit your usage limit. Try again at 3:51 PM.\"}}";
    let actual = verdict_for(&report_of(line.as_bytes()), ExitStatus::Code(1), "");
    let TaskEnd::Failed { kind, retry_at_ms, .. } = actual.end else { panic!("{actual:?}") };
    let expected: Zoned = "2026-11-16T15:51:00Z[UTC]".parse().unwrap();
    assert_eq!((kind, retry_at_ms), (FailureKind::UsageLimit, Some(expected.timestamp().as_millisecond())));
}

#[test]
fn failures_that_do_not_pass_with_time_have_no_retry_time() {
    let cases = [
        ("The file rate-limit.md says: Please try again in 5s.", FailureKind::AgentError, false),
        ("unexpected status 401 Unauthorized: Please try again in 5s.", FailureKind::Auth, false),
        ("stream disconnected before completion: Please try again in 5s.", FailureKind::Network, true),
        ("Rate limit reached for gpt-5.1. Please try again in 5s.", FailureKind::RateLimit, true),
    ];
    for (message, expected, has_time) in cases {
        let line = serde_json::json!({"type": "turn.failed", "error": {"message": message}}).to_string();
        let actual = verdict_for(&report_of(line.as_bytes()), ExitStatus::Code(1), "");
        let TaskEnd::Failed { kind, retry_at_ms, .. } = actual.end else { panic!("{actual:?}") };
        assert_eq!((kind, retry_at_ms.is_some()), (expected, has_time), "{message}");
    }
}

#[test]
fn our_own_cause_overrides_the_agents_report() {
    let report = report("plain");
    let stderr = StderrDigest::new(AgentProtocol::CodexExec);
    let causes = [
        (Cause::Cancelled { reason: None }, TaskEnd::Cancelled { reason: None }),
        (Cause::Limit(LimitKind::Hard), TaskEnd::Timeout(LimitKind::Hard)),
    ];
    for (cause, expected) in causes {
        for exit in [None, Some(ExitStatus::Code(0)), Some(ExitStatus::Signal(9))] {
            let ended_at = ended_at();
            let run = ended_run(&report, &stderr, ExitStatus::Code(0), &ended_at);
            assert_eq!(verdict(&EndedRun { cause: Some(&cause), exit, ..run }), expected);
        }
    }
}

#[test]
fn unexpected_thread_is_a_failure() {
    let report = report("plain");
    let stderr = StderrDigest::new(AgentProtocol::CodexExec);
    let ended_at = ended_at();
    let run = ended_run(&report, &stderr, ExitStatus::Code(0), &ended_at);
    let other = EndedRun { expected_thread: Some("other"), ..run };
    assert_eq!(kind(&verdict(&other)), Some(FailureKind::WrongThread));
    let expected_thread = report.thread_id.as_deref();
    assert_eq!(verdict(&EndedRun { expected_thread, ..run }), TaskEnd::Completed);
}

#[test]
fn the_exit_code_decides_about_plain_text() {
    let options = FoldOptions { dialect: Some(Dialect::Plain), ..FoldOptions::default() };
    let mut summarizer = Summarizer::new(options, LineLimits::STANDARD);
    summarizer.push(b"{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}\n");
    let report = summarizer.finish();
    let mut stderr = StderrDigest::new(AgentProtocol::Plain);
    assert!(stderr.push_line("warning: 429 requests, rate limit, codex login"), "it is activity");
    let end = |code| {
        let ended_at = ended_at();
        let run = ended_run(&report, &stderr, ExitStatus::Code(code), &ended_at);
        verdict(&EndedRun { protocol: AgentProtocol::Plain, ..run })
    };
    assert_eq!(end(0), TaskEnd::Completed);
    assert_eq!(kind(&end(3)), Some(FailureKind::AgentExit), "its words are not interpreted");
    assert_eq!(message(&end(3)), "warning: 429 requests, rate limit, codex login");
}

#[test]
fn routine_lines_of_codex_are_ordinary_text_of_a_plain_agent() {
    for line in ["Reading prompt from stdin...", "failed to record rollout items: disk full"] {
        let mut plain = StderrDigest::new(AgentProtocol::Plain);
        assert!(plain.push_line(line), "it is activity: {line}");
        assert_eq!(plain.last_message(), Some(line));
        let mut codex = StderrDigest::new(AgentProtocol::CodexExec);
        assert!(!codex.push_line(line), "{line}");
        assert_eq!(codex.last_message(), None);
    }
    assert!(!StderrDigest::new(AgentProtocol::Plain).push_line("  "), "a blank line is no activity");
}

#[test]
fn a_reset_time_that_the_agent_reports_counts_for_its_usage_limit_only() {
    let retry_at = |code| {
        let outcome = StreamOutcome::Failed { message: "resets 3pm".to_owned(), code: Some(code) };
        let report = Report { outcome, limit_resets_at: Some(1_794_870_000), ..Report::default() };
        match verdict_for(&report, ExitStatus::Code(1), "").end {
            TaskEnd::Failed { retry_at_ms, .. } => retry_at_ms,
            end => panic!("{end:?}"),
        }
    };
    assert_eq!(retry_at(ErrorCode::UsageLimit), Some(1_794_870_000_000));
    assert_eq!(retry_at(ErrorCode::Unauthorized), None);
}

#[test]
fn signal_numbers_map_to_names() {
    assert_eq!(signal_name(1), "SIGHUP");
    assert_eq!(signal_name(9), "SIGKILL");
    assert_eq!(signal_name(15), "SIGTERM");
    assert_eq!(signal_name(31), "SIGSYS");
    assert_eq!(signal_name(34), "signal 34");
    assert_eq!(signal_name(0), "signal 0");
}

#[test]
fn only_a_started_command_that_exits_0_verifies() {
    let code = |code| Some(ExitStatus::Code(code));
    let limit = Cause::Limit(LimitKind::Hard);
    let cancelled = Cause::Cancelled { reason: None };
    let cases = [
        (None, code(0), true, Verification::Verified),
        (None, code(3), true, Verification::Refuted),
        (None, Some(ExitStatus::Signal(11)), true, Verification::Refuted),
        (None, None, true, Verification::Unknown),
        (None, code(0), false, Verification::SandboxFailed),
        (None, code(1), false, Verification::SandboxFailed),
        (Some(&limit), code(0), true, Verification::TimedOut),
        (Some(&limit), code(143), false, Verification::SandboxFailed),
        (Some(&cancelled), code(0), true, Verification::Cancelled),
        (Some(&Cause::TooManyProcesses { count: 9 }), None, true, Verification::TooManyProcesses),
    ];
    for (cause, exit, began, expected) in cases {
        assert_eq!(verification_outcome(cause, exit, began), expected, "{cause:?} {exit:?} {began}");
    }
}
