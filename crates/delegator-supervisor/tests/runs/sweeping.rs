//! No descendant of an agent survives its end.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{World, exists, wait_until};
use delegator_supervisor::process::{Owner, SweepLimits, marks::find_marked, read_stat, sweep_lost};

fn is_alive(pid: i32) -> bool {
    read_stat(pid).is_some_and(|stat| !stat.is_dead())
}

#[test]
fn detached_children_are_swept() {
    let world = World::new();
    let script = r#"begin
        : > $FOLDER/pids
        setsid sh -c 'echo $$ >> $FOLDER/pids; exec sleep 301' &
        (setsid sh -c 'echo $$ >> $FOLDER/pids; trap "" TERM HUP INT; (echo $$ >> $FOLDER/pids; sleep 302) & wait; sleep 303' &)
        env -i FOLDER=$FOLDER /usr/bin/setsid /bin/sh -c 'echo $$ >> $FOLDER/pids; exec /bin/sleep 304' </dev/null >/dev/null 2>&1 &
        (nohup sh -c 'echo $$ >> $FOLDER/pids; exec sleep 305' >/dev/null 2>&1 &)
        while [ "$(wc -l < $FOLDER/pids)" -lt 5 ]; do sleep 0.02; done
        end"#;
    let end = world.run_script(script);
    assert_eq!(end["state"], "completed", "{end}");
    assert!(end["sweep"]["ended"].as_u64().unwrap() >= 4, "{end}");
    assert_eq!(end["sweep"]["killed"], true);
    for pid in world.read("pids").lines() {
        assert!(!is_alive(pid.parse().unwrap()), "{pid}");
    }
    world.assert_no_processes_left();
}

#[test]
fn too_many_processes_end_the_run() {
    let world = World::new();
    let mut case = world.case("begin; n=0; while [ $n -lt 200 ]; do sleep 300 & n=$((n+1)); done; wait");
    case.max_processes = 50;
    let end = world.run(&case);
    assert_eq!(
        (end["state"].as_str(), end["kind"].as_str()),
        (Some("failed"), Some("too_many_processes")),
        "{end}"
    );
    world.assert_no_processes_left();
}

#[test]
fn fork_bomb_is_killed() {
    let world = World::new();
    // Nine generations, so that a busy machine survives the test.
    let script =
        "begin; grow() { if [ $1 -gt 0 ]; then grow $(($1-1)) & grow $(($1-1)) & fi; sleep 300; }; grow 9";
    let mut case = world.case(script);
    case.max_processes = 300;
    let end = world.run(&case);
    assert_eq!(end["kind"], "too_many_processes", "{end}");
    assert_eq!(end["sweep"]["survivors"].as_array().unwrap().len(), 0, "{end}");
    world.assert_no_processes_left();
}

#[test]
fn exempt_programs_survive_and_are_listed() {
    let world = World::new();
    std::fs::copy("/bin/sleep", world.path("builddaemon")).unwrap();
    let script = "begin; setsid $FOLDER/builddaemon 300 >/dev/null 2>&1 & sleep 301 & \
                  until [ -e /proc/$!/exe ]; do :; done; sleep 0.3; end";
    let mut case = world.case(script);
    case.exempt = vec!["builddaemon".to_owned()];
    let mut supervisor = world.start(&[case]);
    wait_until("it ended", || exists(&world.path("ended.json")));
    let end: serde_json::Value = serde_json::from_str(&world.read("ended.json")).unwrap();
    let end = &end["ends"][0];
    assert_eq!(
        (end["state"].as_str(), end["sweep"]["ended"].as_u64()),
        (Some("completed"), Some(1)),
        "{end}"
    );
    assert_eq!(end["sweep"]["exempt"][0]["program"], "builddaemon");
    let pid = i32::try_from(end["sweep"]["exempt"][0]["pid"].as_i64().unwrap()).unwrap();
    assert!(is_alive(pid));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    supervisor.wait_exit();
}

