//! The process around a call: its environment, its streams, its end. A shell script takes the place of Codex.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world must stop")]

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use delegator_codex_cloud::{CloudError, CodexCloud, HostedTaskRef, NewHostedTask};
use delegator_testkit::stage::{is_alive, pids, wait_until};
use tempfile::TempDir;

const URL: &str = "https://chatgpt.com/codex/tasks/task_e_1";

/// A client whose `codex cloud` is a shell script: `sh` runs the file `cloud` in the scratch directory.
struct Script {
    root: TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Script {
    fn new(text: &str) -> Script {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("scratch")).unwrap();
        std::fs::write(root.path().join("scratch/cloud"), format!("PATH=/usr/bin:/bin\n{text}\n")).unwrap();
        let mark = OsString::from(root.path());
        Script { root, variables: vec![("TEST_MARK".into(), mark)] }
    }

    fn variable(mut self, name: &str, value: &str) -> Script {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn client(&self) -> CodexCloud {
        CodexCloud::new(PathBuf::from("/bin/sh"), self.variables.clone(), self.root.path().join("scratch"))
    }

    fn submit(&self, prompt: &str) -> Result<HostedTaskRef, CloudError> {
        self.client().submit(&new_task(prompt))
    }

    /// Whether a process of this test is alive.
    fn has_processes(&self) -> bool {
        let mark = self.root.path().as_os_str().as_encoded_bytes().to_owned();
        pids().into_iter().any(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            is_alive(pid) && environ.windows(mark.len()).any(|window| window == mark)
        })
    }
}

fn new_task(prompt: &str) -> NewHostedTask {
    NewHostedTask { environment: "env_app".to_owned(), prompt: prompt.to_owned(), attempts: 2, branch: None }
}

#[test]
fn the_prompt_is_the_input_and_not_an_argument() {
    let script = Script::new(&format!("echo \"$@\" > args; cat > input; echo {URL}"));
    let prompt = "--help\n".repeat(100_000);
    assert_eq!(script.submit(&prompt).unwrap().id, "task_e_1");
    let scratch = script.root.path().join("scratch");
    assert_eq!(std::fs::read_to_string(scratch.join("input")).unwrap(), prompt);
    let args = std::fs::read_to_string(scratch.join("args")).unwrap();
    assert_eq!(args, "exec --env=env_app --attempts=2 --branch=main -\n");
}

#[test]
fn input_that_is_not_read_is_no_error() {
    let script = Script::new(&format!("echo {URL}"));
    assert_eq!(script.submit(&"x".repeat(1 << 20)).unwrap().url, URL);
}

#[test]
fn a_hanging_call_is_killed_with_its_children_whatever_it_printed() {
    let script = Script::new(&format!("echo {URL}; sleep 600 & sleep 600"));
    let result = script.client().with_time_limit(Duration::from_millis(300)).submit(&new_task("x"));
    assert!(
        matches!(&result, Err(CloudError::Timeout { output, command: "exec", .. }) if output == URL),
        "{result:?}"
    );
    wait_until("all processes have ended", || !script.has_processes());
}

#[test]
fn a_process_that_outlives_the_call_is_killed() {
    let script = Script::new(&format!("sleep 600 & echo {URL}"));
    assert_eq!(script.submit("x").unwrap().id, "task_e_1");
    wait_until("all processes have ended", || !script.has_processes());
}

#[test]
fn endless_output_is_bounded() {
    let script = Script::new("head -c 40000000 /dev/zero | tr '\\0' y");
    let result = script.client().diff("task_e_1", None);
    assert!(
        matches!(&result, Err(CloudError::UnexpectedOutput { output, .. }) if output.len() < 5000),
        "{:?}",
        result.map(|text| text.map(|text| text.len()))
    );
    let script = Script::new(&format!("head -c 1000000 /dev/zero >&2; echo {URL}"));
    assert_eq!(script.submit("x").unwrap().id, "task_e_1");
}

#[test]
fn unexpected_output_is_part_of_the_error_without_secrets() {
    let script = Script::new("echo \"made it with $DEPLOY_TOKEN\"; echo 'and a warning' >&2")
        .variable("DEPLOY_TOKEN", "s3cr3t-Value-4711");
    let error = script.submit("x").unwrap_err().to_string();
    assert!(error.contains("and a warning\nmade it with [REDACTED:env]"), "{error}");
    assert!(!format!("{:?}", script.client()).contains("s3cr3t"));
}

#[test]
fn an_exit_code_or_signal_that_codex_does_not_use_is_unexpected() {
    for (text, status) in [("exit 3", "exit status: 3"), ("kill -9 $$", "signal: 9")] {
        let error = Script::new(text).client().status("task_e_1").unwrap_err();
        assert!(
            matches!(&error, CloudError::UnexpectedOutput { problem, .. } if problem.contains(status)),
            "{error:?}"
        );
    }
}

#[test]
fn variables_that_change_the_output_are_not_passed_on() {
    let script = Script::new("env > env; echo '[READY] x'; echo 'now'; echo 'no diff'")
        .variable("FORCE_COLOR", "1")
        .variable("RUST_BACKTRACE", "1")
        .variable("CODEX_HOME", "/codex");
    script.client().status("task_e_1").unwrap();
    let environment = std::fs::read_to_string(script.root.path().join("scratch/env")).unwrap();
    assert!(
        environment.contains("CODEX_HOME=/codex\n") && environment.contains("NO_COLOR=1\n"),
        "{environment}"
    );
    assert!(!environment.contains("FORCE_COLOR") && !environment.contains("RUST_BACKTRACE"), "{environment}");
}

#[test]
fn the_scratch_directory_is_private_and_holds_no_log() {
    let root = tempfile::tempdir().unwrap();
    let scratch = root.path().join("state/cloud");
    let client = CodexCloud::new(PathBuf::from("/bin/sh"), Vec::new(), scratch.clone());
    // There is no script in a new directory, so the shell fails.
    assert!(client.status("task_e_1").is_err());
    let mode = std::fs::metadata(&scratch).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    let script = Script::new("echo log >> error.log; echo '[READY] x'; echo 'now'; echo 'no diff'");
    script.client().status("task_e_1").unwrap();
    assert!(!script.root.path().join("scratch/error.log").exists());
}

#[test]
fn a_missing_program_is_named() {
    let root = tempfile::tempdir().unwrap();
    let client = CodexCloud::new(PathBuf::from("/missing/codex"), Vec::new(), root.path().to_owned());
    let error = client.status("task_e_1").unwrap_err();
    assert!(
        matches!(error, CloudError::Start { .. }) && error.to_string().contains("/missing/codex"),
        "{error}"
    );
}

#[test]
fn an_id_that_codex_would_take_for_something_else_is_refused() {
    let script = Script::new("echo started > started");
    for id in ["", "--help", "a/b", "task_e_1?x", "task e"] {
        assert!(matches!(script.client().status(id), Err(CloudError::Refused { .. })), "{id}");
        assert!(matches!(script.client().diff(id, Some(1)), Err(CloudError::Refused { .. })), "{id}");
    }
    assert!(!script.root.path().join("scratch/started").exists());
}
