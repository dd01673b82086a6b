//! How agents exit, and how they are ended.

use crate::world::{Case, World, exists, wait_until};

#[test]
fn successful_turn_completes() {
    let world = World::new();
    let end = world.run_script("begin; item 0 hello; end");
    assert_eq!((end["state"].as_str(), end["code"].as_i64()), (Some("completed"), Some(0)), "{end}");
    assert_eq!(end["report"]["final_message"]["text"], "hello");
    assert_eq!(end["signals"].as_array().unwrap().len(), 0);
    assert_eq!(world.read("events.jsonl").lines().count(), 4);
    let log = world.read("log");
    assert!(log.starts_with("started {\"boot_id\""), "{log}");
    assert!(
        log.contains("\nthread t-1\n") && log.contains("\nstdin\n") && log.contains("\nsnapshot {"),
        "{log}"
    );
    world.assert_no_processes_left();
}

#[test]
fn exit_codes_and_signals_are_reported() {
    let world = World::new();
    // A sample; the end-to-end tests cover every exit code.
    let codes: Vec<i64> = (0..=255).step_by(15).collect();
    // Without the signals that stop, continue or are ignored.
    let signals: Vec<i64> =
        (1..=31).filter(|signal| ![17, 18, 19, 20, 21, 22, 23, 28].contains(signal)).collect();
    let mut cases: Vec<Case> = codes.iter().map(|code| world.case(&format!("exit {code}"))).collect();
    cases
        .extend(signals.iter().map(|signal| world.case(&format!("ulimit -c 0; kill -{signal} $$; sleep 9"))));
    let all = world.start(&cases).wait_for_results();
    let ends = all["ends"].as_array().unwrap();
    for (end, code) in ends.iter().zip(&codes) {
        let kind = if *code == 0 { "no_terminal_event" } else { "agent_exit" };
        assert_eq!((end["code"].as_i64(), end["kind"].as_str()), (Some(*code), Some(kind)), "{end}");
    }
    for (end, signal) in ends[codes.len()..].iter().zip(&signals) {
        assert_eq!((end["signal"].as_i64(), end["kind"].as_str()), (Some(*signal), Some("killed")), "{end}");
    }
    let killed = ends.iter().find(|end| end["signal"] == 9).unwrap();
    assert_eq!(killed["message"], "killed by SIGKILL, possibly because memory ran out");
}

#[test]
fn runs_leak_no_file_descriptors() {
    let fds_after = |runs: usize| {
        let world = World::new();
        let cases = vec![world.case("begin; sleep 300 & end"); runs];
        let all = world.start(&cases).wait_for_results();
        assert!(all["ends"].as_array().unwrap().iter().all(|end| end["state"] == "completed"), "{all}");
        all["fds"].as_u64().unwrap()
    };
    assert_eq!(fds_after(1), fds_after(15));
}

#[test]
fn cancel_sends_sigint_first() {
    let world = World::new();
    let script =
        "trap 'item 1 interrupted; exit 1' INT; begin; touch $FOLDER/ready; while :; do sleep 0.05; done";
    let mut supervisor = world.start(&[world.case(script)]);
    wait_until("it runs", || exists(&world.path("ready")));
    supervisor.cancel();
    let end = supervisor.wait_for_result();
    assert_eq!(
        (end["state"].as_str(), end["message"].as_str()),
        (Some("cancelled"), Some("by request")),
        "{end}"
    );
    assert_eq!(end["signals"], serde_json::json!(["SIGINT"]));
    assert!(world.read("events.jsonl").contains("interrupted"));
}

#[test]
fn agent_ignoring_sigint_and_sigterm_is_killed() {
    let world = World::new();
    let script = "trap '' INT TERM; begin; (trap '' INT TERM; touch $FOLDER/ready; while :; do sleep 1; done) & \
                  while :; do sleep 1; done";
    let mut supervisor = world.start(&[world.case(script)]);
    wait_until("it runs", || exists(&world.path("ready")));
    supervisor.cancel();
    supervisor.cancel();
    let end = supervisor.wait_for_result();
    assert_eq!(end["state"], "cancelled", "{end}");
    assert_eq!(end["signals"], serde_json::json!(["SIGINT", "SIGTERM", "SIGKILL"]));
    assert_eq!((end["signal"].as_i64(), end["sweep"]["survivors"].as_array().unwrap().len()), (Some(9), 0));
    world.assert_no_processes_left();
}

