//! Faults around real workers: lost networks and answers, wrong clocks, and setup scripts that attack their worker. Every
//! history of a task is checked by the model.

use std::net::Ipv4Addr;

use delegator_domain::task::TaskEnd;
use delegator_fleet::{OnLost, TaskSpec};
use delegator_testkit::fleet_history::{Unfinished, check, install_recorder, read_history};
use delegator_testkit::postgres::{Loss, Proxy};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::wait_until;
use rustix::process::Signal;

use crate::namespace::Namespace;
use crate::worker_world::{Fleet, failure, turn, wait_command};

/// Lease, interval of heartbeats and cutoff, in seconds.
fn recorded_fleet(times: [u32; 3]) -> Fleet {
    let fleet = Fleet::with_times(&[], times);
    install_recorder(&fleet.server);
    fleet
}

/// The agent of the first attempt writes the time without end; that of a later one completes.
fn set_endless_first_attempt(fleet: &Fleet) {
    let (first, ticks) = (fleet.file("first"), fleet.file("ticks"));
    let endless = format!(
        "if mkdir {}; then while :; do date +%s%N >> {}; sleep 0.02; done; fi",
        first.display(),
        ticks.display()
    );
    fleet.stage.set_script(turn(&[&endless, "echo changed > README"]));
}

/// Whether the agent of the first attempt wrote nothing after the database let the attempt go.
fn stopped_in_time(fleet: &Fleet, id: &str) -> bool {
    let ticks = read_text(&fleet.file("ticks"));
    let last: u128 = ticks.lines().last().unwrap().parse().unwrap();
    let lost = fleet.server.value(&format!(
        "select (extract(epoch from ended_at) * 1000000)::bigint from delegator.attempts where task = '{id}' and attempt = 1"
    ));
    last / 1000 < lost.parse().unwrap()
}

fn check_history(fleet: &Fleet) {
    let mut history = read_history(&fleet.server, Vec::new());
    // The model compares the results of its own actors.
    history.changes.iter_mut().for_each(|change| change.result = None);
    check(&history, Unfinished::Forbidden).unwrap();
}

/// The worst cut: nothing arrives, and nothing reports that.
#[test]
fn a_worker_without_network_stops_its_agent_before_the_task_runs_elsewhere() {
    let fleet = recorded_fleet([15, 1, 3]);
    set_endless_first_attempt(&fleet);
    let id = fleet.submit_with(fleet.spec(), OnLost::Retry);
    let namespace = Namespace::new();
    let address = namespace.as_ref().map_or(Ipv4Addr::LOCALHOST, Namespace::address);
    let proxy = Proxy::start_at(address, fleet.server.port());
    let url = format!("postgres://postgres@{address}:{}/postgres?sslmode=disable", proxy.port());
    let isolated = match &namespace {
        Some(namespace) => fleet.worker_in(namespace, &url, "one"),
        None => fleet.worker_at(&url, "one", &[]),
    };
    fleet.wait_for_file("ticks");
    namespace.as_ref().map_or_else(|| proxy.hang(), Namespace::disconnect);
    let _other = fleet.worker("two", &[]);
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
    assert!(stopped_in_time(&fleet, &id));
    let task = fleet.task(&id);
    assert_eq!((task.attempt, task.worker.as_deref()), (2, Some("two")));
    namespace.as_ref().map_or_else(|| proxy.forward(), Namespace::connect);
    // It opens another session and changes nothing.
    isolated.wait_for_log("declared this worker lost");
    wait_until("both workers are there", || fleet.database.status().unwrap().workers.len() == 2);
    assert_eq!(fleet.task(&id), task);
    assert_eq!(fleet.checkouts("one"), 0, "the checkout is removed");
    check_history(&fleet);
}

#[test]
fn an_agent_survives_a_short_cut_of_the_network() {
    let fleet = recorded_fleet([120, 1, 60]);
    let go = wait_command(&fleet.file("go").display().to_string());
    fleet.stage.set_script(turn(&["echo start >> ../../../../../started", &go, "echo changed > README"]));
    let proxy = Proxy::start(fleet.server.port());
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker_at(&fleet.server.url_through(proxy.port()), "one", &[]);
    fleet.wait_for_file("started");
    proxy.cut();
    worker.wait_for_log("running tasks continue");
    proxy.forward();
    worker.wait_for_log("answers again");
    std::fs::write(fleet.file("go"), "").unwrap();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
    assert!(fleet.diff(&id).contains("+changed") && fleet.events(&id).contains("All done."));
    assert_eq!((fleet.task(&id).attempt, read_text(&fleet.file("started")).as_str()), (1, "start\n"));
    check_history(&fleet);
}

