//! Sessions that expire, sessions that are replaced, and databases that were away.

use std::process::Command;
use std::time::{Duration, Instant};

use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_fleet::{EventPosition, FleetError, FleetState, NewFleetTask, OnLost};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::program::faketime_library;
use delegator_testkit::stage::wait_until;

use crate::actors::{Worker, end_of, new_session};
use crate::fleet::{Fleet, LONG, SHORT, database, let_pass, new_task};

fn is_lost(end: &TaskEnd) -> bool {
    matches!(end, TaskEnd::Failed { kind: FailureKind::WorkerLost, .. })
}

/// Nothing of a worker that was declared lost is accepted.
fn assert_stale(worker: &Worker, claim: &delegator_fleet::FleetClaim) {
    assert!(matches!(worker.start(claim), Err(FleetError::Fenced { .. })));
    assert!(matches!(worker.append(claim, 0, b"late"), Err(FleetError::Fenced { .. })));
    assert!(matches!(worker.finish(claim, TaskEnd::Completed), Err(FleetError::Fenced { .. })));
    let blob = worker.database().put_blob(claim, delegator_fleet::BlobName::Diff, b"late");
    assert!(matches!(blob, Err(FleetError::Fenced { .. })), "{blob:?}");
    assert_eq!(worker.database().heartbeat(&worker.session).unwrap_err(), FleetError::SessionEnded);
    assert_eq!(worker.claim(1).unwrap_err(), FleetError::SessionEnded);
}

#[test]
fn a_task_of_a_silent_worker_fails_and_the_worker_is_fenced() {
    let fleet = Fleet::new();
    let (running, claimed) = (fleet.submit(), fleet.submit());
    let worker = fleet.worker("silent", SHORT);
    let (first, second) = (worker.run_one(), worker.claim_one());
    wait_until("the worker is lost", || fleet.task(&running).state != FleetState::Running);
    let end = end_of(fleet.task(&running));
    assert!(is_lost(&end), "{end:?}");
    // A task that had not started is queued again, without a loss.
    assert_eq!(fleet.task(&claimed).state, FleetState::Queued);
    assert_stale(&worker, &first);
    assert_stale(&worker, &second);
    assert_eq!(fleet.worker("other", LONG).work(5).unwrap(), 1);
    assert_eq!(fleet.client().database.status().unwrap().lost_last_day, 1);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_query_ends_sessions_only_if_a_lease_has_passed() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    fleet.worker("healthy", LONG).run_one();
    fleet.server.execute(
        "create sequence calls;
         create or replace function delegator.expire_sessions() returns integer language sql
            as 'select nextval(''public.calls'')::integer'",
    );
    let calls = || fleet.server.value("select is_called from calls");
    fleet.task(&id);
    assert_eq!(calls(), "f");
    fleet.server.execute("update delegator.sessions set lease_until = now() - interval '1 second'");
    fleet.task(&id);
    assert_eq!(calls(), "t");
}

#[test]
fn a_task_that_may_be_retried_runs_again_until_its_claims_are_used() {
    let fleet = Fleet::new();
    let task = NewFleetTask { on_lost: OnLost::Retry, max_claims: 2, ..new_task() };
    fleet.client().submit(&task).unwrap();
    let first = fleet.worker("first", SHORT);
    let stale = first.run_one();
    first.append(&stale, 0, b"first attempt\n").unwrap();
    wait_until("the first worker is lost", || fleet.task(&task.id).state == FleetState::Queued);
    let second = fleet.worker("second", SHORT);
    let claim = second.run_one();
    assert_eq!(claim.attempt, 2);
    let events = fleet.client().database.events(&task.id, EventPosition::default(), 100).unwrap();
    assert_eq!(events.bytes, b"");
    assert_stale(&first, &stale);
    wait_until("the second worker is lost", || !matches!(fleet.task(&task.id).state, FleetState::Running));
    assert!(is_lost(&end_of(fleet.task(&task.id))));
    assert_stale(&second, &claim);
    fleet.check(Unfinished::Forbidden);
}

