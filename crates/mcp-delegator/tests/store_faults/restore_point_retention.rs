//! Restore points with the only copy of some content outlive their task, and a clock jump deletes nothing.

use std::path::PathBuf;

use delegator_testkit::program::{RunOutput, faketime_library};
use serde_json::{Value, json};

use crate::stage::{Stage, successful_turn};

const GIT: &str = "/usr/bin/git";

#[track_caller]
fn git(stage: &Stage, args: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let run = stage.world.run_as(&PathBuf::from(GIT), [&identity, args].concat());
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.stdout
}

/// A repository with one commit, and a finished writing task in it.
fn stage_after_task(is_dirty: bool) -> (Stage, String) {
    let stage = Stage::with_state_dir(
        successful_turn(&[json!({"write_file": {"path": "code.txt", "text": "agent\n"}})]),
        None,
        "",
    );
    stage.world.write("project/code.txt", "committed\n");
    git(&stage, &["init", "--quiet", "--initial-branch=main"]);
    git(&stage, &["add", "."]);
    git(&stage, &["commit", "--quiet", "-m", "first"]);
    if is_dirty {
        stage.world.write("project/code.txt", "mine, and nowhere else\n");
        stage.world.write("project/notes.txt", "mine\n");
    }
    let id = stage.exec(&["--mode", "workspace-write"]);
    assert_eq!(stage.wait_for_end(&id)["state"], "completed");
    (stage, id)
}

/// Whether the repository contains a ref of the task's restore point.
fn has_restore_point(stage: &Stage, id: &str) -> bool {
    let common = stage.world.project().join(".git");
    [common.clone(), common.join("mcp-delegator")].iter().any(|dir| {
        let option = format!("--git-dir={}", dir.display());
        let run = stage.world.run_as(&PathBuf::from(GIT), [&option, "for-each-ref", "--format=%(refname)"]);
        run.stdout.lines().any(|name| name == format!("refs/mcp-delegator/{id}"))
    })
}

/// Runs a command with a wall clock that is some hours ahead.
fn run_hours_later(stage: &Stage, hours: u32, args: &[&str]) -> RunOutput {
    let library = faketime_library();
    let mut command = stage.world.command(args);
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", format!("+{hours}h"))
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    delegator_testkit::program::wait_for_output(command.spawn().unwrap())
}

#[track_caller]
fn clean_hours_later(stage: &Stage, hours: u32, more: &[&str]) -> Value {
    let run = run_hours_later(
        stage,
        hours,
        &[&["cleanup-registry", "--old-task-max-age-hours", "1"], more].concat(),
    );
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.json()["data"].clone()
}

fn is_registered(stage: &Stage, id: &str) -> bool {
    stage.registry().get(&id.parse().unwrap()).unwrap().is_some()
}

#[test]
fn a_restore_point_with_unique_content_outlives_its_task_until_it_expires() {
    let (stage, id) = stage_after_task(true);
    let planned = clean_hours_later(&stage, 3, &["--dry-run"])["restore_points"].clone();
    assert_eq!((&planned["retained_count"], &planned["dropped_count"]), (&json!(1), &json!(0)), "{planned}");
    let cleaned = clean_hours_later(&stage, 3, &[]);
    assert_eq!(cleaned["old_tasks"]["deleted"], 1, "{cleaned}");
    assert!(!is_registered(&stage, &id) && has_restore_point(&stage, &id));
    let item = &cleaned["restore_points"]["items"][0];
    assert_eq!(*item, planned["items"][0]);
    assert_eq!(
        (item["task_id"].as_str(), item["ref"].as_str()),
        (Some(&*id), Some(&*format!("refs/mcp-delegator/{id}")))
    );
    assert!(item["repository"].as_str().unwrap().ends_with("project/.git"), "{item}");
    assert_eq!(item["reason"], "holds content that no branch has");
    assert!(item["expires_ts"].is_string(), "{item}");
    let human = run_hours_later(&stage, 3, &["cleanup-registry", "--dry-run", "--format", "human"]).stdout;
    assert!(human.contains(&id) && human.contains("holds content that no branch has"), "{human}");
    // 720 hours after the end of the task, with a clock the user trusts.
    let expired = clean_hours_later(&stage, 722, &["--trust-clock"]);
    assert_eq!(expired["restore_points"]["dropped_count"], 1, "{expired}");
    assert_eq!(expired["restore_points"]["retained_count"], 0, "{expired}");
    assert!(!has_restore_point(&stage, &id));
}

#[test]
fn a_restore_point_without_unique_content_is_dropped_with_its_task() {
    let (stage, id) = stage_after_task(false);
    assert!(has_restore_point(&stage, &id));
    assert_eq!(clean_hours_later(&stage, 3, &["--dry-run"])["restore_points"]["retained_count"], 0);
    let cleaned = clean_hours_later(&stage, 3, &[]);
    assert_eq!(cleaned["restore_points"]["dropped_count"], 1, "{cleaned}");
    assert!(!has_restore_point(&stage, &id) && !is_registered(&stage, &id));
}

#[test]
fn the_user_can_drop_retained_restore_points() {
    let (stage, id) = stage_after_task(true);
    // Before the task is removed from the registry, and after.
    for _ in 0..2 {
        let planned = clean_hours_later(&stage, 3, &["--include-restore-points", "--dry-run"]);
        let points = &planned["restore_points"];
        assert_eq!(
            (&points["dropped_count"], &points["retained_count"]),
            (&json!(1), &json!(0)),
            "{planned}"
        );
        assert_eq!(points["dropped_items"][0]["task_id"], json!(id), "{planned}");
        assert!(has_restore_point(&stage, &id));
        clean_hours_later(&stage, 3, &[]);
    }
    clean_hours_later(&stage, 3, &[]);
    assert!(has_restore_point(&stage, &id));
    let cleaned = clean_hours_later(&stage, 3, &["--include-restore-points"]);
    assert_eq!(cleaned["restore_points"]["dropped_count"], 1, "{cleaned}");
    assert!(!has_restore_point(&stage, &id));
}

