//! F14, F16, F17: too many processes, and none left behind.

use delegator_testkit::stage::{Stage, pids, processes_of, turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{ends_of, playing};

#[test]
fn f14_a_tree_that_grows_too_big_is_put_out_and_the_others_live() {
    let stage = playing(turn(&[json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "2")
        .variable("MCP_DELEGATOR_MAX_PROCESSES", "20");
    let other = stage.exec(&[]);
    stage.until_there("ready");
    stage.play(turn(&[json!({"fork_tree": {"processes": 60, "width": 3, "seconds": 300}}), json!("silent")]));
    let id = stage.exec(&[]);
    assert_eq!(stage.answer(&["local", "status"])["ok"], true, "questions are answered meanwhile");
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "too_many_processes", "{data}");
    assert_eq!(processes_of(&id), Vec::<i32>::new());
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&other)["data"]["state"], "completed");
}

#[test]
fn f14_a_cancelled_tree_is_gone() {
    let stage = playing(turn(&[json!({"fork_tree": {"processes": 40, "width": 3, "seconds": 300}}), json!("silent")]));
    let id = stage.exec(&[]);
    delegator_testkit::stage::until("the tree has grown", || processes_of(&id).len() >= 40);
    let answer = stage.answer(&["local", "cancel", &id]);
    assert_eq!((&answer["data"]["state"], &answer["data"]["survivors"]), (&json!("cancelled"), &json!([])));
    assert_eq!(processes_of(&id), Vec::<i32>::new());
}

/// Processes of this world: supervisors carry its state directory, agents work in its project.
fn alive_in(stage: &Stage) -> usize {
    let root = stage.root().display().to_string();
    let belongs = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&root)
    };
    pids().iter().filter(|pid| belongs(pid)).count()
}

#[test]
fn f16_many_tasks_leave_nothing_behind() {
    let stage = playing(turn(&[json!({"child": {"session": "own", "orphan": true}})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "4");
    let ids: Vec<String> = (0..24).map(|_| stage.exec(&[])).collect();
    for id in &ids {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
    // A supervisor writes the end down a moment before its own.
    delegator_testkit::stage::until("all supervisors have ended", || alive_in(&stage) == 0);
    for id in &ids {
        let files = std::fs::read_dir(stage.task_dir(id)).unwrap().flatten();
        let names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        assert!(!names.iter().any(|name| name == "launch" || name.contains("sock.")), "{names:?}");
    }
    assert_eq!(sockets(&stage, &ids), Vec::<String>::new());
}

/// Sockets of these tasks, wherever they were put.
fn sockets(stage: &Stage, ids: &[String]) -> Vec<String> {
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap();
    let root = stage.root().display().to_string();
    let is_ours = |line: &&str| line.contains(&root) || ids.iter().any(|id| line.contains(id.as_str()));
    listed.lines().filter(is_ours).map(str::to_owned).collect()
}

#[test]
fn f17_a_killed_supervisor_is_a_visible_loss() {
    let stage = playing(turn(&[
        json!({"message": "so far"}),
        json!({"child": {"session": "own", "orphan": true, "ignore": ["TERM", "INT"]}}),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ]));
    let id = stage.exec(&[]);
    stage.until_there("ready");
    kill_process(Pid::from_raw(stage.supervisor_of(&id)).unwrap(), Signal::KILL).unwrap();
    let data: Value = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "failed", "{data}");
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "supervisor_lost");
    let output = data["output"]["stdout"].as_str().unwrap();
    assert!(output.contains("so far"), "what it had done is kept: {data}");
    assert_eq!(processes_of(&id), Vec::<i32>::new());
    assert_eq!(ends_of(&stage, &id), ["failed"]);
}
