//! Processes of a task: process limits, containment, and a killed supervisor.

use std::path::PathBuf;

use delegator_testkit::program::output_of;
use delegator_testkit::stage::{Stage, is_alive, pids, successful_turn, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{scripted_stage, terminal_states};

#[test]
fn f14_too_many_processes_fail_the_task_and_no_other() {
    let stage =
        scripted_stage(successful_turn(&[json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})]))
            .variable("MCP_DELEGATOR_MAX_CONCURRENT", "2")
            .variable("MCP_DELEGATOR_MAX_PROCESSES", "20");
    let other = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    stage.set_script(successful_turn(&[
        json!({"fork_tree": {"processes": 60, "width": 3, "seconds": 300}}),
        json!("silent"),
    ]));
    let id = stage.exec(&[]);
    assert_eq!(stage.run_json(&["local", "status"])["ok"], true, "status does not respond meanwhile");
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "too_many_processes", "{data}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&other)["data"]["state"], "completed");
}

#[test]
fn f14_cancel_kills_a_large_process_tree() {
    let stage = scripted_stage(successful_turn(&[
        json!({"fork_tree": {"processes": 40, "width": 3, "seconds": 300}}),
        json!("silent"),
    ]));
    let id = stage.exec(&[]);
    wait_until("the process tree has grown", || task_processes(&id).len() >= 40);
    let response = stage.run_json(&["local", "cancel", &id]);
    assert_eq!(
        (&response["data"]["state"], &response["data"]["survivors"]),
        (&json!("cancelled"), &json!([]))
    );
    assert_eq!(task_processes(&id), Vec::<i32>::new());
}

/// The number of live processes of this world: their environment contains its root directory.
fn live_processes(stage: &Stage) -> usize {
    let root = stage.root().display().to_string();
    let belongs = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&root)
    };
    pids().iter().filter(|pid| belongs(pid)).count()
}

