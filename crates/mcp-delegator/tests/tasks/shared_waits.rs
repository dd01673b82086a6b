//! Waiting in a long-lived process: one thread watches the tasks of all callers.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId, TaskLocation};
use delegator_engine::wait_thread::{GroupWaitOutcome, Ticket, WaitGoal, WaitThread};
use delegator_engine::{Engine, EngineError};
use delegator_testkit::stage::{Stage, successful_turn, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::PROGRAM;
/// Long enough for any machine; no test waits for it to expire.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

type WaitResult = Result<GroupWaitOutcome, EngineError>;

fn stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

fn start_wait_thread(stage: &Stage) -> WaitThread {
    let engine = Engine::new(stage.world.home().join("state"), PROGRAM).with_max_concurrent(8);
    WaitThread::start(engine).unwrap()
}

fn wait(
    wait_thread: &WaitThread,
    ids: &[&TaskId],
    goal: WaitGoal,
    within: Option<Duration>,
) -> (Ticket, Receiver<WaitResult>) {
    let (sender, receiver) = channel();
    let ids = ids.iter().map(|id| (*id).clone()).collect();
    let deadline = within.map(|within| Instant::now() + within);
    let ticket =
        wait_thread.wait(ids, goal, deadline, Box::new(move |result| drop(sender.send(result))), None);
    (ticket, receiver)
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
    let wait_thread = start_wait_thread(&stage);
    let before = threads();
    let waits: Vec<_> = (0..200)
        .map(|number| wait(&wait_thread, &[&ids[number % 4]], WaitGoal::All, Some(LONG_TIMEOUT)))
        .collect();
    assert_eq!(threads(), before);
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    for (_ticket, result) in waits {
        let result = result.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
        assert_eq!((result.tasks[0].state, result.expired), (State::Completed, false));
    }
}

#[test]
fn any_and_all_waits_end_at_the_right_task() {
    let stage = stage();
    let (first_id, second_id) = (submit(&stage), submit(&stage));
    let wait_thread = start_wait_thread(&stage);
    let (_any, first) = wait(&wait_thread, &[&first_id, &second_id], WaitGoal::Any, Some(LONG_TIMEOUT));
    let (_all, last) = wait(&wait_thread, &[&first_id, &second_id], WaitGoal::All, Some(LONG_TIMEOUT));
    stage.run_json(&["local", "cancel", second_id.as_str()]);
    let result = first.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    let states: Vec<State> = result.tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [State::Working, State::Cancelled], "in the order of the request");
    assert!(last.try_recv().is_err(), "one of them is still running");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    let result = last.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    assert!(result.tasks.iter().all(|task| task.state.is_terminal()));
}

#[test]
fn a_wait_ends_with_its_deadline_or_ticket_and_the_task_continues() {
    let stage = stage();
    let id = submit(&stage);
    let wait_thread = start_wait_thread(&stage);
    let (_ticket, receiver) = wait(&wait_thread, &[&id], WaitGoal::All, Some(Duration::from_millis(1)));
    assert!(receiver.recv_timeout(LONG_TIMEOUT).unwrap().unwrap().expired);
    let (ticket, dropped) = wait(&wait_thread, &[&id], WaitGoal::All, None);
    drop(ticket);
    // The callback was dropped uncalled, which closes its channel.
    assert!(dropped.recv_timeout(LONG_TIMEOUT).is_err());
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    assert_eq!(stage.wait(id.as_str())["data"]["state"], "completed");
}

#[test]
fn waiting_for_an_unknown_task_is_an_error() {
    let stage = stage();
    let wait_thread = start_wait_thread(&stage);
    let unknown = TaskId::from_random(TaskLocation::Local, [9; 16]);
    let (_ticket, receiver) = wait(&wait_thread, &[&unknown], WaitGoal::All, None);
    let refused = receiver.recv_timeout(LONG_TIMEOUT).unwrap();
    assert!(matches!(refused, Err(EngineError::UnknownTask { .. })), "{refused:?}");
    // The same when the registry exists.
    submit(&stage);
    let (_ticket, receiver) = wait(&wait_thread, &[&unknown], WaitGoal::All, None);
    assert!(receiver.recv_timeout(LONG_TIMEOUT).unwrap().is_err());
    stage.run_json(&["cancel", "--all"]);
}

#[test]
fn a_wait_rescues_a_task_whose_supervisor_was_killed() {
    let stage = stage();
    let id = submit(&stage);
    let wait_thread = start_wait_thread(&stage);
    let (_ticket, receiver) = wait(&wait_thread, &[&id], WaitGoal::All, None);
    wait_until("the agent runs", || !task_processes(id.as_str()).is_empty());
    let supervisor = Pid::from_raw(stage.supervisor_pid(id.as_str())).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let receiver = receiver.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    assert_eq!(receiver.tasks[0].state, State::Failed);
    assert_eq!(task_processes(id.as_str()), Vec::<i32>::new(), "a process of the task is alive");
}

#[test]
fn ended_supervisors_are_reaped() {
    // The commands have one slot and the waiting process eight, so it starts the other tasks.
    let stage = stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let ids: Vec<TaskId> = (0..6).map(|_| submit(&stage)).collect();
    let wait_thread = start_wait_thread(&stage);
    let ids: Vec<&TaskId> = ids.iter().collect();
    let (_ticket, receiver) = wait(&wait_thread, &ids, WaitGoal::All, None);
    wait_until("all tasks run", || ids.iter().all(|id| !task_processes(id.as_str()).is_empty()));
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    receiver.recv_timeout(LONG_TIMEOUT).unwrap().unwrap();
    wait_until("no zombie is left", || zombie_children() == 0);
}

fn zombie_children() -> usize {
    let me = std::process::id().to_string();
    let dead = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
        fields.next() == Some("Z") && fields.next() == Some(&me)
    };
    delegator_testkit::stage::pids().iter().filter(|pid| dead(pid)).count()
}

#[test]
fn a_wait_with_an_interval_ends_with_the_error_of_its_callback_or_with_the_task() {
    let stage = stage();
    let id = submit(&stage);
    let engine = Engine::new(stage.world.home().join("state"), PROGRAM).with_max_concurrent(8);
    let interval = Duration::from_millis(20);
    let mut calls = 0;
    let stopped = engine.waits().with_interval(&id, interval, || {
        calls += 1;
        if calls == 3 { Err(EngineError::UnknownTask { given: "stop".to_owned() }) } else { Ok(()) }
    });
    assert!(matches!(stopped, Err(EngineError::UnknownTask { given }) if given == "stop"));
    stage.world.write("project/go", "");
    let task = engine.waits().with_interval(&id, interval, || Ok::<(), EngineError>(())).unwrap();
    assert_eq!(task.state, State::Completed);
}
