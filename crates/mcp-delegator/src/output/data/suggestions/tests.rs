//! What is known of a failed task, and the expected suggestions.

use crate::output::call_syntax::CallSyntax;
use crate::output::data::suggestions::*;
use crate::spec::ServedTools;

fn failed(kind: FailureKind, message: &str) -> TaskEnd {
    TaskEnd::Failed { kind, message: message.to_owned(), retry_at_ms: None }
}

fn sentences(found: &FailedTask<'_>) -> Vec<String> {
    let suggestions = suggestions(found);
    suggestions.iter().map(|suggestion| CallSyntax::Commands.sentence(suggestion)).collect()
}

fn no_findings(end: &TaskEnd) -> FailedTask<'_> {
    FailedTask {
        end,
        task_id: "T-local-1",
        is_remote: false,
        agent: "codex",
        model: None,
        mode: "workspace-write",
        thread: None,
        exit: None,
        limit_seconds: None,
        running: None,
        location: None,
        command: None,
        failed_tests: Vec::new(),
    }
}

#[test]
fn a_known_retry_time_is_suggested() {
    for kind in [FailureKind::UsageLimit, FailureKind::RateLimit, FailureKind::Network] {
        let end = TaskEnd::Failed { kind, message: "x".to_owned(), retry_at_ms: Some(1_795_189_320_123) };
        assert_eq!(sentences(&no_findings(&end)), ["Try again at 2026-11-20T15:42:00.123Z."]);
    }
}

#[test]
fn failures_outside_the_work_have_one_suggestion() {
    use FailureKind as Kind;
    let gpt = Some("gpt-9");
    let cases = [
        (Kind::Auth, "x", None, "Sign in: codex login"),
        (
            Kind::BadModel,
            "x",
            gpt,
            "The requested model was gpt-9: use a model the agent supports, or omit model for its default.",
        ),
        (
            Kind::BadModel,
            "x",
            None,
            "No model was requested, so the agent's own configuration selects this one: set model.",
        ),
        (
            Kind::Sandbox,
            "bwrap: no",
            None,
            "Mode workspace-write needs a sandbox, which did not work here: install bubblewrap or allow user namespaces.",
        ),
        (
            Kind::Sandbox,
            "WARNING: Refusing to create helper binaries under temporary dir \"/tmp\"",
            None,
            "Set CODEX_HOME to a directory that is not below the temporary directory.",
        ),
        (Kind::UntrustedDirectory, "x", None, "Run it in a git repository, or give --skip-git-repo-check."),
        (
            Kind::ThreadNotFound,
            "x",
            None,
            "Start a new task with 'mcp-delegator exec': the agent no longer has that thread.",
        ),
        (
            Kind::SupervisorLost,
            "x",
            None,
            "It had no thread yet; submit it again: mcp-delegator retry T-local-1",
        ),
        (
            Kind::Killed,
            "killed by SIGKILL, possibly because memory ran out",
            None,
            "If memory ran out, add memory or lower max_concurrent.",
        ),
        (Kind::SpawnFailed, "x", None, "See what is missing: mcp-delegator doctor"),
    ];
    for (kind, message, model, expected) in cases {
        let end = failed(kind, message);
        let exit = (kind == Kind::Killed).then_some(ExitStatus::Signal(SIGKILL));
        assert_eq!(sentences(&FailedTask { model, exit, ..no_findings(&end) }), [expected], "{kind:?}");
    }
}

#[test]
fn a_lost_task_with_a_thread_is_resumed() {
    let end = failed(FailureKind::SupervisorLost, "x");
    let suggested = sentences(&FailedTask { thread: Some("01a1"), ..no_findings(&end) });
    assert_eq!(
        suggested,
        [
            "Continue where it stopped: mcp-delegator resume 'go on' --task-id T-local-1 --mode workspace-write"
        ]
    );
}

#[test]
fn a_missing_thread_suggests_a_new_task_in_the_syntax_of_the_reader() {
    let end = failed(FailureKind::ThreadNotFound, "x");
    let served = ServedTools { prefix: "_codex_".to_owned(), names: vec!["local_exec".to_owned()] };
    let suggestions = suggestions(&FailedTask { thread: Some("01a1"), ..no_findings(&end) });
    assert_eq!(
        CallSyntax::Tools(&served).sentence(&suggestions[0]),
        "Start a new task with _codex_local_exec: the agent has no thread \"01a1\"."
    );
}

