//! Events of a task that a provider runs.

use std::sync::{Arc, Barrier};

use delegator_domain::task::{State, TaskId};
use delegator_engine::{Engine, RemoteStatus};
use delegator_registry::TaskFile;

use crate::provider::{ScriptedProvider, World, completed, submit};

const FIRST: &str = "{\"type\":\"thread.started\",\"thread_id\":\"a\"}\n{\"type\":\"turn.started\"}\n";
const MORE: &str = "{\"type\":\"item.started\",\"item\":{\"id\":\"1\",\"type\":\"command_execution\",\
                    \"command\":\"make\",\"aggregated_output\":\"\",\"exit_code\":null,\"status\":\"in_progress\"}}\n";

impl ScriptedProvider {
    fn add_events(&self, attempt: usize, text: &str) {
        let mut attempts = self.attempts.lock().unwrap();
        let count = attempt.max(attempts.len());
        attempts.resize(count, Vec::new());
        attempts[attempt - 1].extend_from_slice(text.as_bytes());
    }

    fn answer(&self, status: RemoteStatus) {
        self.answers.lock().unwrap().splice(.., [Ok(status)]);
    }
}

fn working_task(world: &World) -> (Engine, Arc<ScriptedProvider>, TaskId) {
    let (engine, provider) =
        world.engine(ScriptedProvider::answering(&[Ok(RemoteStatus::Working { started_at_ms: None })]));
    let id = submit(&engine);
    (engine, provider, id)
}

fn stored(engine: &Engine, id: &TaskId) -> String {
    String::from_utf8(engine.results().read_stored(id, TaskFile::Events).unwrap()).unwrap()
}

#[test]
fn a_query_copies_the_events_of_a_running_task_and_its_progress() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    assert_eq!(stored(&engine, &id), "");
    provider.add_events(1, "{}\n");
    engine.results().task(&id).unwrap();
    assert_eq!(stored(&engine, &id), "{}\n");
    provider.add_events(1, FIRST);
    provider.add_events(1, MORE);
    let task = engine.results().task(&id).unwrap();
    engine.remote().fetch_events(&task).unwrap();
    assert_eq!(stored(&engine, &id), format!("{{}}\n{FIRST}{MORE}"));
    // Copied by a reader; the next query folds it.
    engine.results().task(&id).unwrap();
    let snapshot = engine.results().files(&id).unwrap().snapshot.unwrap();
    assert_eq!((snapshot.events, snapshot.current_activity.as_deref()), (4, Some("Running make")));
}

#[test]
fn a_new_attempt_replaces_the_events() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    provider.add_events(1, FIRST);
    engine.remote().fetch_events(&engine.results().task(&id).unwrap()).unwrap();
    provider.add_events(2, MORE);
    engine.remote().fetch_events(&engine.results().task(&id).unwrap()).unwrap();
    assert_eq!(stored(&engine, &id), MORE);
    engine.results().task(&id).unwrap();
    assert_eq!(engine.results().files(&id).unwrap().snapshot.unwrap().events, 1);
}

#[test]
fn the_events_of_an_ended_task_are_fetched_once() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    provider.answer(completed());
    provider.add_events(1, FIRST);
    let task = engine.results().task(&id).unwrap();
    assert_eq!((task.state, stored(&engine, &id).as_str()), (State::Completed, ""));
    engine.remote().fetch_events(&task).unwrap();
    assert_eq!(stored(&engine, &id), FIRST);
    provider.add_events(1, "impossible");
    engine.remote().fetch_events(&task).unwrap();
    assert_eq!(stored(&engine, &id), FIRST);
}

#[test]
fn processes_that_copy_at_the_same_time_store_every_byte_once() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    let expected = FIRST.repeat(20);
    provider.add_events(1, &expected);
    let task = engine.results().task(&id).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| engine.remote().fetch_events(&task).unwrap());
        }
    });
    assert_eq!(stored(&engine, &id), expected);
}

#[test]
fn a_copy_that_lost_its_position_begins_again() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    provider.add_events(1, FIRST);
    engine.remote().fetch_events(&engine.results().task(&id).unwrap()).unwrap();
    let dir = engine.results().task_dir(&id).unwrap().unwrap();
    dir.remove_file(TaskFile::EventPosition).unwrap();
    provider.add_events(1, MORE);
    engine.remote().fetch_events(&engine.results().task(&id).unwrap()).unwrap();
    assert_eq!(stored(&engine, &id), format!("{FIRST}{MORE}"));
}

#[test]
fn a_follower_copies_until_the_task_has_ended() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    let mut follower = engine.remote().follow_events(&engine.results().task(&id).unwrap()).unwrap().unwrap();
    provider.add_events(1, FIRST);
    while stored(&engine, &id) != FIRST {
        std::thread::yield_now();
    }
    assert!(!follower.has_ended().unwrap());
    provider.add_events(1, MORE);
    provider.answer(completed());
    while !follower.has_ended().unwrap() {
        std::thread::yield_now();
    }
    assert_eq!(stored(&engine, &id), format!("{FIRST}{MORE}"));
    assert_eq!(engine.results().recorded_task(&id).unwrap().state, State::Completed);
}

#[test]
fn processes_that_learn_the_end_at_the_same_time_store_it_once() {
    let world = World::new();
    let (engine, provider, id) = working_task(&world);
    provider.answer(completed());
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let engine = engine.clone();
                start.wait();
                assert_eq!(engine.results().task(&id).unwrap().state, State::Completed);
            });
        }
    });
}
