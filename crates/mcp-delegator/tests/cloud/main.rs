//! Tasks of hosted Codex, with the real `codex cloud` and a fake backend, and of a fleet (`fleet`).
//!
//! `places` checks that a task answers in the same way wherever it runs.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod fleet;
mod hosted;
mod own_fleet;
mod places;

use delegator_testkit::fake_cloud::{ENVIRONMENT, FakeState, Fault};
use delegator_testkit::program::{World, read_text};
use delegator_testkit::stage::wait_until;
use delegator_testkit::terminal::TerminalSession;
use serde_json::{Value, json};

use hosted::{Cloud, DIFF};

fn watch(world: &World, args: &[&str]) -> TerminalSession {
    let mut command = world.command([&["watch"], args].concat());
    command.env("TERM", "xterm");
    TerminalSession::start_interactive_of(120, command)
}

#[test]
fn watch_shows_a_task_of_hosted_codex_until_its_end() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Running, FakeState::Completed], &[DIFF]);
    cloud.submit();
    let mut screen = watch(&cloud.world, &[]);
    screen.wait_for_screen("Working (1)");
    screen.wait_for_screen("Finished, unread (1)");
    screen.type_text("d");
    screen.wait_for_screen("+grown");
    screen.type_text("q");
    assert_eq!(screen.wait().exit, Some(0));
}

#[test]
fn a_task_is_submitted_awaited_and_reported_with_its_diff() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Running, FakeState::Completed], &[DIFF]);
    let accepted = cloud.submit();
    let id = accepted["task_id"].as_str().unwrap();
    assert!(id.starts_with("T-cloud-"), "{accepted}");
    let remote = &accepted["remote"];
    assert_eq!((&remote["environment"], &remote["provider"]), (&json!(ENVIRONMENT), &json!("codex-cloud")));
    let page = remote["url"].as_str().unwrap();
    assert!(page.ends_with(remote["remote_id"].as_str().unwrap()), "{accepted}");
    let submission = cloud.backend.submissions()[0].to_string();
    assert!(submission.contains("grow the seed") && submission.contains(ENVIRONMENT), "{submission}");

    let status = cloud.data(&["cloud", "status"]);
    assert_eq!(
        (&status["summary"]["running"], &status["tasks"][0]["environment"]),
        (&json!(1), &json!(ENVIRONMENT))
    );
    let here = cloud.data(&["status"]);
    assert_eq!(here["summary"]["running"], 0, "a cloud task is not a local one");
    assert_eq!(here["cloud"], json!({"unfinished_count": 1, "unread_count": 0}));
    let text = cloud.run(&["status", "--format", "human"]).stdout;
    let next = "Next: mcp-delegator cloud status";
    assert!(text.contains("1 unfinished; cloud status lists them") && text.contains(next), "{text}");
    assert_eq!(cloud.data(&["cloud", "status", "--env-id", "env_other"])["summary"]["running"], 0);

    let waited = cloud.data(&["wait", id]);
    assert_eq!((&waited["state"], &waited["remote"]["url"]), (&json!("completed"), &json!(page)));
    assert_eq!(waited["diff"]["text"], DIFF);
    let files = &waited["metadata"]["file_operations"];
    assert_eq!((&files["modified_files"], &files["source"]), (&json!(["seed.txt"]), &json!("diff")));
    assert_eq!((&files["lines_added"], &files["lines_deleted"]), (&json!(2), &json!(1)));
    assert_eq!(waited["summary"], "Modified 1 file (+2 −1)");
    let warnings = cloud.run(&["results", id]).json()["warnings"].clone();
    assert_eq!(warnings, json!([]), "nothing is known about the commands of the task");

    let before = cloud.backend.requests().len();
    let results = cloud.data(&["cloud", "results", id]);
    assert_eq!(
        (&results["state"], &results["diff"], &results["summary"]),
        (&waited["state"], &waited["diff"], &waited["summary"])
    );
    assert_eq!(cloud.run(&["diff", id]).stdout, DIFF);
    let tool = cloud.run(&["cloud", "wait", id, "--envelope", "tool"]).json();
    assert_eq!((&tool["tool"], &tool["data"]["state"]), (&json!("_codex_cloud_wait"), &json!("completed")));
    assert_eq!(cloud.backend.requests().len(), before, "an ended task needs no backend");
}

#[test]
fn a_task_that_changed_nothing_has_no_diff() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Completed], &[]);
    let id = cloud.submitted_id();
    let waited = cloud.data(&["wait", &id]);
    assert_eq!((&waited["diff"], &waited["summary"]), (&Value::Null, &json!("Changed nothing")));
    assert_eq!(cloud.run(&["diff", &id]).stdout, "");
}

