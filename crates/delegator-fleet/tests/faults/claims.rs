//! Many workers and one queue.

use delegator_domain::task::TaskEnd;
use delegator_fleet::FleetError;
use delegator_testkit::fleet_history::{Ack, Unfinished};
use delegator_testkit::stage::wait_until;

use crate::actors::{end_of, new_session};
use crate::fleet::{Fleet, LONG, labels, new_task};

#[test]
fn sixteen_workers_claim_each_of_a_thousand_tasks_once() {
    let fleet = Fleet::new();
    let submitter = fleet.client();
    for _ in 0..1000 {
        submitter.submit(&new_task()).unwrap();
    }
    let workers: Vec<_> = (0..16).map(|number| fleet.worker(&format!("worker-{number}"), LONG)).collect();
    let claimed: Vec<usize> = std::thread::scope(|scope| {
        let claim_all = |worker: crate::actors::Worker| {
            let mut claimed = 0;
            loop {
                let tasks = worker.claim(4).unwrap();
                if tasks.is_empty() {
                    return claimed;
                }
                claimed += tasks.len();
                for task in tasks {
                    worker.start(&task.claim).unwrap();
                    worker.finish(&task.claim, TaskEnd::Completed).unwrap();
                }
            }
        };
        let threads: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(move || claim_all(worker))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(claimed.iter().sum::<usize>(), 1000, "{claimed:?}");
    let history = fleet.check(Unfinished::Forbidden);
    // Submitted, claimed, started, ended.
    assert_eq!(history.changes.len(), 4000);
    let claims = history.acks.iter().filter(|ack| matches!(ack, Ack::Claimed(_))).count();
    assert_eq!(claims, 1000);
}

#[test]
fn tasks_are_claimed_by_priority_and_age_among_those_with_fitting_labels() {
    let fleet = Fleet::new();
    let submitter = fleet.client();
    let submit = |name: &str, priority: i64, required: &[(&str, &str)]| {
        let mut task = new_task();
        name.clone_into(&mut task.spec.title);
        submitter
            .submit(&delegator_fleet::NewFleetTask { priority, labels: labels(required), ..task })
            .unwrap();
    };
    submit("old", 0, &[]);
    submit("linux", 0, &[("os", "linux")]);
    submit("late", -1, &[]);
    submit("gpu", 9, &[("gpu", "yes")]);
    submit("other system", 9, &[("os", "macos")]);
    submit("urgent", 5, &[("os", "linux")]);
    submit("most urgent", i64::MAX, &[]);
    let claim_titles = |worker: &crate::actors::Worker| {
        let claims = std::iter::from_fn(|| worker.claim(1).unwrap().pop());
        claims.map(|task| task.spec.title).collect::<Vec<_>>()
    };
    let worker = fleet.worker("linux", LONG);
    assert_eq!(claim_titles(&worker), ["most urgent", "urgent", "old", "linux", "late"]);
    let client = fleet.client();
    let session = delegator_fleet::NewSession {
        labels: labels(&[("os", "linux"), ("gpu", "yes")]),
        ..new_session("gpu", LONG)
    };
    let opened = client.database.open_session(&session).unwrap();
    let other = crate::actors::Worker { client, session: opened.id };
    assert_eq!(claim_titles(&other), ["gpu"]);
    assert_eq!(other.database().status().unwrap().unmatched, 1);
    fleet.check(Unfinished::Allowed);
}

#[test]
fn a_released_task_is_claimed_again_with_the_next_attempt() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    let (first, second) = (fleet.worker("first", LONG), fleet.worker("second", LONG));
    let released = first.claim_one();
    first.database().release(&released).unwrap();
    first.database().release(&released).unwrap();
    let claim = second.run_one();
    assert_eq!((claim.task.as_str(), claim.attempt), (id.as_str(), 2));
    assert!(matches!(first.start(&released), Err(FleetError::Fenced { .. })));
    assert!(matches!(first.finish(&released, TaskEnd::Completed), Err(FleetError::Fenced { .. })));
    assert!(matches!(first.append(&released, 0, b"late"), Err(FleetError::Fenced { .. })));
    // A late release must not take the task from its new owner.
    first.database().release(&released).unwrap();
    second.finish(&claim, TaskEnd::Completed).unwrap();
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn paused_and_draining_workers_claim_nothing() {
    let fleet = Fleet::new();
    fleet.submit();
    let (one, other) = (fleet.worker("one", LONG), fleet.worker("other", LONG));
    assert!(one.database().pause(Some("one")).unwrap());
    assert!(one.database().heartbeat(&one.session).unwrap().is_paused);
    assert_eq!(one.claim(1).unwrap(), []);
    assert!(one.database().resume(Some("one")).unwrap());
    assert!(one.database().pause(None).unwrap());
    assert_eq!((one.claim(1).unwrap(), other.claim(1).unwrap()), (Vec::new(), Vec::new()));
    assert!(one.database().resume(None).unwrap());
    assert!(one.database().drain("one").unwrap());
    assert!(one.database().heartbeat(&one.session).unwrap().is_draining);
    assert_eq!(one.claim(1).unwrap(), []);
    assert_eq!(other.claim(1).unwrap().len(), 1);
    fleet.check(Unfinished::Allowed);
}

/// A claim that is still being committed when its session is replaced must not leave a task without an owner.
#[test]
fn a_claim_in_flight_does_not_outlive_its_session() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    let worker = fleet.worker("worker", LONG);
    // Holds every claim back until the test lets it go on.
    fleet.server.execute(
        "create table public.gate (value integer);
         create function public.wait_at_gate() returns trigger language plpgsql as $$
         begin lock table public.gate in share mode; return new; end $$;
         create trigger wait_at_gate before insert on delegator.attempts for each row execute function public.wait_at_gate()",
    );
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    let mut gate = fleet.server.session();
    gate.run("begin; lock table public.gate in exclusive mode;");
    let claimed = std::thread::spawn(move || worker.claim(1));
    wait_until("the claim waits", || fleet.server.value(waiting) == "1");
    let successor = fleet.client();
    let opened = std::thread::spawn(move || {
        let opened = successor.database.open_session(&new_session("worker", LONG)).unwrap();
        crate::actors::Worker { client: successor, session: opened.id }
    });
    wait_until("the new session waits or is open", || {
        fleet.server.value(waiting) == "2" || opened.is_finished()
    });
    gate.run("commit;");
    claimed.join().unwrap().unwrap();
    let successor = opened.join().unwrap();
    assert_eq!(successor.work(1).unwrap(), 1);
    assert_eq!(end_of(fleet.task(&id)), TaskEnd::Completed);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn one_of_two_workers_with_the_same_name_is_refused() {
    let fleet = Fleet::new();
    let results: Vec<_> = std::thread::scope(|scope| {
        let open = |number: i32| {
            let client = fleet.client();
            let session = delegator_fleet::NewSession {
                workspace: format!("workspace {number}"),
                ..new_session("worker", LONG)
            };
            scope.spawn(move || client.database.open_session(&session))
        };
        let threads: Vec<_> = (0..8).map(open).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let refused = results.iter().filter(|result| matches!(result, Err(FleetError::NameInUse { .. }))).count();
    assert_eq!((results.iter().filter(|result| result.is_ok()).count(), refused), (1, 7), "{results:?}");
}