/// Runs many cases in one supervisor and cancels each at about the time its agent exits and its limit
/// expires.
fn race_ends(seed: u64, races: u64) -> Vec<String> {
    let world = World::new();
    let cases = (0..races).map(|race| {
        let mut case = world.case("begin; sleep 0.02; end");
        case.hard_ms = 18 + (seed + race) % 9;
        case
    });
    let mut supervisor = world.start(&cases.collect::<Vec<_>>());
    for race in (0..races).step_by(2) {
        // A cancel that comes too late for one race applies to the next, which may then end before it prints
        // anything.
        let started = || world.read("log").lines().filter(|line| line.starts_with("started ")).count() as u64;
        wait_until("the race has started", || started() > race);
        let since = std::time::Instant::now();
        let moment = 14 + (seed + race) % 7;
        while since.elapsed().as_millis() < u128::from(moment) {
            std::thread::yield_now();
        }
        supervisor.cancel();
    }
    let all = supervisor.wait_for_results();
    let ends = all["ends"].as_array().unwrap();
    for end in ends {
        let signals = end["signals"].as_array().unwrap();
        match end["state"].as_str().unwrap() {
            "completed" => assert!(end["code"] == 0 && signals.is_empty(), "{end}"),
            "timeout" => assert!(end["kind"] == "hard" && signals[0] == "SIGINT", "{end}"),
            "cancelled" => assert_eq!(signals[0], "SIGINT", "{end}"),
            other => panic!("{other}: {end}"),
        }
    }
    ends.iter().map(|end| end["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn racing_exit_limit_and_cancel_yield_one_end() {
    let lanes = [0, 1, 2, 3].map(|seed| std::thread::spawn(move || race_ends(seed, 250)));
    let ends: Vec<String> = lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect();
    assert_eq!(ends.len(), 1000);
    let count = |state: &str| ends.iter().filter(|end| *end == state).count();
    let counts = ["completed", "timeout", "cancelled"].map(count);
    assert!(counts.iter().filter(|count| **count > 0).count() > 1, "nothing raced: {counts:?}");
    eprintln!("completed, timeout, cancelled: {counts:?}");
}

#[test]
fn unexpected_thread_ends_the_run() {
    let world = World::new();
    let mut case = world.case("begin; sleep 300");
    case.expected_thread = Some("t-2".to_owned());
    let end = world.run(&case);
    assert_eq!(
        (end["kind"].as_str(), end["signals"][0].as_str()),
        (Some("wrong_thread"), Some("SIGINT")),
        "{end}"
    );
    world.assert_no_processes_left();
    let world = World::new();
    let mut case = world.case("begin; end");
    case.expected_thread = Some("t-1".to_owned());
    assert_eq!(world.run(&case)["state"], "completed");
}

#[test]
fn program_that_cannot_start_is_reported() {
    let world = World::new();
    let mut missing = world.case("");
    missing.program = "/no/such/agent".into();
    let mut plain = world.case("");
    plain.program = world.program("plain", "x", 0o600);
    let mut foreign = world.case("");
    foreign.program = world.program("foreign", "neither a script nor a program\n", 0o755);
    let mut busy = world.case("");
    busy.program = world.program("busy", "#!/bin/sh\n", 0o755);
    let writer = std::fs::OpenOptions::new().write(true).open(&busy.program).unwrap();
    let all = world.start(&[missing, plain, foreign, busy, world.case("begin; end")]).wait_for_results();
    drop(writer);
    let ends = all["ends"].as_array().unwrap();
    for (end, text) in ends.iter().zip(["No such file", "Permission denied", "format error", "busy"]) {
        assert_eq!(end["kind"], "spawn_failed", "{end}");
        assert!(end["message"].as_str().unwrap().contains(text), "{end}");
    }
    assert_eq!(ends[4]["state"], "completed", "the next one runs");
}

#[test]
fn forced_end_removes_shell_snapshots() {
    let world = World::new();
    let folder = world.path("codex-home/shell_snapshots");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("t-1.17.sh"), "export SECRET=1").unwrap();
    std::fs::write(folder.join("t-2.17.sh"), "export SECRET=1").unwrap();
    let mut case = world.case("begin; sleep 300");
    case.hard_ms = 300;
    assert_eq!(world.run(&case)["state"], "timeout");
    assert!(!folder.join("t-1.17.sh").exists() && folder.join("t-2.17.sh").exists());
}
