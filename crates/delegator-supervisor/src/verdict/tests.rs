//! Verdicts on recorded runs: what Codex really wrote, how it really ended.

use delegator_transcript::{FoldOptions, LineLimits, Summarizer};

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

fn judge(report: &Report, exit: ExitStatus, stderr: &str) -> Verdict {
    let stderr = StderrDigest::of(stderr);
    verdict(&Facts { cause: None, exit: Some(exit), report, stderr: &stderr, asked_thread: None })
}

fn kind(end: &End) -> Option<FailureKind> {
    match end {
        End::Failed { kind, .. } => Some(*kind),
        _ => None,
    }
}

fn message(end: &End) -> &str {
    match end {
        End::Failed { message, .. } => message,
        _ => "",
    }
}

#[test]
fn recorded_runs() {
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
        ("err500", Code(1), Some(Kind::RateLimit)),
        ("drop_mid", Code(1), Some(Kind::Network)),
        ("drop_noterm", Code(1), Some(Kind::Network)),
        ("failed", Code(1), Some(Kind::Network)),
        ("failed_ctx", Code(1), Some(Kind::AgentError)),
        ("incomplete", Code(1), Some(Kind::AgentError)),
        ("sigint_cmd", Code(1), Some(Kind::AgentExit)),
        ("sigterm_cmd", Signal(15), Some(Kind::Killed)),
        ("sigkill_model", Signal(9), Some(Kind::Killed)),
        ("conn_refused", Code(1), Some(Kind::Network)),
        // The exit code lies, one way or the other.
        ("err400", Code(0), Some(Kind::AgentError)),
        ("plain", Code(1), Some(Kind::AgentExit)),
        ("plain", Signal(11), Some(Kind::Killed)),
        ("sigint_cmd", Code(0), Some(Kind::NoTerminalEvent)),
    ];
    for (name, exit, expected) in cases {
        let judged = judge(&report(name), exit, stderr);
        assert_eq!(kind(&judged.end), expected, "{name} with {exit:?}: {:?}", judged.end);
        assert_eq!((judged.refused.count, judged.warnings.len()), (0, 0), "{name}");
    }
}

#[test]
fn recorded_failures_before_the_first_event() {
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
        let judged = judge(&nothing, ExitStatus::Code(code), stderr);
        assert_eq!(kind(&judged.end), Some(expected), "{stderr}: {:?}", judged.end);
    }
    let judged = judge(&nothing, ExitStatus::Code(2), include_str!("../../tests/stderr/bad_flag.txt"));
    assert_eq!(message(&judged.end), "exited with code 2: error: unexpected argument '--full-auto' found");
    let judged = judge(&nothing, ExitStatus::Code(0), "");
    assert_eq!(kind(&judged.end), Some(Kind::NoTerminalEvent));
}

#[test]
fn refused_calls_are_warnings() {
    let stderr = include_str!("../../tests/stderr/patch_readonly.txt");
    let judged = judge(&report("patch_readonly"), ExitStatus::Code(0), stderr);
    assert_eq!(judged.end, End::Completed);
    assert_eq!((judged.refused.count, judged.warnings.len()), (3, 0), "{judged:?}");
    assert!(judged.refused.last[0].ends_with(
        "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"
    ));
    let stderr = include_str!("../../tests/stderr/codex_home_in_tmp_patch.txt");
    let judged = judge(&report("codex_home_in_tmp_patch"), ExitStatus::Code(0), stderr);
    assert_eq!(kind(&judged.end), Some(FailureKind::Sandbox));
    assert_eq!((judged.refused.count, judged.warnings.len()), (3, 1), "{judged:?}");
    // It may not have wanted to run anything: nobody knows.
    let helper = stderr.lines().next().unwrap();
    let judged = judge(&report("codex_home_in_tmp_shell"), ExitStatus::Code(0), helper);
    assert_eq!((judged.end, judged.warnings.len()), (End::Completed, 1));
    let many: String =
        (0..50).map(|n| format!("x ERROR codex_core::tools::router: error=no {n}\n")).collect();
    let refused = StderrDigest::of(&many).refused_calls();
    assert_eq!((refused.count, refused.last.len()), (50, 20));
}

#[test]
fn a_limit_of_the_plan_tells_when_it_is_reset() {
    let line = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"You've hit your usage limit. Try again at 3:51 PM.\"}}";
    let judged = judge(&report_of(line.as_bytes()), ExitStatus::Code(1), "");
    let End::Failed { kind, retry_at, .. } = judged.end else { panic!("{judged:?}") };
    assert_eq!((kind, retry_at.as_deref()), (FailureKind::UsageLimit, Some("3:51 PM")));
}

#[test]
fn what_we_did_counts_before_what_it_says() {
    let report = report("plain");
    let stderr = StderrDigest::default();
    let causes = [
        (Cause::Cancelled { reason: None }, End::Cancelled { reason: None }),
        (Cause::Limit(LimitKind::Hard), End::Timeout(LimitKind::Hard)),
    ];
    for (cause, expected) in causes {
        for exit in [None, Some(ExitStatus::Code(0)), Some(ExitStatus::Signal(9))] {
            let facts =
                Facts { cause: Some(&cause), exit, report: &report, stderr: &stderr, asked_thread: None };
            assert_eq!(verdict(&facts).end, expected);
        }
    }
}

#[test]
fn another_thread_is_no_success() {
    let report = report("plain");
    let stderr = StderrDigest::default();
    let exit = Some(ExitStatus::Code(0));
    let facts = Facts { cause: None, exit, report: &report, stderr: &stderr, asked_thread: Some("other") };
    assert_eq!(kind(&verdict(&facts).end), Some(FailureKind::WrongThread));
    let asked_thread = report.thread_id.as_deref();
    assert_eq!(verdict(&Facts { asked_thread, ..facts }).end, End::Completed);
}
