//! Resource leaks: after many short tasks, the descriptors and threads of a waiting process, zombies, sockets,
//! launch files and task directories are as before. `LEAK_TASKS=10000` runs more tasks.

use std::path::Path;
use std::process::{Child, Stdio};

use delegator_domain::task::State;
use delegator_testkit::program::wait_for_output;
use serde_json::json;

use crate::stage::{Stage, env_number, stage_processes, successful_turn, wait_until};

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Open descriptors and threads of a process.
fn open_handles(child: &Child) -> (usize, usize) {
    let process = Path::new("/proc").join(child.id().to_string());
    (entries(&process.join("fd")), entries(&process.join("task")))
}

/// Unreaped dead children of these processes.
fn zombies_of(parents: &[i32]) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok());
    let is_zombie = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut rest = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        rest.next() == Some("Z")
            && rest.next().is_some_and(|parent| parents.contains(&parent.parse().unwrap()))
    };
    pids.filter(is_zombie).collect()
}

/// Files with these names in all task directories.
fn files_named(stage: &Stage, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(stage.state_dir().join("tasks")).unwrap() {
        for file in std::fs::read_dir(task.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if names.iter().any(|name| path.ends_with(name)) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn f16_many_short_tasks_leave_no_resources() {
    let tasks = env_number("LEAK_TASKS", 200);
    let stage = Stage::with_script(successful_turn(&[
        json!({"touch_file": "ready"}),
        json!({"wait_for_file": "go"}),
    ]))
    .variable("MCP_DELEGATOR_MAX_CONCURRENT", "5");
    // A long task with a waiting process, which also starts and reaps supervisors.
    let long = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    stage.world.write("script.json", &json!({"steps": successful_turn(&[])}).to_string());
    let mut command = stage.world.command(["local", "wait", &long]);
    let waiting_process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stage.run_json(&["local", "run", "warm up"]);
    wait_until(|| open_handles(&waiting_process).0 > 5);
    let (descriptors, threads) = open_handles(&waiting_process);
    for _ in 0..tasks {
        stage.exec(&[]);
    }
    let mut registry = stage.registry();
    wait_until(|| registry.counts().unwrap().of(State::Completed) == tasks + 1);
    let (now, threads_now) = open_handles(&waiting_process);
    assert!(now.abs_diff(descriptors) <= 5, "descriptors: {descriptors} before, {now} now");
    assert!(threads_now.abs_diff(threads) <= 2, "threads: {threads} before, {threads_now} now");
    stage.touch("go");
    assert_eq!(stage.wait_for_end(&long)["state"], "completed");
    let waiter = i32::try_from(waiting_process.id()).unwrap();
    assert_eq!(zombies_of(&[waiter]), Vec::<i32>::new());
    assert_eq!(wait_for_output(waiting_process).exit, Some(0));
    // Supervisors exit shortly after the end of their task.
    wait_until(|| stage_processes(&stage).is_empty());
    assert_eq!(files_named(&stage, &["launch", "control.sock"]), Vec::<String>::new());
    let all: Vec<_> = registry.ended_before(i64::MAX, u32::MAX).unwrap();
    assert_eq!(all.len() as u64, tasks + 2);
    assert_eq!(registry.prune(&all).unwrap().pruned.len(), all.len());
    assert_eq!(entries(&stage.state_dir().join("tasks")), 0, "directories were left");
}