#[test]
fn workers_with_wrong_clocks_run_their_tasks_and_lose_none() {
    let fleet = recorded_fleet([15, 1, 3]);
    let go = wait_command(&fleet.file("go").display().to_string());
    fleet.stage.set_script(turn(&["echo start >> ../../../../../started", &go, "echo changed > README"]));
    let ids = [fleet.submit(fleet.spec()), fleet.submit(fleet.spec())];
    let workers =
        [("+1d", "ahead"), ("-1d", "behind")].map(|(offset, name)| fleet.worker_with_clock(offset, name));
    wait_until("both agents run", || read_text_if_exists(&fleet.file("started")).lines().count() == 2);
    let renewed = "select count(*) from delegator.sessions s join delegator.attempts a on a.session = s.id
        where s.heartbeat_at > a.claimed_at + interval '15 s'";
    wait_until("the leases were renewed", || fleet.server.value(renewed) == "2");
    std::fs::write(fleet.file("go"), "").unwrap();
    for id in &ids {
        assert_eq!(fleet.wait_for_end(id).end, TaskEnd::Completed);
        assert!(fleet.diff(id).contains("+changed") && fleet.events(id).contains("All done."));
        assert_eq!(fleet.task(id).attempt, 1);
    }
    let time = || fleet.server.value("select to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS')");
    let before = time();
    let [ahead, behind] = workers.map(|mut worker| {
        worker.signal(Signal::TERM);
        worker.assert_success();
        let log = worker.log();
        let envelope = log.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{log}"));
        let envelope: serde_json::Value = serde_json::from_str(envelope).unwrap();
        envelope["meta"]["timestamp"].as_str().unwrap().to_owned()
    });
    assert!(behind < before && time() < ahead, "the clocks were not wrong: {behind} {before} {ahead}");
    check_history(&fleet);
}

#[test]
fn every_task_runs_once_while_the_database_is_killed_and_answers_are_lost() {
    let fleet = recorded_fleet([120, 1, 60]);
    fleet.stage.set_script(turn(&["echo start >> ../../../../../started", "echo changed > README"]));
    let proxy = Proxy::start(fleet.server.port());
    let url = fleet.server.url_through(proxy.port());
    let workers = ["one", "two"].map(|name| fleet.worker_at(&url, name, &["--slots", "2"]));
    workers.iter().for_each(|worker| worker.wait_for_log("is ready"));
    let ids: Vec<String> = (0..6).map(|_| fleet.submit(fleet.spec())).collect();
    for loss in [Loss::Reply, Loss::Request, Loss::Reply, Loss::Reply] {
        let before = proxy.lost();
        proxy.lose(loss, "commit");
        wait_until("a message is lost", || proxy.lost() > before);
    }
    fleet.server.kill_now();
    fleet.server.restart();
    for id in &ids {
        assert_eq!(fleet.wait_for_end(id).end, TaskEnd::Completed);
        assert!(fleet.diff(id).contains("+changed"));
        assert!(fleet.events(id).contains("All done."));
    }
    assert_eq!(read_text(&fleet.file("started")).lines().count(), 6);
    check_history(&fleet);
}

#[test]
fn a_setup_that_hangs_can_be_cancelled() {
    let fleet = recorded_fleet([120, 1, 60]);
    let pid = fleet.file("pid");
    let setup = format!("trap '' TERM; echo $$ > {}; while :; do sleep 1; done", pid.display());
    let id = fleet.submit(TaskSpec { setup: Some(setup), ..fleet.spec() });
    let _worker = fleet.worker("one", &[]);
    wait_until("the setup runs", || read_text_if_exists(&pid).ends_with('\n'));
    fleet.database.cancel(&id, Some("it hangs")).unwrap();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Cancelled { reason: Some("it hangs".to_owned()) });
    let process: i32 = read_text(&pid).trim().parse().unwrap();
    wait_until("the setup is gone", || !delegator_testkit::stage::is_alive(process));
    check_history(&fleet);
}

fn read_text_if_exists(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_setup_that_kills_its_parent_fails_its_task_and_no_other() {
    let fleet = recorded_fleet([120, 1, 60]);
    let attack = TaskSpec { setup: Some("kill -9 $PPID; sleep 1; exit 1".to_owned()), ..fleet.spec() };
    let poisoned = fleet.submit(attack);
    let harmless = fleet.submit(fleet.spec());
    // A service manager starts a killed worker again.
    for _ in 0..3 {
        fleet.worker("one", &["--slots", "1", "--once"]).wait();
    }
    let (kind, message) = failure(&fleet.wait_for_end(&poisoned));
    assert!(["setup_failed", "worker_lost"].contains(&kind), "{kind}: {message}");
    assert_eq!(fleet.wait_for_end(&harmless).end, TaskEnd::Completed);
    check_history(&fleet);
}
