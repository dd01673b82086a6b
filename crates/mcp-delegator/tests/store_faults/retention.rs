//! Retention: tasks older than `retention_hours` are removed by waiting commands and by every supervisor at its end.

use crate::old_tasks::{self, HOUR_MS, now_ms};
use crate::stage::{Stage, stage_processes, successful_turn, wait_until};

#[test]
fn old_tasks_are_removed_automatically() {
    let stage = Stage::with_state_dir(successful_turn(&[]), None, "retention_hours = 48\n");
    let mut registry = stage.registry();
    trust_the_clock(&stage);
    let old = old_tasks::ended_task(&mut registry, now_ms() - 50 * HOUR_MS);
    let recent = old_tasks::ended_task(&mut registry, now_ms() - 46 * HOUR_MS);
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    // The supervisor does it after the end of its task, when no caller waits any more.
    crate::stage::wait_until(|| registry.get(&old).unwrap().is_none());
    crate::stage::wait_until(|| !stage.task_dir(old.as_str()).exists());
    assert!(registry.get(&recent).unwrap().is_some() && stage.task_dir(recent.as_str()).exists());
    // A pass runs at most once an hour, so a task that has become old meanwhile is kept.
    let next = old_tasks::ended_task(&mut registry, now_ms() - 50 * HOUR_MS);
    assert_eq!(stage.run(&["local", "run", "another"]).exit, Some(0));
    assert!(registry.get(&next).unwrap().is_some());
    // Without an age, a cleanup applies the same setting.
    let cleaned = stage.run_json(&["cleanup-registry"]);
    assert_eq!(cleaned["meta"]["old_threshold_hours"], 48, "{cleaned}");
    assert_eq!(cleaned["data"]["old_tasks"]["deleted"], 1, "{cleaned}");
    assert!(registry.get(&recent).unwrap().is_some());
}

/// Records the clock as two consecutive passes would; the first pass deletes nothing.
pub(crate) fn trust_the_clock(stage: &Stage) {
    stage.run_json(&["cleanup-registry", "--trust-clock", "--old-task-max-age-hours", "87600"]);
}

#[test]
fn the_first_pass_notes_the_clock_and_deletes_nothing() {
    let stage = Stage::with_state_dir(successful_turn(&[]), None, "retention_hours = 48\n");
    let mut registry = stage.registry();
    let old = old_tasks::ended_task(&mut registry, now_ms() - 50 * HOUR_MS);
    stage.run_json(&["local", "run", "anything"]);
    wait_until(|| registry.retention_clock().unwrap().is_some());
    wait_until(|| stage_processes(&stage).is_empty());
    assert!(registry.get(&old).unwrap().is_some());
}

/// The pid of the pruning process, if it runs.
fn prune_process(stage: &Stage) -> Option<i32> {
    let is_prune = |pid: &i32| {
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        cmdline.split(|byte| *byte == 0).nth(1) == Some(b"prune")
    };
    stage_processes(stage).into_iter().find(is_prune)
}

#[test]
fn hanging_repositories_delay_neither_waits_nor_supervisors() {
    let stage = Stage::with_state_dir(successful_turn(&[]), None, "retention_hours = 48\n");
    let mut registry = stage.registry();
    trust_the_clock(&stage);
    let mut old = Vec::new();
    for name in ["one", "two", "three"] {
        let repository = stage.state_dir().join(name);
        std::fs::create_dir_all(repository.join("objects")).unwrap();
        std::fs::create_dir_all(repository.join("refs")).unwrap();
        // The FIFO has no writer, so git blocks in open().
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, repository.join("HEAD"), fifo, 0o600.into(), 0).unwrap();
        old.push(old_tasks::ended_task_with_restore_point(
            &mut registry,
            now_ms() - 50 * HOUR_MS,
            &repository,
        ));
    }
    let id = stage.exec(&[]);
    assert_eq!(stage.wait_for_end(&id)["state"], "completed");
    wait_until(|| old.iter().all(|id| registry.get(id).unwrap().is_none()));
    let pruning_process = prune_process(&stage);
    assert!(pruning_process.is_some(), "there is no pruning process");
    assert_eq!(stage.run_json(&["local", "run", "another"])["data"]["state"], "completed");
    assert_eq!(prune_process(&stage), pruning_process, "the pruning process has ended");
    assert_eq!(
        registry.count_restore_points().unwrap(),
        3,
        "a restore point that was not examined was dropped"
    );
    let pid = rustix::process::Pid::from_raw(pruning_process.unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_until(|| prune_process(&stage).is_none());
    // Opening the FIFO for writing unblocks git.
    for name in ["one", "two", "three"] {
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        let _ = rustix::fs::open(stage.state_dir().join(name).join("HEAD"), flags, rustix::fs::Mode::empty());
    }
}

#[test]
fn a_read_only_command_removes_nothing() {
    let stage = Stage::with_state_dir(successful_turn(&[]), None, "retention_hours = 1\n");
    let mut registry = stage.registry();
    let old = old_tasks::ended_task(&mut registry, now_ms() - 50 * HOUR_MS);
    stage.run_json(&["local", "status"]);
    stage.run_json(&["local", "results", old.as_str()]);
    assert!(registry.get(&old).unwrap().is_some());
}

/// A Codex session that ended long before it is imported.
#[test]
fn retention_of_an_imported_session_counts_from_its_import() {
    let stage = Stage::with_state_dir(successful_turn(&[]), None, "retention_hours = 1\n");
    let session = delegator_testkit::generated::workspace()
        .join("crates/delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl");
    let imported = stage.run_json(&["import", session.to_str().unwrap()]);
    let id: delegator_domain::task::TaskId = imported["data"]["task_id"].as_str().unwrap().parse().unwrap();
    let registry = stage.registry();
    let ended_at_ms = registry.get(&id).unwrap().unwrap().ended.unwrap().at_ms;
    assert!(ended_at_ms < now_ms() - 2 * HOUR_MS, "the session's own end is shown: {ended_at_ms}");
    let dry_run = stage.run_json(&["cleanup-registry", "--dry-run", "--old-task-max-age-hours", "1"]);
    assert_eq!(dry_run["data"]["old_tasks"]["found"], 0, "{dry_run}");
    let cleaned = stage.run_json(&["cleanup-registry", "--old-task-max-age-hours", "1"]);
    assert_eq!(cleaned["data"]["old_tasks"]["deleted"], 0, "{cleaned}");
    assert!(registry.get(&id).unwrap().is_some());
    assert_eq!(stage.run_json(&["local", "results", id.as_str()])["ok"], true);
}
