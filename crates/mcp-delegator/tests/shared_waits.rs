//! A process that stays: one thread watches tasks for everybody in it.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId, TaskLocation};
use delegator_engine::wait_thread::{GroupWaitOutcome, Ticket, WaitGoal, WaitThread};
use delegator_engine::{Engine, EngineError};
use delegator_testkit::stage::{Stage, successful_turn, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// Long enough for any machine; nothing here waits for it to pass.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

type WaitResult = Result<GroupWaitOutcome, EngineError>;

fn stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

fn resident(stage: &Stage) -> WaitThread {
    WaitThread::start(Engine {
        state_dir: stage.world.home().join("state"),
        max_concurrent: 8,
        retention_ms: None,
        restore_point_retention_ms: None,
        program: PROGRAM.into(),
        connections: delegator_engine::ConnectionPool::default(),
    })
    .unwrap()
}

fn wait(
    resident: &WaitThread,
    ids: &[&TaskId],
    goal: WaitGoal,
    within: Option<Duration>,
) -> (Ticket, Receiver<WaitResult>) {
    let (tell, told) = channel();
    let ids = ids.iter().map(|id| (*id).clone()).collect();
    let deadline = within.map(|within| Instant::now() + within);
    let ticket = resident.wait(ids, goal, deadline, Box::new(move |how| drop(tell.send(how))));
    (ticket, told)
}

fn submit(stage: &Stage) -> TaskId {
    stage.exec(&[]).parse().unwrap()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn two_hundred_waits_share_one_thread() {
    let stage = stage();
    let ids: Vec<TaskId> = (0..4).map(|_| submit(&stage)).collect();
    let resident = resident(&stage);
    let before = threads();
    let waits: Vec<_> = (0..200)
        .map(|number| wait(&resident, &[&ids[number % 4]], WaitGoal::All, Some(LONG_TIMEOUT)))
        .collect();
    assert_eq!(threads(), before);
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    for (_ticket, told) in waits {
        let told = told.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
        assert_eq!((told.tasks[0].state, told.expired), (State::Completed, false));
    }
}

#[test]
fn any_and_all_waits_end_at_the_right_task() {
    let stage = stage();
    let (one, other) = (submit(&stage), submit(&stage));
    let resident = resident(&stage);
    let (_any, first) = wait(&resident, &[&one, &other], WaitGoal::Any, Some(LONG_TIMEOUT));
    let (_all, last) = wait(&resident, &[&one, &other], WaitGoal::All, Some(LONG_TIMEOUT));
    stage.run_json(&["local", "cancel", other.as_str()]);
    let told = first.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    let states: Vec<State> = told.tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [State::Working, State::Cancelled], "in the order they were asked for");
    assert!(last.try_recv().is_err(), "one of them still works");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    let told = last.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    assert!(told.tasks.iter().all(|task| task.state.is_terminal()));
}

#[test]
fn a_wait_ends_with_its_deadline_or_ticket_and_the_task_continues() {
    let stage = stage();
    let id = submit(&stage);
    let resident = resident(&stage);
    let (_ticket, told) = wait(&resident, &[&id], WaitGoal::All, Some(Duration::from_millis(1)));
    assert!(told.recv_timeout(LONG_TIMEOUT).unwrap().unwrap().expired);
    let (ticket, let_go) = wait(&resident, &[&id], WaitGoal::All, None);
    drop(ticket);
    // The function was dropped unheard: its end of the channel is gone.
    assert!(let_go.recv_timeout(LONG_TIMEOUT).is_err());
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    assert_eq!(stage.wait(id.as_str())["data"]["state"], "completed");
}

#[test]
fn waiting_for_an_unknown_task_is_an_error() {
    let stage = stage();
    let resident = resident(&stage);
    let nobody = TaskId::from_random(TaskLocation::Local, [9; 16]);
    let (_ticket, told) = wait(&resident, &[&nobody], WaitGoal::All, None);
    let refused = told.recv_timeout(LONG_TIMEOUT).unwrap();
    assert!(matches!(refused, Err(EngineError::UnknownTask { .. })), "{refused:?}");
    // The same when there is a registry by now.
    submit(&stage);
    let (_ticket, told) = wait(&resident, &[&nobody], WaitGoal::All, None);
    assert!(told.recv_timeout(LONG_TIMEOUT).unwrap().is_err());
    stage.run_json(&["cancel", "--all"]);
}

#[test]
fn a_wait_rescues_a_task_whose_supervisor_was_killed() {
    let stage = stage();
    let id = submit(&stage);
    let resident = resident(&stage);
    let (_ticket, told) = wait(&resident, &[&id], WaitGoal::All, None);
    wait_until("the agent runs", || !task_processes(id.as_str()).is_empty());
    let supervisor = Pid::from_raw(stage.supervisor_pid(id.as_str())).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let told = told.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    assert_eq!(told.tasks[0].state, State::Failed);
    assert_eq!(task_processes(id.as_str()), Vec::<i32>::new(), "what it left running is ended");
}

#[test]
fn ended_supervisors_are_reaped() {
    // The calls have one slot, whoever stays has eight: it starts the others.
    let stage = stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let ids: Vec<TaskId> = (0..6).map(|_| submit(&stage)).collect();
    let resident = resident(&stage);
    let ids: Vec<&TaskId> = ids.iter().collect();
    let (_ticket, told) = wait(&resident, &ids, WaitGoal::All, None);
    wait_until("all of them run", || ids.iter().all(|id| !task_processes(id.as_str()).is_empty()));
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    told.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    wait_until("no zombie is left", || zombie_children() == 0);
}

fn zombie_children() -> usize {
    let me = std::process::id().to_string();
    let dead = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut words = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
        words.next() == Some("Z") && words.next() == Some(&me)
    };
    delegator_testkit::stage::pids().iter().filter(|pid| dead(pid)).count()
}