/// The task may be what ends its workers.
#[test]
fn a_task_that_is_lost_before_its_start_again_and_again_fails() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    // What a worker gives back is no loss.
    let orderly = fleet.worker("orderly", LONG);
    for _ in 0..6 {
        let claim = orderly.claim_one();
        orderly.database().release(&claim).unwrap();
    }
    orderly.claim_one();
    orderly.database().close_session(&orderly.session).unwrap();
    for _ in 0..5 {
        assert_eq!(fleet.task(&id).state, FleetState::Queued);
        fleet.worker("crashes", LONG).claim_one();
        fleet.worker("crashes", LONG);
    }
    let end = end_of(fleet.task(&id));
    assert!(is_lost(&end), "{end:?}");
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_worker_that_sends_heartbeats_keeps_its_tasks() {
    let fleet = Fleet::new();
    let (own, lost) = (fleet.submit(), fleet.submit());
    let (live, silent) = (fleet.worker("live", SHORT), fleet.worker("silent", SHORT));
    let claim = live.run_one();
    silent.run_one();
    wait_until("the silent worker is lost", || {
        live.database().heartbeat(&live.session).unwrap();
        fleet.server.value("select count(*) from delegator.sessions where ended_at is null") == "1"
    });
    assert!(is_lost(&end_of(fleet.task(&lost))));
    assert_eq!(claim.task, own);
    live.finish(&claim, TaskEnd::Completed).unwrap();
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_cancelled_task_of_a_silent_worker_is_cancelled() {
    let fleet = Fleet::new();
    let task = NewFleetTask { on_lost: OnLost::Retry, ..new_task() };
    fleet.client().submit(&task).unwrap();
    let worker = fleet.worker("silent", SHORT);
    let claim = worker.run_one();
    fleet.client().database.cancel(&task.id, Some("enough")).unwrap();
    wait_until("the worker is lost", || fleet.task(&task.id).state != FleetState::Running);
    assert_eq!(end_of(fleet.task(&task.id)), TaskEnd::Cancelled { reason: Some("enough".to_owned()) });
    assert_stale(&worker, &claim);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_database_that_was_away_for_longer_than_the_lease_expires_nothing_at_once() {
    let fleet = Fleet::new();
    let (first, second) = (fleet.submit(), fleet.submit());
    let lease = Duration::from_secs(3);
    let (returns, stays_away) = (fleet.worker("returns", lease), fleet.worker("stays-away", lease));
    let claim = returns.run_one();
    stays_away.run_one();
    fleet.server.shut_down();
    let_pass(lease);
    fleet.server.restart();
    // Every one of these calls expires sessions.
    let other = fleet.worker("other", LONG);
    other.database().heartbeat(&other.session).unwrap();
    assert_eq!(fleet.task(&first).state, FleetState::Running);
    returns.database().heartbeat(&returns.session).unwrap();
    returns.finish(&claim, TaskEnd::Completed).unwrap();
    wait_until("the other worker is lost", || fleet.task(&second).state != FleetState::Running);
    assert!(is_lost(&end_of(fleet.task(&second))));
    let granted = "select extract(epoch from max(at) - pg_postmaster_start_time()) >= 3 from public.changes
        where new_state = 'failed'";
    assert_eq!(fleet.server.value(granted), "t");
    fleet.check(Unfinished::Forbidden);
}

/// A standby has been running for long when it is promoted, so the start of the server does not tell.
#[test]
fn a_promoted_standby_or_a_restored_database_expires_nothing_for_one_lease() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    fleet.worker("silent", SHORT).run_one();
    // What the other server has replicated, or what was in the backup.
    fleet.server.execute(
        "update delegator.sessions set lease_until = now() - interval '1 s';
         update delegator.server set identity = 'another server'",
    );
    let promoted_at = Instant::now();
    assert_eq!(fleet.task(&id).state, FleetState::Running);
    wait_until("the worker is lost", || fleet.task(&id).state != FleetState::Running);
    assert!(promoted_at.elapsed() >= SHORT, "{:?}", promoted_at.elapsed());
    assert!(is_lost(&end_of(fleet.task(&id))));
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn each_copy_of_the_tables_has_its_own_identity() {
    let fleet = Fleet::new();
    let identity = || fleet.server.value("select delegator.server_identity()");
    let before = identity();
    assert_eq!(fleet.server.value("select identity from delegator.server"), before);
    // As a restore does.
    fleet.server.execute(
        "create table delegator.copy as table delegator.server; drop table delegator.server;
         alter table delegator.copy rename to server",
    );
    let copied = identity();
    assert_ne!(copied, before);
    fleet.server.restart();
    assert_ne!(identity(), copied);
}

#[test]
fn a_new_session_of_the_workspace_takes_over_and_fences_the_old_one() {
    let fleet = Fleet::new();
    let (running, claimed) = (fleet.submit(), fleet.submit());
    let old = fleet.worker("worker", LONG);
    let (first, second) = (old.run_one(), old.claim_one());
    old.append(&first, 0, b"before\n").unwrap();
    let client = fleet.client();
    let opened = client.database.open_session(&new_session("worker", LONG)).unwrap();
    let new = Worker { client, session: opened.id };
    let [taken] = opened.tasks.as_slice() else { panic!("{:?}", opened.tasks) };
    assert_eq!(
        (taken.claim.task.as_str(), taken.claim.attempt, taken.is_running),
        (running.as_str(), 1, true)
    );
    assert_eq!(fleet.task(&claimed).state, FleetState::Queued);
    assert_stale(&old, &first);
    assert_stale(&old, &second);
    old.database().give_up(&first, "late").unwrap();
    old.database().close_session(&old.session).unwrap();
    assert_eq!(new.append(&taken.claim, 7, b"after\n").unwrap(), 13);
    new.finish(&taken.claim, TaskEnd::Completed).unwrap();
    assert_eq!(new.work(5).unwrap(), 1);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_closed_session_gives_its_tasks_back() {
    let fleet = Fleet::new();
    let (running, claimed) = (fleet.submit(), fleet.submit());
    let worker = fleet.worker("worker", LONG);
    let first = worker.run_one();
    worker.claim_one();
    worker.database().close_session(&worker.session).unwrap();
    assert!(is_lost(&end_of(fleet.task(&running))));
    assert_eq!(fleet.task(&claimed).state, FleetState::Queued);
    assert_stale(&worker, &first);
    fleet.check(Unfinished::Allowed);
}

/// Set in the environment of the process with the wrong clock.
const SKEWED: &str = "TEST_FLEET_SKEWED_URL";

/// Only the clock of the database counts.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts itself with another clock")]
fn a_worker_with_a_wrong_clock_works_like_any_other() {
    if let Ok(url) = std::env::var(SKEWED) {
        return work_with_a_wrong_clock(&url);
    }
    let library = faketime_library();
    let fleet = Fleet::new();
    for skew in ["-1d", "+1d"] {
        let id = fleet.submit();
        let mut worker = Command::new(std::env::current_exe().unwrap());
        worker.args(["--exact", "leases::a_worker_with_a_wrong_clock_works_like_any_other"]);
        worker.env(SKEWED, fleet.server.url()).env("LD_PRELOAD", &library).env("FAKETIME", skew);
        worker.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
        let output = worker.output().unwrap();
        assert!(output.status.success(), "{skew}: {output:?}");
        assert_eq!(end_of(fleet.task(&id)), TaskEnd::Completed);
    }
    let wrong = "select count(*) from delegator.tasks where abs(extract(epoch from now() - created_at)) > 600
        or abs(extract(epoch from now() - ended_at)) > 600";
    assert_eq!(fleet.server.value(wrong), "0");
    fleet.check(Unfinished::Forbidden);
}

#[expect(clippy::disallowed_methods, reason = "the clock is what this test is about")]
fn work_with_a_wrong_clock(url: &str) {
    let database = database(url);
    let here = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let session = database.open_session(&new_session("skewed", Duration::from_secs(60))).unwrap().id;
    let task = database.claim(&session, 1).unwrap().remove(0);
    let id = task.claim.task.clone();
    let stored = database.tasks(std::slice::from_ref(&id)).unwrap().remove(0).unwrap();
    assert!(
        here.abs_diff(u128::try_from(stored.created_at_ms).unwrap()) > 3_600_000,
        "the clock is not wrong"
    );
    database.start(&task.claim).unwrap();
    database.heartbeat(&session).unwrap();
    assert_eq!(database.status().unwrap().workers.len(), 1);
    database.finish(&task.claim, &crate::actors::finished(&task.claim, TaskEnd::Completed)).unwrap();
    database.close_session(&session).unwrap();
}
