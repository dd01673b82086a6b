//! The real `codex cloud` against a fake backend.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world must stop")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use delegator_codex_cloud::{CloudError, CodexCloud, DiffSize, HostedState, NewHostedTask};
use delegator_testkit::codex::codex_program;
use delegator_testkit::fake_cloud::{ENVIRONMENT, ENVIRONMENT_LABEL, FakeCloud, FakeState, FakeTask, Fault};
use tempfile::TempDir;

const FIRST: &str =
    "diff --git a/seed.txt b/seed.txt\n--- a/seed.txt\n+++ b/seed.txt\n@@ -1 +1 @@\n-seed\n+one\n";
const SECOND: &str =
    "diff --git a/seed.txt b/seed.txt\n--- a/seed.txt\n+++ b/seed.txt\n@@ -1 +1,2 @@\n-seed\n+two\n+extra\n";

/// A backend, and a home of Codex that is signed in.
struct Hosted {
    cloud: FakeCloud,
    root: TempDir,
}

impl Hosted {
    fn start() -> Hosted {
        let hosted = Hosted { cloud: FakeCloud::start(), root: tempfile::tempdir().unwrap() };
        hosted.cloud.sign_in(&hosted.codex_home());
        // A repository around the scratch directory. Codex must not find it.
        let repository = hosted.root.path().join(".git");
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(repository.join(folder)).unwrap();
        }
        std::fs::write(repository.join("HEAD"), "ref: refs/heads/elsewhere\n").unwrap();
        let remote = "[remote \"origin\"]\n\turl = https://github.com/example/other.git\n";
        std::fs::write(repository.join("config"), remote).unwrap();
        hosted
    }

    fn with_task(id: &str, task: FakeTask) -> Hosted {
        let hosted = Hosted::start();
        hosted.cloud.add_task(id, task);
        hosted
    }

    fn codex_home(&self) -> PathBuf {
        self.root.path().join("codex")
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let own = [
            ("PATH", OsString::from("/usr/local/bin:/usr/bin:/bin")),
            ("HOME", self.root.path().into()),
            ("CODEX_HOME", self.codex_home().into()),
            // Codex warns if its home is below the temporary directory.
            ("TMPDIR", self.root.path().join("tmp").into()),
            ("FORCE_COLOR", "1".into()),
            ("RUST_BACKTRACE", "1".into()),
            ("GIT_DIR", self.root.path().join(".git").into()),
        ];
        let own = own.map(|(name, value)| (OsString::from(name), value));
        let cloud = self.cloud.variables().into_iter().map(|(name, value)| (name.into(), value.into()));
        own.into_iter().chain(cloud).collect()
    }

    fn client(&self) -> CodexCloud {
        CodexCloud::new(codex_program(), self.variables(), self.root.path().join("scratch"))
    }
}

fn new_task(environment: &str) -> NewHostedTask {
    NewHostedTask {
        environment: environment.to_owned(),
        prompt: "--fix it\n".to_owned(),
        attempts: 1,
        branch: None,
    }
}

