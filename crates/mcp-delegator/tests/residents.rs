//! A process that stays: one thread watches tasks for everybody in it.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use delegator_domain::task::{Place, State, TaskId};
use delegator_engine::resident::{Goal, Resident, Ticket, Watched};
use delegator_engine::{Engine, EngineError};
use delegator_testkit::stage::{Stage, processes_of, turn, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// Long enough for any machine; nothing here waits for it to pass.
const GENEROUS: Duration = Duration::from_secs(60);

type Told = Result<Watched, EngineError>;

fn stage() -> Stage {
    Stage::playing(PROGRAM, turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

fn resident(stage: &Stage) -> Resident {
    Resident::start(Engine {
        state_dir: stage.world.home().join("state"),
        max_concurrent: 8,
        retention_ms: None,
        restore_point_retention_ms: None,
        program: PROGRAM.into(),
        shelf: delegator_engine::Shelf::default(),
    })
    .unwrap()
}

fn wait(
    resident: &Resident,
    ids: &[&TaskId],
    goal: Goal,
    within: Option<Duration>,
) -> (Ticket, Receiver<Told>) {
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
fn two_hundred_wait_in_one_thread() {
    let stage = stage();
    let ids: Vec<TaskId> = (0..4).map(|_| submit(&stage)).collect();
    let resident = resident(&stage);
    let before = threads();
    let waits: Vec<_> =
        (0..200).map(|number| wait(&resident, &[&ids[number % 4]], Goal::All, Some(GENEROUS))).collect();
    assert_eq!(threads(), before);
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    for (_ticket, told) in waits {
        let told = told.recv_timeout(GENEROUS).unwrap().unwrap();
        assert_eq!((told.tasks[0].state, told.expired), (State::Completed, false));
    }
}

#[test]
fn any_and_all_are_told_when_they_are_reached() {
    let stage = stage();
    let (one, other) = (submit(&stage), submit(&stage));
    let resident = resident(&stage);
    let (_any, first) = wait(&resident, &[&one, &other], Goal::Any, Some(GENEROUS));
    let (_all, last) = wait(&resident, &[&one, &other], Goal::All, Some(GENEROUS));
    stage.answer(&["local", "cancel", other.as_str()]);
    let told = first.recv_timeout(GENEROUS).unwrap().unwrap();
    let states: Vec<State> = told.tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [State::Working, State::Cancelled], "in the order they were asked for");
    assert!(last.try_recv().is_err(), "one of them still works");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    let told = last.recv_timeout(GENEROUS).unwrap().unwrap();
    assert!(told.tasks.iter().all(|task| task.state.is_terminal()));
}

#[test]
fn a_wait_ends_with_its_time_or_its_ticket_and_the_task_goes_on() {
    let stage = stage();
    let id = submit(&stage);
    let resident = resident(&stage);
    let (_ticket, told) = wait(&resident, &[&id], Goal::All, Some(Duration::from_millis(1)));
    assert!(told.recv_timeout(GENEROUS).unwrap().unwrap().expired);
    let (ticket, let_go) = wait(&resident, &[&id], Goal::All, None);
    drop(ticket);
    // The function was dropped unheard: its end of the channel is gone.
    assert!(let_go.recv_timeout(GENEROUS).is_err());
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    assert_eq!(stage.wait(id.as_str())["data"]["state"], "completed");
}

#[test]
fn nobody_waits_for_a_task_that_is_not_there() {
    let stage = stage();
    let resident = resident(&stage);
    let nobody = TaskId::from_random(Place::Local, [9; 16]);
    let (_ticket, told) = wait(&resident, &[&nobody], Goal::All, None);
    let refused = told.recv_timeout(GENEROUS).unwrap();
    assert!(matches!(refused, Err(EngineError::UnknownTask { .. })), "{refused:?}");
    // The same when there is a registry by now.
    submit(&stage);
    let (_ticket, told) = wait(&resident, &[&nobody], Goal::All, None);
    assert!(told.recv_timeout(GENEROUS).unwrap().is_err());
    stage.answer(&["cancel", "--all"]);
}

#[test]
fn a_lost_supervisor_is_noticed_by_whoever_watches() {
    let stage = stage();
    let id = submit(&stage);
    let resident = resident(&stage);
    let (_ticket, told) = wait(&resident, &[&id], Goal::All, None);
    until("the agent runs", || !processes_of(id.as_str()).is_empty());
    let supervisor = Pid::from_raw(stage.supervisor_of(id.as_str())).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let told = told.recv_timeout(GENEROUS).unwrap().unwrap();
    assert_eq!(told.tasks[0].state, State::Failed);
    assert_eq!(processes_of(id.as_str()), Vec::<i32>::new(), "what it left running is ended");
}

#[test]
fn supervisors_that_ended_are_buried_by_who_started_them() {
    // The calls have one slot, whoever stays has eight: it starts the others.
    let stage = stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let ids: Vec<TaskId> = (0..6).map(|_| submit(&stage)).collect();
    let resident = resident(&stage);
    let ids: Vec<&TaskId> = ids.iter().collect();
    let (_ticket, told) = wait(&resident, &ids, Goal::All, None);
    until("all of them run", || ids.iter().all(|id| !processes_of(id.as_str()).is_empty()));
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    told.recv_timeout(GENEROUS).unwrap().unwrap();
    until("no zombie is left", || children_that_are_dead() == 0);
}

fn children_that_are_dead() -> usize {
    let me = std::process::id().to_string();
    let dead = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut words = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
        words.next() == Some("Z") && words.next() == Some(&me)
    };
    delegator_testkit::stage::pids().iter().filter(|pid| dead(pid)).count()
}