#[test]
fn a_failed_task_names_its_page() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Failed], &[]);
    let id = cloud.submitted_id();
    let waited = cloud.data(&["wait", &id]);
    assert_eq!(waited["state"], "failed");
    assert_eq!(waited["metadata"]["error_context"]["failure_kind"], "remote_failed");
    assert!(waited["remote"]["url"].is_string(), "{waited}");
    assert_eq!(cloud.run(&["wait", &id, "--exit-status"]).exit, Some(80));
}

#[test]
fn a_wait_that_expires_can_be_repeated() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Running], &[DIFF]);
    let id = cloud.submitted_id();
    let run = cloud.run(&["cloud", "wait", &id, "--timeout-sec", "1"]);
    assert_eq!(
        (run.exit, &run.json()["meta"]["failure_data"]["state"]),
        (Some(14), &json!("working")),
        "{run:?}"
    );
    let (exit, error) = cloud.error(&["results", &id]);
    assert_eq!((exit, &error["error"]["code"]), (4, &json!("WRONG_STATE")));
    cloud.backend.set_state(&cloud.backend.task_ids()[0], FakeState::Completed);
    assert_eq!(cloud.data(&["wait", &id])["state"], "completed");
}

#[test]
fn without_a_sign_in_there_is_no_task() {
    let cloud = Cloud::signed_out();
    let (_, error) = cloud.error(&["cloud", "submit", "grow", "--env-id", ENVIRONMENT]);
    assert_eq!(error["error"]["code"], "UNAUTHENTICATED");
    assert!(error["error"]["suggestion"].as_str().unwrap().contains("codex login"), "{error}");
    assert_eq!(
        cloud.data(&["cloud", "status"])["summary"],
        json!({"running": 0, "queued": 0, "recently_completed": 0})
    );
    let text = cloud.run(&["cloud", "status", "--format", "human"]).stdout;
    assert!(
        text.ends_with("environments for cloud tasks: mcp-delegator cloud list-environments\n"),
        "{text}"
    );
}

#[test]
fn an_unknown_environment_is_refused_before_anything_is_sent() {
    let cloud = Cloud::new();
    let (_, error) = cloud.error(&["cloud", "submit", "grow", "--env-id", "env_ap"]);
    assert_eq!(error["error"]["code"], "NOT_FOUND");
    assert!(error["error"]["suggestion"].as_str().unwrap().contains(ENVIRONMENT), "{error}");
    let (_, error) = cloud.error(&["cloud", "submit", "grow", "--env-id", "env_fleet"]);
    assert_eq!(error["error"]["code"], "CONFIG_INVALID");
    assert_eq!(cloud.backend.requests(), Vec::<String>::new());
    // Configured here, but not known to the backend.
    let (_, error) = cloud.error(&["cloud", "submit", "grow", "--env-id", "env_gone"]);
    assert_eq!(error["error"]["code"], "INVALID_VALUE", "{error}");
    assert_eq!(cloud.data(&["cloud", "status"])["summary"]["recently_completed"], 0);
}

#[test]
fn what_the_provider_cannot_do_is_refused_with_the_page_of_the_task() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Running], &[]);
    let accepted = cloud.submit();
    let id = accepted["task_id"].as_str().unwrap();
    for args in [
        &["cancel", id] as &[&str],
        &["cloud", "cancel", id],
        &["logs", id],
        &["events", "summarize", id],
        &["resume", "go on", "--task-id", id],
    ] {
        let (_, error) = cloud.error(args);
        assert_eq!(error["error"]["code"], "UNSUPPORTED", "{args:?} {error}");
        assert!(error.to_string().contains(accepted["remote"]["url"].as_str().unwrap()), "{args:?} {error}");
    }
    assert_eq!(cloud.data(&["cloud", "status", id])["summary"]["running"], 1);
}

#[test]
fn a_retry_submits_the_same_task_again() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Failed], &[]);
    let args = ["cloud", "submit", "grow", "--env-id", ENVIRONMENT, "--branch", "dev", "--labels", "team=x"];
    let id = cloud.data(&args)["task_id"].as_str().unwrap().to_owned();
    cloud.data(&["wait", &id]);
    cloud.next_task(&[FakeState::Completed], &[DIFF]);
    let again = cloud.data(&["retry", &id]);
    let new_id = again["task_id"].as_str().unwrap();
    assert_ne!(new_id, id);
    let submissions = cloud.backend.submissions();
    assert_eq!(submissions[0], submissions[1]);
    let waited = cloud.data(&["wait", new_id]);
    assert_eq!((&waited["state"], &waited["labels"]["team"]), (&json!("completed"), &json!("x")));
    let (_, error) = cloud.error(&["retry", &id, "--mode", "read-only"]);
    assert_eq!(error["error"]["code"], "INVALID_VALUE");
}