#[test]
fn f16_many_tasks_leave_nothing_behind() {
    let stage = scripted_stage(successful_turn(&[json!({"child": {"session": "own", "orphan": true}})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "4");
    let ids: Vec<String> = (0..24).map(|_| stage.exec(&[])).collect();
    for id in &ids {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
    // A supervisor exits shortly after it records the terminal state.
    wait_until("all supervisors have ended", || live_processes(&stage) == 0);
    for id in &ids {
        let files = std::fs::read_dir(stage.task_dir(id)).unwrap().flatten();
        let names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        assert!(!names.iter().any(|name| name == "launch" || name.contains("sock.")), "{names:?}");
    }
    assert_eq!(sockets(&stage, &ids), Vec::<String>::new());
    assert_eq!(ids.iter().filter_map(|id| cgroup_of(id)).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

/// The cgroup of a task, if it exists.
fn cgroup_of(id: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    let mut open = vec![PathBuf::from(mount.split(' ').nth(1)?)];
    while let Some(folder) = open.pop() {
        if folder.ends_with(format!("mcp-delegator-{id}")) {
            return Some(folder);
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        open.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    None
}

/// The containment method that `doctor` reports.
fn best_containment(stage: &Stage) -> String {
    let checks = stage.world.doctor_checks();
    let check = checks.as_array().unwrap().iter().find(|check| check["name"] == "containment").unwrap();
    let message = check["message"].as_str().unwrap();
    message.split([':', ',']).next().unwrap().to_owned()
}

#[test]
fn f16_the_containment_is_reported_and_removed_with_the_task() {
    for wanted in ["auto", "subreaper"] {
        let stage = scripted_stage(successful_turn(&[
            json!({"touch_file": "ready"}),
            json!({"wait_for_file": "go"}),
        ]))
        .variable("MCP_DELEGATOR_CONTAINMENT", wanted);
        let expected = best_containment(&stage);
        assert!(wanted == "auto" || expected == "subreaper", "{expected}");
        let id = stage.exec(&[]);
        stage.wait_for_project_file("ready");
        assert_eq!(stage.run_json(&["local", "status"])["data"]["tasks"][0]["containment"], expected);
        let supervisor = stage.supervisor_pid(&id);
        if expected == "cgroup" {
            let group = cgroup_of(&id).unwrap().join("cgroup.procs");
            let members = || -> Vec<i32> {
                let list = std::fs::read_to_string(&group).unwrap();
                list.lines().map(|line| line.parse().unwrap()).collect()
            };
            wait_until("all processes are in the cgroup", || {
                task_processes(&id).iter().all(|pid| members().contains(pid))
            });
            assert!(!members().is_empty() && !members().contains(&supervisor), "{:?}", members());
        }
        stage.world.write("project/go", "");
        assert_eq!(stage.wait(&id)["data"]["metadata"]["containment"], expected);
        assert_eq!(cgroup_of(&id), None);
    }
}

#[test]
fn f16_every_terminal_state_removes_the_cgroup() {
    let stage = scripted_stage(successful_turn(&[json!({"touch_file": "ready"}), json!("silent")]));
    let cancelled = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    stage.run_json(&["local", "cancel", &cancelled]);
    stage.set_script(successful_turn(&[json!("silent")]));
    let timed_out = stage.exec(&["--idle-timeout-sec", "1"]);
    stage.wait(&timed_out);
    stage.write_program("scrap", "x");
    let invalid_program = stage.root().join("scrap");
    let mut command = stage.world.command(["local", "run", "x"]);
    let failed_start = output_of(command.env("MCP_DELEGATOR_CODEX_BIN", invalid_program)).json();
    let failed_start = failed_start["meta"]["error_context"]["task_id"].as_str().unwrap().to_owned();
    for id in [&cancelled, &timed_out, &failed_start] {
        assert_eq!(cgroup_of(id), None);
    }
    // A process that is exempt from the sweep is moved out of the cgroup.
    let daemon = stage.root().join("builddaemon");
    std::fs::copy("/bin/sleep", &daemon).unwrap();
    let run = format!(
        "setsid {0} 300 >/dev/null 2>&1 & echo $! > daemon; until [ \"$(readlink /proc/$!/exe)\" = {0} ]; do :; done",
        daemon.canonicalize().unwrap().display()
    );
    stage.set_script(successful_turn(&[json!({"command": {"run": run}})]));
    let stage = stage.variable("MCP_DELEGATOR_SWEEP_EXEMPT", "builddaemon");
    let id = stage.exec(&[]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    let pid: i32 =
        std::fs::read_to_string(stage.world.project().join("daemon")).unwrap().trim().parse().unwrap();
    assert_eq!((is_alive(pid), cgroup_of(&id)), (true, None));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Open sockets of these tasks.
fn sockets(stage: &Stage, ids: &[String]) -> Vec<String> {
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap();
    let root = stage.root().display().to_string();
    let is_ours = |line: &&str| line.contains(&root) || ids.iter().any(|id| line.contains(id.as_str()));
    listed.lines().filter(is_ours).map(str::to_owned).collect()
}

#[test]
fn f17_a_killed_supervisor_fails_its_task_and_its_tree_is_swept() {
    let stage = scripted_stage(successful_turn(&[
        json!({"message": "so far"}),
        json!({"child": {"session": "own", "orphan": true, "ignore": ["TERM", "INT"]}}),
        // Without environment it carries no task marker; only the cgroup identifies it.
        json!({"child": {"session": "own", "orphan": true, "clear_env": true, "pid_file": "unmarked"}}),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ]));
    let unmarked = || {
        let text = std::fs::read_to_string(stage.world.project().join("unmarked")).unwrap();
        text.trim().parse::<i32>().unwrap()
    };
    let id = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    if let Some(group) = cgroup_of(&id) {
        let is_in = |list: &str| list.lines().any(|line| line == unmarked().to_string());
        wait_until("the process is in the cgroup", || {
            is_in(&std::fs::read_to_string(group.join("cgroup.procs")).unwrap())
        });
    }
    kill_process(Pid::from_raw(stage.supervisor_pid(&id)).unwrap(), Signal::KILL).unwrap();
    let data: Value = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "failed", "{data}");
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "supervisor_lost");
    let output = data["output"]["stdout"].as_str().unwrap();
    assert!(output.contains("so far"), "the partial output is missing: {data}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
    assert_eq!(terminal_states(&stage, &id), ["failed"]);
    if data["metadata"]["containment"] == "cgroup" {
        assert!(!is_alive(unmarked()), "a process of the cgroup survived");
        assert_eq!(cgroup_of(&id), None, "the cgroup was not removed");
    } else {
        kill_process(Pid::from_raw(unmarked()).unwrap(), Signal::KILL).unwrap();
    }
}
