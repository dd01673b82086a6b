//! Concurrent operations of threads and processes: exactly one wins.

#![expect(clippy::disallowed_methods, reason = "other processes are part of the test")]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use delegator_domain::task::{FailureKind, LimitKind, State, TaskEnd, TaskId};
use delegator_registry::{
    Attempt, BeginOutcome, Cas, Finish, Idempotency, NewTask, OpenOptions, Registry, StateDir,
};

use crate::support::{
    World, fresh_id, identity, new_task, registry_at, slots, submit, submit_and_claim, working,
};

const THREADS: usize = 8;
const ROUNDS: usize = 200;

fn ends() -> Vec<TaskEnd> {
    let failed = TaskEnd::Failed { kind: FailureKind::Killed, message: "m".to_owned(), retry_at_ms: None };
    vec![TaskEnd::Completed, failed, TaskEnd::Cancelled { reason: None }, TaskEnd::Timeout(LimitKind::Hard)]
}

/// Runs the rounds in lockstep in each thread, and returns the results by thread and round. `step` must not panic: the
/// other threads would wait for ever.
fn run_concurrently<T: Send>(
    world: &World,
    rounds: usize,
    step: impl Fn(usize, usize, &mut Registry) -> T + Sync,
) -> Vec<Vec<T>> {
    let barrier = Barrier::new(THREADS);
    let registries: Vec<Registry> = (0..THREADS).map(|_| world.registry()).collect();
    std::thread::scope(|scope| {
        let (barrier, step) = (&barrier, &step);
        let run = |(thread, mut registry)| {
            scope.spawn(move || -> Vec<T> {
                let mut results = Vec::new();
                for round in 0..rounds {
                    barrier.wait();
                    results.push(step(thread, round, &mut registry));
                }
                results
            })
        };
        let threads: Vec<_> = registries.into_iter().enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn exactly_one_finish_wins() {
    let world = World::new();
    let mut registry = world.registry();
    let tasks: Vec<_> = (0..ROUNDS).map(|_| working(&mut registry)).collect();
    let results = run_concurrently(&world, ROUNDS, |thread, round, registry| {
        let claim = &tasks[round];
        let end = Finish::bare(ends().swap_remove((thread + round) % 4));
        registry.finish(&claim.task.id, &Attempt::working(claim.nonce.clone()), &end, &slots(0), 5)
    });
    for (round, claim) in tasks.iter().enumerate() {
        let won = results
            .iter()
            .filter(|thread_results| matches!(thread_results[round].as_ref().unwrap(), Cas::Applied(_)));
        assert_eq!(won.count(), 1);
        let history = registry.history_of(&claim.task.id).unwrap();
        assert_eq!(history.iter().filter(|step| step.to.is_terminal()).count(), 1);
        let task = registry.get(&claim.task.id).unwrap().unwrap();
        assert_eq!(task.ended.unwrap().end.state(), task.state);
    }
}

#[test]
fn exactly_one_begin_wins_and_none_after_a_cancel() {
    let world = World::new();
    let mut registry = world.registry();
    let tasks: Vec<_> = (0..ROUNDS).map(|_| submit_and_claim(&mut registry)).collect();
    let results = run_concurrently(&world, ROUNDS, |thread, round, registry| {
        let id = &tasks[round].task.id;
        if thread == 0 {
            return registry.request_cancel(id, None, 5).map(|_| None);
        }
        registry.begin_work(id, &tasks[round].nonce, &identity(7), None, 5).map(Some)
    });
    for (round, claim) in tasks.iter().enumerate() {
        let outcomes: Vec<_> = results
            .iter()
            .filter_map(|thread_results| thread_results[round].as_ref().unwrap().as_ref())
            .collect();
        let began = outcomes.iter().filter(|outcome| ***outcome == BeginOutcome::Working).count();
        let refused = outcomes.iter().any(|outcome| matches!(outcome, BeginOutcome::CancelRequested(_)));
        let task = registry.get(&claim.task.id).unwrap().unwrap();
        assert!(task.cancel.is_some());
        let expected = if refused { (0, State::Starting) } else { (1, State::Working) };
        assert_eq!((began, task.state), expected);
    }
}

#[test]
fn exactly_one_submit_per_key_wins() {
    const KEYS: usize = 40;
    let world = World::new();
    world.registry();
    let results = run_concurrently(&world, KEYS, |_, key, registry| {
        let idempotency = Some(Idempotency::new(format!("key-{key}"), "same"));
        registry.submit(&NewTask { idempotency, ..new_task() }, b"launch", 1)
    });
    for key in 0..KEYS {
        let outcomes: Vec<_> =
            results.iter().map(|thread_results| thread_results[key].as_ref().unwrap()).collect();
        assert_eq!(outcomes.iter().filter(|outcome| !outcome.replayed).count(), 1);
        assert_eq!(outcomes.iter().map(|outcome| &outcome.task.id).collect::<BTreeSet<_>>().len(), 1);
    }
    assert_eq!(fs::read_dir(world.path().join("tasks")).unwrap().count(), KEYS);
}

#[test]
fn concurrent_creation_of_the_registry_succeeds() {
    for _ in 0..10 {
        let world = World::new();
        let barrier = Barrier::new(THREADS);
        let create = || {
            barrier.wait();
            let dir = StateDir::open(&world.path(), &OpenOptions::default()).ok()?;
            Registry::open(&dir).ok()?.submit(&new_task(), b"launch", 1).ok()
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(results.iter().all(Option::is_some), "{results:?}");
        assert_eq!(world.registry().counts().unwrap().of(State::Queued), THREADS as u64);
    }
}

const WORKER_STATE_DIR: &str = "REGISTRY_TEST_STATE";
const TASK_COUNT: usize = 200;
const SLOTS: usize = 5;

/// Runs in each of the processes below: claims, begins and finishes tasks until none is left. Without the variable it
/// does nothing.
#[test]
fn worker() {
    let Ok(state) = std::env::var(WORKER_STATE_DIR) else { return };
    let mut registry = registry_at(state.as_ref());
    let started = Instant::now();
    let mut own_claims: Vec<_> = registry.claim_next(&slots(SLOTS), 2).unwrap().into_iter().collect();
    while registry.counts().unwrap().of(State::Completed) < TASK_COUNT as u64 {
        let Some(claim) = own_claims.pop().or_else(|| registry.claim_next(&slots(SLOTS), 2).unwrap()) else {
            // Only happens when another process has failed; without this limit the test would hang.
            assert!(started.elapsed() < Duration::from_secs(30), "the other processes never finished");
            std::thread::yield_now();
            continue;
        };
        let id = &claim.task.id;
        let began = registry.begin_work(id, &claim.nonce, &identity(std::process::id()), None, 3).unwrap();
        assert_eq!(began, BeginOutcome::Working);
        println!("began {id}");
        assert!(registry.active().unwrap().len() <= SLOTS, "more tasks are active than there are slots");
        let attempt = Attempt::working(claim.nonce.clone());
        let end = Finish::bare(TaskEnd::Completed);
        match registry.finish(id, &attempt, &end, &slots(SLOTS), 4).unwrap() {
            Cas::Applied(successors) => own_claims.extend(successors),
            Cas::Lost(lost) => panic!("{id} was ended by another process: {lost:?}"),
        }
    }
}

#[test]
fn processes_share_the_queue_and_start_each_task_once() {
    let world = World::new();
    let mut registry = world.registry();
    let ids: BTreeSet<TaskId> = (0..TASK_COUNT).map(|_| submit(&mut registry).id).collect();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "races::worker", "--nocapture", "--test-threads=1"])
                .env(WORKER_STATE_DIR, world.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut began = Vec::new();
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{stdout}");
        let started = stdout
            .lines()
            .filter_map(|line| line.split_once("began "))
            .map(|(_, id)| id.parse::<TaskId>().unwrap());
        began.extend(started);
    }
    assert_eq!(began.len(), TASK_COUNT);
    assert_eq!(began.into_iter().collect::<BTreeSet<_>>(), ids);
    let starts: u32 = ids.iter().map(|id| registry.get(id).unwrap().unwrap().starts).sum();
    assert_eq!(starts as usize, TASK_COUNT);
}

#[test]
fn finishing_an_unknown_task_is_reported_as_lost() {
    let world = World::new();
    let mut registry = world.registry();
    let attempt = Attempt::working(crate::support::fresh_nonce());
    let done =
        registry.finish(&fresh_id(), &attempt, &Finish::bare(TaskEnd::Completed), &slots(1), 1).unwrap();
    assert!(matches!(done, Cas::Lost(lost) if lost.actual.is_none()), "{done:?}");
}