#[test]
fn a_task_is_submitted_and_observed_until_its_diff_is_there() {
    let hosted = Hosted::start();
    let states = [FakeState::Queued, FakeState::Running, FakeState::Completed];
    hosted.cloud.set_next_task(FakeTask::new("").states(&states).diffs(&[FIRST, SECOND]));
    let client = hosted.client();
    let new = NewHostedTask { attempts: 2, branch: Some("dev".to_owned()), ..new_task(ENVIRONMENT) };
    let task = client.submit(&new).unwrap();
    assert_eq!(task.url, format!("https://chatgpt.com/codex/tasks/{}", task.id));
    let body = &hosted.cloud.submissions()[0];
    assert_eq!(body["input_items"][0]["content"][0]["text"], "--fix it\n");
    assert_eq!(body["new_task"]["branch"], "dev");
    assert_eq!(body["metadata"]["best_of_n"], 2);

    let pending = client.status(&task.id).unwrap();
    assert_eq!((pending.state, pending.title.as_str()), (HostedState::Pending, "--fix it"));
    assert_eq!(pending.environment.as_deref(), Some(ENVIRONMENT_LABEL));
    let listed = &client.list(Some(ENVIRONMENT), 20, None).unwrap().tasks[0];
    assert_eq!((listed.id.as_str(), listed.state), (task.id.as_str(), HostedState::Pending));
    let ready = client.status(&task.id).unwrap();
    assert_eq!(ready.state, HostedState::Ready);
    assert_eq!(ready.diff_size, DiffSize { files_changed: 1, lines_added: 1, lines_removed: 1 });
    assert_eq!(client.diff(&task.id, None).unwrap().as_deref(), Some(FIRST));
    assert_eq!(client.diff(&task.id, Some(2)).unwrap().as_deref(), Some(SECOND));
    let error = client.diff(&task.id, Some(3)).unwrap_err();
    assert!(matches!(error, CloudError::AttemptNotFound { attempt: 3, .. }), "{error}");
}

#[test]
fn nothing_of_a_repository_around_the_scratch_directory_is_sent() {
    let hosted = Hosted::start();
    hosted.client().submit(&new_task(ENVIRONMENT_LABEL)).unwrap();
    // Otherwise Codex lists the environments of its remotes first.
    assert_eq!(hosted.cloud.requests(), ["GET /environments", "POST /tasks"]);
    let body = &hosted.cloud.submissions()[0];
    assert_eq!(
        (&body["new_task"]["branch"], &body["new_task"]["environment_id"]),
        (&"main".into(), &ENVIRONMENT.into())
    );
}

#[test]
fn a_failed_and_a_cancelled_task_are_errors_of_the_task_and_not_of_the_call() {
    for state in [FakeState::Failed, FakeState::Cancelled] {
        let hosted = Hosted::with_task("task_e_1", FakeTask::new("Fix\nit").states(&[state]));
        let status = hosted.client().status("task_e_1").unwrap();
        assert_eq!((status.state, status.title.as_str()), (HostedState::Error, "Fix\nit"));
        assert_eq!(hosted.client().list(None, 20, None).unwrap().tasks[0].state, HostedState::Error);
    }
}

#[test]
fn a_task_without_a_diff_has_none() {
    for state in [FakeState::Running, FakeState::Completed] {
        let hosted = Hosted::with_task("task_e_1", FakeTask::new("Fix it").states(&[state]));
        assert_eq!(hosted.client().diff("task_e_1", None).unwrap(), None);
    }
}

#[test]
fn a_list_has_pages() {
    let hosted = Hosted::start();
    for number in 1..=3 {
        hosted.cloud.add_task(&format!("task_e_{number}"), FakeTask::new("x"));
    }
    hosted.cloud.set_page_size(2);
    let client = hosted.client();
    let first = client.list(None, 20, None).unwrap();
    let second = client.list(None, 20, first.cursor.as_deref()).unwrap();
    let ids: Vec<&str> = first.tasks.iter().chain(&second.tasks).map(|task| task.id.as_str()).collect();
    assert_eq!((ids, second.cursor), (vec!["task_e_1", "task_e_2", "task_e_3"], None));
    assert!(matches!(client.list(None, 21, None), Err(CloudError::Refused { .. })));
}

#[test]
fn every_call_needs_a_sign_in() {
    let hosted = Hosted::start();
    let auth = hosted.codex_home().join("auth.json");
    for text in ["{\"auth_mode\":\"apikey\",\"OPENAI_API_KEY\":\"sk-4711471147114711\"}", "{"] {
        std::fs::write(&auth, text).unwrap();
        let result = hosted.client().list(None, 1, None);
        assert!(matches!(result, Err(CloudError::NotSignedIn { .. })), "{result:?}");
    }
    std::fs::remove_file(&auth).unwrap();
    let client = hosted.client();
    assert!(matches!(client.submit(&new_task(ENVIRONMENT)), Err(CloudError::NotSignedIn { .. })));
    assert!(matches!(client.status("task_e_1"), Err(CloudError::NotSignedIn { .. })));
    assert!(matches!(client.diff("task_e_1", None), Err(CloudError::NotSignedIn { .. })));
    assert_eq!(hosted.cloud.requests(), Vec::<String>::new());
}

