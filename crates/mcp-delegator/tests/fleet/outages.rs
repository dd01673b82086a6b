//! A worker without its database, and a worker that the fleet has declared lost.

use delegator_domain::task::TaskEnd;
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{is_alive, wait_until};
use rustix::process::Signal;

use crate::worker_world::{Fleet, failure, turn, wait_command};

/// The agent writes its process id, then waits for a file.
fn set_waiting_agent(fleet: &Fleet) {
    let go = fleet.file("go").display().to_string();
    let started = fleet.file("started").display().to_string();
    let commands = [&format!("echo $$ > {started}.new; mv {started}.new {started}; {}", wait_command(&go))];
    fleet.stage.set_script(turn(&commands.map(String::as_str)));
}

fn agent_command(fleet: &Fleet) -> i32 {
    read_text(&fleet.file("started")).trim().parse().unwrap()
}

#[test]
fn a_worker_waits_for_its_database() {
    let fleet = Fleet::new(&[]);
    fleet.server.shut_down();
    let worker = fleet.worker("one", &[]);
    let mut stopped = fleet.worker("two", &[]);
    stopped.wait_for_log("the worker waits and tries again");
    stopped.signal(Signal::TERM);
    stopped.assert_success();
    worker.wait_for_log("the worker waits and tries again");
    fleet.server.restart();
    worker.wait_for_log("answers again");
    worker.wait_for_log("is ready");
}

#[test]
fn an_agent_survives_a_short_outage_of_the_database() {
    let fleet = Fleet::new(&[]);
    set_waiting_agent(&fleet);
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    fleet.server.kill_now();
    // The agent ends while the database is away.
    std::fs::write(fleet.file("go"), "").unwrap();
    wait_until("the agent has ended", || !is_alive(agent_command(&fleet)));
    worker.wait_for_log("running tasks continue");
    fleet.server.restart();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
    assert!(fleet.events(&id).contains("All done."), "nothing is lost");
    worker.wait_for_log("answers again");
}

#[test]
fn a_worker_that_is_cut_off_stops_its_agents_and_gives_their_tasks_up() {
    let fleet = Fleet::with_times(&[], [600, 1, 2]);
    set_waiting_agent(&fleet);
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    fleet.server.suspend();
    wait_until("the agent was stopped", || !is_alive(agent_command(&fleet)));
    worker.wait_for_log("stopping all tasks");
    fleet.server.resume();
    let (kind, message) = failure(&fleet.wait_for_end(&id));
    assert_eq!(kind, "worker_lost");
    // The worker and the supervisor of the agent have the same limit; either may stop the agent first.
    let reasons = ["no connection to the database for 2 s", "no contact with the fleet for too long"];
    assert!(reasons.iter().any(|reason| message.contains(reason)), "{message}");
}

#[test]
fn a_worker_that_was_declared_lost_drops_its_tasks_and_starts_again() {
    let fleet = Fleet::with_times(&[], [15, 1, 3]);
    set_waiting_agent(&fleet);
    let lost = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    let agent = agent_command(&fleet);
    worker.signal(Signal::STOP);
    let (kind, _) = failure(&fleet.wait_for_end(&lost));
    assert_eq!(kind, "worker_lost");
    wait_until("the supervisor has stopped the agent", || !is_alive(agent));
    worker.signal(Signal::CONT);
    worker.wait_for_log("declared this worker lost");
    std::fs::write(fleet.file("go"), "").unwrap();
    let next = fleet.submit(fleet.spec());
    assert_eq!(fleet.wait_for_end(&next).end, TaskEnd::Completed);
    assert_eq!(failure(&fleet.wait_for_end(&lost)).0, "worker_lost", "an end never changes");
}

#[test]
fn the_agent_of_a_killed_worker_stops_before_the_task_can_run_elsewhere() {
    let fleet = Fleet::with_times(&[], [600, 1, 2]);
    set_waiting_agent(&fleet);
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    worker.signal(Signal::KILL);
    wait_until("the supervisor has stopped the agent", || !is_alive(agent_command(&fleet)));
    // The restarted worker reports the task as lost, not as cancelled.
    let _worker = fleet.worker("one", &[]);
    assert_eq!(failure(&fleet.wait_for_end(&id)).0, "worker_lost");
}