#[test]
fn a_repeated_key_returns_the_first_task() {
    let cloud = Cloud::new();
    let args = ["cloud", "submit", "grow", "--env-id", ENVIRONMENT, "--idempotency-key", "k1"];
    let (first, second) = (cloud.data(&args), cloud.data(&args));
    assert_eq!(first["task_id"], second["task_id"]);
    assert_eq!(cloud.backend.submissions().len(), 1);
    let (_, error) = cloud.error(&[&args as &[&str], &["--attempts", "2"]].concat());
    assert_eq!(error["error"]["code"], "IDEMPOTENCY_MISMATCH");
}

#[test]
fn a_backend_that_fails_is_reported_and_nothing_is_lost() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Completed], &[DIFF]);
    let id = cloud.submitted_id();
    cloud.backend.set_fault(Some(Fault::HttpError(503)));
    let status = cloud.run(&["cloud", "status"]).json();
    assert_eq!(status["data"]["summary"]["queued"], 1, "the last known state: {status}");
    assert_eq!(status["meta"]["warning_details"][0]["code"], "W_CLOUD_001", "{status}");
    let (exit, error) = cloud.error(&["results", &id]);
    assert_eq!(
        (exit, &error["error"]["code"], &error["error"]["retryable"]),
        (12, &json!("NETWORK_ERROR"), &json!(true))
    );
    // Whether the backend accepted this one is unknown.
    let (_, error) = cloud.error(&["cloud", "submit", "grow", "--env-id", ENVIRONMENT]);
    let unconfirmed = error["context"]["task_id"].as_str().unwrap();
    cloud.backend.set_fault(None);
    assert_eq!(cloud.data(&["wait", &id])["state"], "completed");
    let result = cloud.data(&["results", unconfirmed]);
    assert_eq!(result["metadata"]["error_context"]["failure_kind"], "submission_unconfirmed", "{result}");
}

#[test]
fn people_see_where_a_task_runs_and_what_it_changed() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Completed], &[DIFF]);
    let accepted =
        cloud.run(&["cloud", "submit", "grow", "--env-id", ENVIRONMENT, "--format", "human"]).stdout;
    assert!(accepted.contains("https://chatgpt.com/codex/tasks/"), "{accepted}");
    let shown = cloud.run(&["wait", "--last", "--format", "markdown"]).stdout;
    for expected in [ENVIRONMENT, "https://chatgpt.com/codex/tasks/", "seed.txt", "+grown", "Modified 1 file"]
    {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

impl Cloud {
    /// A completed task, and a repository with the file that it changed.
    fn applicable() -> (Cloud, String) {
        let cloud = Cloud::new();
        cloud.next_task(&[FakeState::Completed], &[DIFF]);
        cloud.write_seed("seed\n");
        let git = |args: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
            let run = cloud.world.run_as(std::path::Path::new("/usr/bin/git"), [&identity, args].concat());
            assert_eq!(run.exit, Some(0), "{run:?}");
        };
        git(&["init", "--quiet"]);
        git(&["add", "seed.txt"]);
        git(&["commit", "--quiet", "-m", "first"]);
        let id = cloud.submitted_id();
        cloud.data(&["wait", &id]);
        (cloud, id)
    }

    fn write_seed(&self, text: &str) {
        self.world.write("project/seed.txt", text);
    }

    fn seed(&self) -> String {
        read_text(&self.world.project().join("seed.txt"))
    }
}