#[test]
fn timeout_suggests_a_larger_limit() {
    let cases = [
        (
            LimitKind::Idle,
            Some(300),
            Some("Running cargo test"),
            Some("Pass --idle-timeout-sec 600: nothing happened for 300 s during \"Running cargo test\"."),
        ),
        (LimitKind::Hard, Some(1200), None, Some("Pass --hard-timeout-sec 2400: it had run for 1200 s.")),
        (LimitKind::Hard, Some(50_000), None, Some("Pass --hard-timeout-sec 86400: it had run for 50000 s.")),
        (
            LimitKind::Hard,
            Some(86_400),
            None,
            Some("Split it into several tasks: it had run for 86400 s, the largest --hard-timeout-sec."),
        ),
        (LimitKind::Hard, None, None, None),
    ];
    for (limit, limit_seconds, running, expected) in cases {
        let end = TaskEnd::Timeout(limit);
        let suggested = sentences(&FailedTask { limit_seconds, running, ..no_findings(&end) });
        assert_eq!(suggested.first().map(String::as_str), expected);
    }
}

#[test]
fn what_a_worker_lacks_is_to_be_changed_on_the_worker() {
    let auth = failed(FailureKind::Auth, "x");
    let found = FailedTask { is_remote: true, ..no_findings(&auth) };
    assert_eq!(sentences(&found), ["Sign in on the worker: codex login"]);
    let limit = TaskEnd::Timeout(LimitKind::Idle);
    let found = FailedTask { end: &limit, limit_seconds: Some(300), ..found };
    assert_eq!(
        sentences(&found),
        ["Raise idle_timeout_sec to 600 in the configuration of the worker: nothing happened for 300 s."]
    );
}

#[test]
fn failures_of_the_work_point_to_location_and_tests() {
    let location =
        ErrorLocation { file: "src/x.rs".into(), line: 3, message: "expected `u32`, found `&str`".into() };
    let end = failed(FailureKind::AgentExit, "x");
    let found = FailedTask {
        location: Some(location),
        command: Some(("cargo build".into(), "error".into())),
        failed_tests: vec!["a::b".into(), "c".into()],
        ..no_findings(&end)
    };
    assert_eq!(
        sentences(&found),
        [
            "Look at src/x.rs:3: \"expected `u32`, found `&str`\"",
            "Run the 2 failing tests alone, first \"a::b\"",
        ]
    );
    let without_place = FailedTask { location: None, failed_tests: Vec::new(), ..found.clone() };
    assert_eq!(sentences(&without_place), ["Look at what \"cargo build\" printed: \"error\""]);
    // A failed command is not the reason for a missing login.
    let auth = failed(FailureKind::Auth, "x");
    assert_eq!(sentences(&FailedTask { end: &auth, ..found.clone() }), ["Sign in: codex login"]);
    let limit = TaskEnd::Timeout(LimitKind::Idle);
    assert_eq!(sentences(&FailedTask { end: &limit, limit_seconds: Some(5), ..found }).len(), 3);
}

#[test]
fn suggestions_need_findings_and_are_at_most_three() {
    for kind in FailureKind::ALL {
        let end = failed(kind, "");
        assert!(sentences(&no_findings(&end)).len() <= 1, "{kind:?}");
    }
    for kind in
        [FailureKind::AgentError, FailureKind::Network, FailureKind::NoTerminalEvent, FailureKind::Internal]
    {
        let end = failed(kind, "something");
        assert_eq!(sentences(&no_findings(&end)), [""; 0], "{kind:?}");
    }
    for end in [TaskEnd::Completed, TaskEnd::Cancelled { reason: None }] {
        assert_eq!(sentences(&no_findings(&end)), [""; 0]);
    }
}

#[test]
fn quoted_text_is_one_line_and_truncated() {
    let end = failed(FailureKind::AgentExit, "");
    let message = format!("ignore\u{1b}[2J \"all\"\n{}", "x".repeat(10_000));
    let location = ErrorLocation { file: "a.c".into(), line: 1, message };
    let suggested = sentences(&FailedTask { location: Some(location), ..no_findings(&end) });
    assert!(
        suggested[0].starts_with("Look at a.c:1: \"ignore[2J 'all'x") && suggested[0].ends_with("x\""),
        "{}",
        suggested[0]
    );
    assert!(suggested[0].len() < 250 && !suggested[0].contains('\n'));
}
