//! A chain survives crashes between its links: every task of it starts exactly once.

use delegator_domain::crash::CrashPoint;
use delegator_domain::task::State;
use serde_json::json;

use super::Stage;
use crate::scripted::{agent_starts, supervisors, wait_until};

/// Between the end of one task and the work of the next one, in the supervisor of either or in another process.
const POINTS: [CrashPoint; 6] = [
    CrashPoint::EndCommitted,
    CrashPoint::StartLocked,
    CrashPoint::LaunchDropped,
    CrashPoint::LockAdopted,
    CrashPoint::EndCommitted,
    CrashPoint::SuccessorsStarted,
];

#[test]
fn a_chain_of_five_with_a_kill_between_all_links_starts_each_task_once() {
    let mut stage = Stage::new();
    stage.release_agent();
    let chain =
        json!({"task": "2", "on_success": {"task": "3", "on_success": {"task": "4", "on_success": "5"}}});
    let point = |stage: &Stage| POINTS[stage.crashes() % POINTS.len()].name();
    let args = ["local", "exec", "1", "--on-success", &chain.to_string()];
    let output = stage.run_with_crash_point(point(&stage), &args);
    let response = serde_json::from_slice(&output.stdout).unwrap();
    stage.acknowledge(&response);
    for follower in response["data"]["followers"].as_array().unwrap() {
        stage.acknowledged.push(follower["task_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(stage.acknowledged.len(), 5, "{response}");
    let start = std::time::Instant::now();
    while stage.tasks().iter().any(|task| !task.state.is_terminal()) {
        assert!(start.elapsed().as_secs() < 120, "the chain does not continue: {:?}", stage.tasks());
        // What this process starts crashes at the next point. It starts nothing until the last claim is old enough.
        stage.run_with_crash_point(point(&stage), &["local", "status"]);
        wait_until("the supervisor is gone", || supervisors(&stage.root).is_empty());
    }
    let tasks = stage.tasks();
    assert!(tasks.iter().all(|task| task.state == State::Completed), "{tasks:?}");
    let starts = agent_starts(&stage.root);
    assert!(stage.acknowledged.iter().all(|id| starts.get(id) == Some(&1)), "{starts:?}");
    assert_eq!(starts.len(), 5, "{starts:?}");
    assert!(stage.crashes() >= 5, "a kill between all links: {}", stage.crashes());
    let mut by_end: Vec<_> =
        tasks.iter().map(|task| (task.ended.as_ref().unwrap().order, &task.id)).collect();
    by_end.sort();
    let ended: Vec<String> = by_end.into_iter().map(|(_, id)| id.to_string()).collect();
    assert_eq!(ended, stage.acknowledged, "one after the other");
}

/// A crash while a chain is stored leaves all of its tasks or none.
#[test]
fn a_crash_while_a_chain_is_submitted_leaves_all_of_it_or_nothing() {
    for (point, time, expected) in [
        (CrashPoint::LaunchWritten, 2, 0),
        (CrashPoint::DirectorySynced, 3, 0),
        (CrashPoint::RowCommitted, 1, 3),
        (CrashPoint::SubmitLeft, 2, 3),
    ] {
        let stage = Stage::new();
        stage.release_agent();
        let chain = json!({"task": "2", "on_success": "3"}).to_string();
        let name = format!("{}*{time}", point.name());
        stage.crash(&name, &["local", "exec", "1", "--on-success", &chain]);
        stage.run_json(&["local", "status"]);
        assert_eq!(stage.tasks().len(), expected, "{name}");
        let directories = std::fs::read_dir(stage.root.join("home/state/tasks")).unwrap().count();
        assert_eq!(directories, expected, "{name}: files without a task are removed");
        wait_until("the chain ends", || {
            stage.run_json(&["local", "status"]);
            stage.tasks().iter().all(|task| task.state == State::Completed)
        });
    }
}