#[test]
fn the_changes_of_a_task_are_applied_and_can_be_reverted() {
    let (cloud, id) = Cloud::applicable();
    let planned = cloud.data(&["cloud", "apply", &id, "--dry-run"]);
    assert_eq!((&planned["is_applied"], &planned["summary"]), (&json!(false), &json!("1 file would change")));
    assert_eq!(cloud.seed(), "seed\n");
    let applied = cloud.data(&["cloud", "apply", &id]);
    let expected = json!([{"path": "seed.txt", "change": "modified", "is_merged": false}]);
    assert_eq!((&applied["is_applied"], &applied["files"]), (&json!(true), &expected));
    assert_eq!(cloud.seed(), "grown\nmore\n");
    let again = cloud.data(&["cloud", "apply", &id]);
    assert_eq!(
        (&again["is_applied"], &again["already_applied_files"]),
        (&json!(false), &json!(["seed.txt"]))
    );
    let restored = cloud.data(&["restore", &id, "--confirm-destructive"]);
    assert_eq!((&restored["is_restored"], cloud.seed()), (&json!(true), "seed\n".to_owned()));
    assert_eq!(cloud.data(&["cloud", "apply", &id])["is_applied"], true, "once more after the restore");
    cloud.data(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(cloud.seed(), "seed\n");
}

#[test]
fn a_conflict_changes_nothing_and_is_named() {
    let (cloud, id) = Cloud::applicable();
    cloud.write_seed("mine\n");
    let (exit, error) = cloud.error(&["cloud", "apply", &id]);
    assert_eq!((exit, &error["error"]["code"]), (4, &json!("WRONG_STATE")));
    assert_eq!(error["context"]["conflicts"][0]["path"], "seed.txt");
    assert_eq!(cloud.seed(), "mine\n");
    let planned = cloud.data(&["cloud", "apply", &id, "--dry-run"]);
    assert_eq!(planned["conflicts"][0]["path"], "seed.txt", "{planned}");
}

#[test]
fn apply_refuses_what_it_cannot_apply() {
    let (cloud, id) = Cloud::applicable();
    let outside = cloud.world.home().display().to_string();
    let (_, error) = cloud.error(&["cloud", "apply", &id, "--working-dir", &outside]);
    assert_eq!(
        (&error["error"]["code"], &error["context"]["field"]),
        (&json!("INVALID_VALUE"), &json!("working_dir"))
    );
    cloud.next_task(&[FakeState::Completed], &[]);
    let unchanged = cloud.submitted_id();
    cloud.data(&["wait", &unchanged]);
    let (_, error) = cloud.error(&["cloud", "apply", &unchanged]);
    assert_eq!(error["error"]["code"], "WRONG_STATE");
    cloud.next_task(&[FakeState::Running], &[]);
    let (_, error) = cloud.error(&["cloud", "apply", &cloud.submitted_id()]);
    assert_eq!(
        (&error["error"]["code"], &error["error"]["retryable"]),
        (&json!("WRONG_STATE"), &json!(true))
    );
}

const OTHER_DIFF: &str =
    "diff --git a/seed.txt b/seed.txt\n--- a/seed.txt\n+++ b/seed.txt\n@@ -1 +1 @@\n-seed\n+other\n";

#[test]
fn each_attempt_has_its_diff() {
    let (cloud, _) = Cloud::applicable();
    cloud.next_task(&[FakeState::Completed], &[DIFF, OTHER_DIFF]);
    let id = cloud.data(&["cloud", "submit", "grow", "--env-id", ENVIRONMENT, "--attempts", "2"])["task_id"]
        .clone();
    let id = id.as_str().unwrap();
    let waited = cloud.run(&["wait", id]).json();
    assert_eq!(waited["data"]["diff"]["text"], DIFF);
    assert_eq!(waited["meta"]["warning_details"][0]["code"], "W_CLOUD_004", "{waited}");
    let markdown = cloud.run(&["results", id, "--format", "markdown"]).stdout;
    for text in [waited["warnings"].to_string(), markdown] {
        assert!(text.contains("2 attempts") && text.contains("--attempt 2"), "{text}");
    }
    assert_eq!(cloud.run(&["diff", id, "--attempt", "2"]).stdout, OTHER_DIFF);
    let (_, error) = cloud.error(&["cloud", "apply", id, "--attempt", "3"]);
    assert_eq!(error["error"]["code"], "INVALID_VALUE", "{error}");
    cloud.data(&["cloud", "apply", id, "--attempt", "2"]);
    assert_eq!(cloud.seed(), "other\n");
}

#[test]
fn a_task_with_an_unreadable_diff_does_not_hide_the_others() {
    let cloud = Cloud::new();
    cloud.next_task(&[FakeState::Completed], &["<html>"]);
    let unreadable = cloud.submitted_id();
    cloud.next_task(&[FakeState::Completed], &[DIFF]);
    let readable = cloud.submitted_id();
    let status = cloud.run(&["cloud", "status"]).json();
    assert_eq!(status["data"]["recently_completed"][0]["task_id"], readable, "{status}");
    assert_eq!(status["meta"]["warning_details"][0]["code"], "W_CLOUD_001", "{status}");
    let (_, error) = cloud.error(&["wait", &unreadable]);
    assert_eq!(error["error"]["code"], "AGENT_PROTOCOL_ERROR", "{error}");
}

/// What the configured command got about the end of a task.
fn notification(world: &World) -> Value {
    let notified = world.home().join("notified");
    wait_until("the notification is delivered", || notified.exists() && read_text(&notified).ends_with('\n'));
    serde_json::from_str(&read_text(&notified)).unwrap()
}

fn notify_by_command(world: &World) {
    world.write(
        "home/.config/mcp-delegator/config.toml",
        "[notify]\ncommand = ['sh', '-c', '{ cat; echo; } >> ~/notified']\n",
    );
}

#[test]
fn the_end_of_a_hosted_task_is_notified() {
    let cloud = Cloud::new();
    notify_by_command(&cloud.world);
    cloud.next_task(&[FakeState::Running, FakeState::Completed], &[DIFF]);
    let id = cloud.submitted_id();
    cloud.data(&["wait", &id]);
    let sent = notification(&cloud.world);
    assert_eq!((&sent["subject"]["id"], &sent["subject"]["state"]), (&json!(id), &json!("completed")));
}