#[test]
fn unknown_tasks_and_environments_and_bad_arguments_are_distinguished() {
    let hosted = Hosted::start();
    let client = hosted.client();
    assert!(matches!(client.status("task_e_9"), Err(CloudError::NotFound { id }) if id == "task_e_9"));
    assert!(matches!(client.diff("task_e_9", None), Err(CloudError::NotFound { .. })));
    let unknown = client.submit(&new_task("env_unknown"));
    assert!(
        matches!(&unknown, Err(CloudError::EnvironmentNotFound { environment, .. }) if environment == "env_unknown"),
        "{unknown:?}"
    );
    assert!(matches!(client.list(Some("nope"), 20, None), Err(CloudError::EnvironmentNotFound { .. })));
    let too_many = client.submit(&NewHostedTask { attempts: 5, ..new_task(ENVIRONMENT) });
    assert!(matches!(too_many, Err(CloudError::Refused { .. })), "{too_many:?}");
    let empty = client.submit(&NewHostedTask { prompt: " \n".to_owned(), ..new_task(ENVIRONMENT) });
    assert!(matches!(empty, Err(CloudError::Refused { .. })), "{empty:?}");
    assert_eq!(hosted.cloud.submissions().len(), 0);
}

#[test]
fn faults_of_the_backend_are_not_states_of_a_task() {
    let hosted = Hosted::with_task("task_e_1", FakeTask::new("x").states(&[FakeState::Completed]));
    let client = hosted.client();
    for fault in [Fault::HttpError(403), Fault::HttpError(429), Fault::HttpError(500), Fault::Garbage] {
        hosted.cloud.change_task("task_e_1", |task| task.fault = Some(fault));
        let result = client.status("task_e_1");
        assert!(matches!(result, Err(CloudError::Unreachable { .. })), "{fault:?}: {result:?}");
    }
    for fault in [Fault::HttpError(404), Fault::HttpError(503), Fault::Garbage] {
        hosted.cloud.set_fault(Some(fault));
        let result = client.list(None, 20, None);
        assert!(matches!(result, Err(CloudError::Unreachable { .. })), "{fault:?}: {result:?}");
        let result = client.submit(&new_task(ENVIRONMENT));
        assert!(matches!(result, Err(CloudError::Unreachable { .. })), "{fault:?}: {result:?}");
    }
    hosted.cloud.set_fault(Some(Fault::HttpError(401)));
    assert!(matches!(client.list(None, 20, None), Err(CloudError::NotSignedIn { .. })));
}

#[test]
fn a_backend_that_cannot_be_reached_is_an_error() {
    let hosted = Hosted::start();
    let mut variables = hosted.variables();
    variables.push(("HTTPS_PROXY".into(), "http://127.0.0.1:1".into()));
    let client = CodexCloud::new(codex_program(), variables, hosted.root.path().join("scratch"));
    assert!(matches!(client.status("task_e_1"), Err(CloudError::Unreachable { .. })));
    assert!(matches!(client.submit(&new_task(ENVIRONMENT)), Err(CloudError::Unreachable { .. })));
}

#[test]
fn a_request_without_response_ends_at_the_time_limit() {
    let hosted = Hosted::with_task("task_e_1", FakeTask::new("x").fault(Fault::Hang));
    let client = hosted.client().with_time_limit(Duration::from_secs(2));
    let result = client.status("task_e_1");
    assert!(matches!(result, Err(CloudError::Timeout { .. })), "{result:?}");
}