/// The unreadable ones come first, and are more than the report lists.
#[test]
fn every_restore_point_is_dropped_or_reported() {
    const UNREADABLE: usize = 250;
    let (stage, id) = stage_after_task(true);
    let mut database = rusqlite::Connection::open(stage.database()).unwrap();
    let insert = database.transaction().unwrap();
    for number in 0..UNREADABLE {
        let sql = "INSERT INTO restore_points (task, repository, reference, point, task_ended_at_ms) \
                   VALUES (?1, '/', ?2, '{', 0)";
        let values = ("T-local-0000000000", format!("refs/mcp-delegator/{number}"));
        insert.execute(sql, values).unwrap();
    }
    insert.commit().unwrap();
    let args = ["cleanup-registry", "--old-task-max-age-hours", "1", "--include-restore-points"];
    let run = run_hours_later(&stage, 3, &args);
    assert_eq!(run.exit, Some(3), "{run:?}");
    let data = run.json()["meta"]["failure_data"].clone();
    let points = &data["restore_points"];
    assert_eq!((&points["dropped_count"], &points["retained_count"]), (&json!(1), &json!(UNREADABLE)));
    assert_eq!(data["failed"], UNREADABLE, "{data}");
    assert!(!has_restore_point(&stage, &id));
}

#[test]
fn a_missing_repository_keeps_its_restore_point_record() {
    let (stage, id) = stage_after_task(false);
    let (project, away) = (stage.world.project(), stage.world.home().join("away"));
    std::fs::rename(project.join(".git"), &away).unwrap();
    for more in [&[][..], &["--include-restore-points"]] {
        let cleaned = clean_hours_later(&stage, 3, more);
        assert_eq!(
            cleaned["restore_points"]["items"][0]["reason"], "the repository is not there",
            "{cleaned}"
        );
    }
    std::fs::rename(&away, project.join(".git")).unwrap();
    let cleaned = clean_hours_later(&stage, 3, &[]);
    assert_eq!(cleaned["restore_points"]["dropped_count"], 1, "{cleaned}");
    assert!(!has_restore_point(&stage, &id));
}

#[test]
fn a_clock_jump_deletes_nothing() {
    let (stage, id) = stage_after_task(true);
    crate::stage::wait_until(|| stage.registry().retention_clock().unwrap().is_some());
    let sixty_days = 60 * 24;
    let refused = run_hours_later(&stage, sixty_days, &["cleanup-registry"]);
    assert_eq!(refused.exit, Some(4), "{refused:?}");
    let error = refused.json()["error"].clone();
    assert!(error["suggestion"].as_str().unwrap().contains("--trust-clock"), "{error}");
    let planned = run_hours_later(&stage, sixty_days, &["cleanup-registry", "--dry-run"]).json();
    assert!(planned["warnings"].to_string().contains("W_CLEANUP_003"), "{planned}");
    // A waiting command runs a retention pass of its own.
    let run = run_hours_later(&stage, sixty_days, &["local", "run", "another"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let clock = stage.registry().retention_clock().unwrap().unwrap();
    assert!(clock.contains("\"needed_ms\":86400000"), "the jump was not recorded: {clock}");
    assert!(is_registered(&stage, &id) && has_restore_point(&stage, &id));
    let trusted = run_hours_later(&stage, sixty_days, &["cleanup-registry", "--trust-clock"]);
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    assert!(!is_registered(&stage, &id));
}

#[test]
fn dropping_the_restore_points_of_a_removed_task_deletes_their_record() {
    let (stage, id) = stage_after_task(true);
    clean_hours_later(&stage, 3, &[]);
    assert_eq!(stage.registry().count_restore_points().unwrap(), 1);
    let dropped = stage.run_json(&["restore", &id, "--drop", "--confirm-destructive"]);
    assert_eq!(dropped["data"]["dropped"].as_array().unwrap().len(), 1, "{dropped}");
    assert!(!has_restore_point(&stage, &id));
    assert_eq!(stage.registry().count_restore_points().unwrap(), 0);
}

#[test]
fn what_there_is_of_an_interrupted_worktree_is_removed_with_its_task() {
    let (stage, _) = stage_after_task(true);
    stage.run_json(&["queue", "pause"]);
    let isolated = ["--mode", "workspace-write", "--isolation", "worktree", "--carry-dirty"];
    let id = stage.exec(&isolated);
    let worktree = stage.run_json(&["status", &id])["data"]["worktree"].as_str().unwrap().to_owned();
    // As if the supervisor had been killed before the files were complete.
    let git_dirs = PathBuf::from(format!("{}-worktree-git", stage.state_dir().display()));
    std::fs::create_dir_all(git_dirs.join(&id).join("git/objects")).unwrap();
    std::fs::create_dir_all(&worktree).unwrap();
    git(&stage, &["update-ref", &format!("refs/mcp-delegator-worktrees/{id}"), "HEAD"]);
    std::fs::write(PathBuf::from(&worktree).join("half"), "").unwrap();
    stage.run_json(&["cancel", &id]);

    let cleaned = clean_hours_later(&stage, 3, &[]);
    assert_eq!(cleaned["old_tasks"]["deleted"], 2, "{cleaned}");
    assert_eq!(git(&stage, &["for-each-ref", "refs/mcp-delegator-worktrees"]), "");
    for directory in [PathBuf::from(&worktree).parent().unwrap(), &git_dirs] {
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "{}", directory.display());
    }
}
