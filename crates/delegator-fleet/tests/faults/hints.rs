//! Hints of the database, and listeners that lose their connection.

use std::time::Duration;

use delegator_fleet::{Hints, Listener};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::postgres::Proxy;
use delegator_testkit::stage::wait_until;

use crate::fleet::{Fleet, LONG};

const ALL: Hints = Hints { queue: true, session: true };
const QUEUE: Hints = Hints { queue: true, session: false };
const SESSION: Hints = Hints { queue: false, session: true };

/// Longer than any hint takes.
fn next_hints(listener: &mut Listener) -> Hints {
    listener.wait(Duration::from_secs(30))
}

#[test]
fn a_worker_gets_the_hints_that_are_for_it() {
    let fleet = Fleet::new();
    let (one, two) = (fleet.worker("one", LONG), fleet.worker("two", LONG));
    let mut listeners = [one.listener(), two.listener()];
    // What happened before is unknown.
    assert_eq!(listeners.each_mut().map(next_hints), [ALL, ALL]);
    let id = fleet.submit();
    assert_eq!(listeners.each_mut().map(next_hints), [QUEUE, QUEUE]);
    one.run_one();
    fleet.client().database.cancel(&id, None).unwrap();
    assert_eq!(next_hints(&mut listeners[0]), SESSION);
    fleet.client().database.drain("one").unwrap();
    assert_eq!(next_hints(&mut listeners[0]), SESSION);
    fleet.client().database.resume(None).unwrap();
    // The cancel and the drain were not for the second worker.
    assert_eq!(listeners.each_mut().map(next_hints), [SESSION, SESSION]);
    fleet.check(Unfinished::Allowed);
}

#[test]
fn hints_arrive_again_after_a_crash_of_the_database() {
    let fleet = Fleet::new();
    let worker = fleet.worker("worker", LONG);
    let mut listener = worker.listener();
    assert_eq!(next_hints(&mut listener), ALL);
    fleet.server.kill_now();
    assert_eq!(next_hints(&mut listener), ALL);
    assert!(!listener.is_connected(), "the worker polls");
    fleet.server.restart();
    wait_until("the listener is connected", || listener.wait(Duration::from_millis(20)) == ALL);
    fleet.submit();
    assert_eq!(next_hints(&mut listener), QUEUE);
    fleet.check(Unfinished::Allowed);
}

/// Nothing reports the loss: the listener has to check its connection.
#[test]
fn a_connection_that_is_lost_silently_is_noticed_and_replaced() {
    let fleet = Fleet::new();
    let proxy = Proxy::start(fleet.server.port());
    let worker = fleet.client_at(&fleet.server.url_through(proxy.port())).worker("worker", LONG);
    let mut listener = worker.database().listener(&worker.session, Duration::from_millis(300));
    assert_eq!(next_hints(&mut listener), ALL);
    proxy.hang();
    fleet.submit();
    wait_until("the loss is noticed", || listener.wait(Duration::from_millis(20)) == ALL);
    assert!(!listener.is_connected(), "the worker polls");
    proxy.forward();
    wait_until("the listener is connected", || listener.wait(Duration::from_millis(20)) == ALL);
    fleet.check(Unfinished::Allowed);
}