#[test]
fn processes_of_a_lost_supervisor_are_found_by_mark() {
    let world = World::new();
    let script = "begin; setsid sleep 300 & (setsid sleep 301 &); touch $FOLDER/ready; sleep 302";
    let mut supervisor = world.start(&[world.case(script)]);
    wait_until("it runs", || exists(&world.path("ready")));
    kill_process(supervisor.pid(), Signal::KILL).unwrap();
    supervisor.wait_exit();
    let report = sweep_lost(&world.task, &|_| Owner::ThisTask, SweepLimits::default()).unwrap();
    assert!(report.ended >= 3 && report.survivors.is_empty(), "{report:?}");
    world.assert_no_processes_left();
    assert_eq!(sweep_lost(&world.task, &|_| Owner::ThisTask, SweepLimits::default()).unwrap().ended, 0);
}

#[test]
fn unkillable_processes_are_reported_not_awaited() {
    let world = World::new();
    // A set-user-ID copy that makes its process belong to another user.
    std::fs::copy("/usr/bin/setpriv", world.path("setpriv")).unwrap();
    let set_user_id = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(world.path("setpriv"), set_user_id).unwrap();
    let script =
        "begin; $FOLDER/setpriv --reuid=0 sleep 300 >/dev/null 2>&1 & sleep 0.3; touch $FOLDER/ready; wait";
    // Killing through a cgroup would succeed.
    let mut case = world.case(script);
    case.grouped = false;
    let Some(mut supervisor) = world.start_unprivileged(&[case]) else { return };
    wait_until("it runs", || exists(&world.path("ready")));
    supervisor.cancel();
    wait_until("it ended", || exists(&world.path("ended.json")));
    supervisor.wait_exit();
    let end: serde_json::Value = serde_json::from_str(&world.read("ended.json")).unwrap();
    let end = &end["ends"][0];
    assert_eq!(end["state"], "cancelled", "{end}");
    let pid = i32::try_from(end["sweep"]["survivors"][0]["pid"].as_i64().unwrap()).unwrap();
    assert!(end["warnings"][0].as_str().unwrap().contains(&pid.to_string()), "{end}");
    assert!(is_alive(pid));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Runs a supervisor whose agent has one process, kills the supervisor, and returns the remaining pids.
fn pids_after_supervisor_kill(world: &World) -> Vec<i32> {
    let mut supervisor = world.start(&[world.case("begin; : > $FOLDER/ready; exec sleep 302")]);
    wait_until("it runs", || exists(&world.path("ready")));
    kill_process(supervisor.pid(), Signal::KILL).unwrap();
    supervisor.wait_exit();
    find_marked(&world.task, &mut HashSet::new()).into_iter().map(|stat| stat.pid).collect()
}

#[test]
fn sweep_waits_until_a_starting_supervisor_is_recorded() {
    let world = World::new();
    let orphans = pids_after_supervisor_kill(&world);
    let calls = std::cell::Cell::new(0);
    let owner = |_| {
        calls.set(calls.get() + 1);
        if calls.get() > 3 * orphans.len() { Owner::AnotherTask } else { Owner::Undecided }
    };
    let report = sweep_lost(&world.task, &owner, SweepLimits::default()).unwrap();
    assert_eq!((report.ended, report.survivors), (0, Vec::new()));
    assert!(!orphans.is_empty() && orphans.iter().all(|pid| is_alive(*pid)), "{orphans:?}");
    assert!(calls.get() > 3 * orphans.len(), "it did not wait for the decision");
    sweep_lost(&world.task, &|_| Owner::ThisTask, SweepLimits::default()).unwrap();
    world.assert_no_processes_left();
}

#[test]
fn sweep_kills_processes_that_stay_undecided() {
    let world = World::new();
    let orphans = pids_after_supervisor_kill(&world);
    let limits = SweepLimits { grace: Duration::from_millis(50), kill_timeout: Duration::from_secs(2) };
    let report = sweep_lost(&world.task, &|_| Owner::Undecided, limits).unwrap();
    assert_eq!((report.ended, report.survivors), (orphans.len(), Vec::new()));
    world.assert_no_processes_left();
}
