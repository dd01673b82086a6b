//! The demo turns a failing test into a passing one.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use delegator_scripted_agent::demo;
use delegator_transcript::{Report, StreamOutcome};
use tempfile::TempDir;

use crate::agent::{PROGRAM, program, stderr_text};
use crate::codex_events::report;

fn in_folder(folder: &Path, args: &[&str]) -> Command {
    let mut command = program(args[0]);
    command.args(&args[1..]).current_dir(folder).stdin(Stdio::null());
    command
}

fn git(folder: &Path, args: &[&str]) -> Output {
    let identity =
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let output = in_folder(folder, &[&identity[..], args].concat()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr_text(&output));
    output
}

fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in demo::files() {
        std::fs::write(folder.path().join(file.path), file.text).unwrap();
    }
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-q", "-m", "first"]);
    folder
}

fn test_passes(folder: &Path) -> bool {
    in_folder(folder, &["sh", "test.sh"]).output().unwrap().status.success()
}

fn run_demo(folder: &Path) -> (Output, Report) {
    let args =
        [PROGRAM, "--script", "demo", "exec", "--json", "--sandbox", "workspace-write", "--cd", ".", "-"];
    let output = in_folder(folder, &args).output().unwrap();
    let report = report(&output.stdout);
    (output, report)
}

#[test]
fn the_demo_fixes_the_bug_for_real() {
    let folder = repository();
    assert!(!test_passes(folder.path()), "there is a bug");
    let started_at = Instant::now();
    let (output, report) = run_demo(folder.path());
    assert!(started_at.elapsed() >= Duration::from_secs(3), "progress is visible");
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert!(test_passes(folder.path()), "the bug is gone");

    assert_eq!(report.outcome, StreamOutcome::Completed);
    assert!(report.final_message.unwrap().text.starts_with("Fixed."));
    assert_eq!(report.plan.len(), 3);
    assert!(report.plan.iter().all(|step| step.completed));
    assert!(report.open_items.is_empty() && report.oddities.is_empty() && report.warnings.is_empty());

    let stream = String::from_utf8(output.stdout).unwrap();
    let runs: Vec<&str> = stream
        .lines()
        .filter(|line| line.contains("item.completed") && line.contains("-c 'sh test.sh'"))
        .collect();
    assert!(runs[0].contains("FAIL  1900: expected no, found yes") && runs[0].contains("\"exit_code\":1"));
    assert!(runs[1].contains("0 failed") && runs[1].contains("\"exit_code\":0"));
    let changed = git(folder.path(), &["diff", "--name-only"]);
    assert_eq!(changed.stdout, b"leap.sh\n");
}

#[test]
fn the_demo_fails_when_the_test_still_fails() {
    let folder = repository();
    std::fs::write(folder.path().join("leap.sh"), "is_leap() { false; }\n").unwrap();
    let (output, report) = run_demo(folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(matches!(report.outcome, StreamOutcome::Failed { .. }), "{:?}", report.outcome);
}

#[test]
fn the_demo_has_a_task_and_a_script() {
    assert!(demo::task().contains("test.sh"));
    assert!(demo::script().is_ok());
    assert!(delegator_scripted_agent::hello().is_ok());
}
