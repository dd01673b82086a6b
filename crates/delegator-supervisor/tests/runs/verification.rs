//! Verification commands: run after the agent, confined like it, reported separately.

use rustix::process::{Signal, kill_process};

use crate::world::{Case, Check, World, exists, wait_until};

#[test]
fn check_runs_after_a_completed_agent_and_is_stored_separately() {
    let world = World::new();
    let script = "echo to one; echo to the other >&2; cat; pwd -P; umask; echo ${FOLDER:+visible}";
    let end = world.run(&world.case_with_check(script));
    assert_eq!(
        (&end["state"], &end["checked"]["outcome"]),
        (&"completed".into(), &"verified".into()),
        "{end}"
    );
    let log = world.read("verify.log");
    let workdir = std::fs::canonicalize(world.path("work")).unwrap();
    assert_eq!(log, format!("to one\nto the other\n{}\n0022\nvisible\n", workdir.display()));
    assert_eq!(end["checked"]["last_output"], log);
    assert!(
        world.read("log").contains("\"current_activity\":\"Verifying: /bin/sh -c "),
        "{}",
        world.read("log")
    );
    assert_eq!(world.read("events.jsonl").lines().count(), 3, "the agent's events are unchanged");
    world.assert_no_processes_left();
}

#[test]
fn failed_check_does_not_change_the_agents_result() {
    let world = World::new();
    let cases = [("exit 3", "Some(Code(3))"), ("kill -9 $$", "Some(Signal(9))")];
    for (script, exit) in cases {
        let end = world.run(&world.case_with_check(script));
        assert_eq!((&end["state"], &end["code"]), (&"completed".into(), &0.into()), "{end}");
        let check = (end["checked"]["outcome"].as_str(), end["checked"]["exit"].as_str());
        assert_eq!(check, (Some("refuted"), Some(exit)), "{end}");
    }
}

#[test]
fn agents_that_did_not_complete_are_not_checked() {
    let world = World::new();
    let case = world.case_with_check("touch $FOLDER/checked");
    for script in ["begin; exit 4", "exit 0"] {
        let end = world.run(&Case { args: vec!["-c".to_owned(), script.to_owned()], ..case.clone() });
        assert_eq!((&end["state"], &end["checked"]), (&"failed".into(), &serde_json::Value::Null), "{end}");
    }
    assert!(!exists(&world.path("checked")));
}

#[test]
fn check_that_cannot_start_is_reported() {
    let world = World::new();
    let mut case = world.case_with_check("");
    case.check.as_mut().unwrap().command = vec!["no-such-program".to_owned()];
    let end = world.run(&case);
    assert_eq!(
        (&end["state"], &end["checked"]["outcome"]),
        (&"completed".into(), &"cannot_start".into()),
        "{end}"
    );
    assert!(end["checked"]["detail"].as_str().unwrap().contains("no-such-program"), "{end}");
}

#[test]
fn check_that_exceeds_its_limit_is_killed_with_its_children() {
    let world = World::new();
    let script = "trap '' INT TERM; (trap '' INT TERM; sleep 300) & echo begun; sleep 300; sleep 300";
    let case = world.case_with_check(script);
    let end = world.run(&Case { hard_ms: 4_000, ..case });
    assert_eq!(
        (&end["state"], &end["checked"]["outcome"]),
        (&"completed".into(), &"timed_out".into()),
        "{end}"
    );
    assert_eq!(end["checked"]["last_output"], "begun\n");
    world.assert_no_processes_left();
}

#[test]
fn processes_left_by_a_check_are_swept() {
    let world = World::new();
    let end = world.run(&world.case_with_check("setsid sleep 300 & (sleep 300 &) ; echo done"));
    assert_eq!(end["checked"]["outcome"], "verified", "{end}");
    world.assert_no_processes_left();
}

#[test]
fn cancel_during_the_check_cancels_the_task() {
    let world = World::new();
    let script = "(trap '' TERM; sleep 300) & touch $FOLDER/checking; sleep 300";
    let mut supervisor = world.start(&[world.case_with_check(script)]);
    wait_until("it checks", || exists(&world.path("checking")));
    supervisor.cancel();
    let end = supervisor.wait_for_result();
    assert_eq!((&end["state"], &end["message"]), (&"cancelled".into(), &"by request".into()), "{end}");
    assert_eq!(end["checked"]["outcome"], "cancelled", "{end}");
    world.assert_no_processes_left();
}

#[test]
fn check_output_is_bounded_and_redacted() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 20000 ]; do echo \"line $i of very many that are printed\"; i=$((i+1)); done; \
                  echo the last line has hunter2-hunter2 in it";
    let case = Case {
        secret: "hunter2-hunter2".to_owned(),
        max_stream_bytes: 64 << 10,
        ..world.case_with_check(script)
    };
    let end = world.run(&case);
    let output = &end["checked"]["output"];
    assert!(output["received"].as_u64().unwrap() > 700_000 && output["truncated"] == true, "{end}");
    let log = world.read("verify.log");
    assert!(
        log.len() <= 64 << 10 && log.starts_with("line 0 ") && log.contains(" bytes omitted]"),
        "{}",
        log.len()
    );
    assert!(log.ends_with("the last line has [REDACTED:env] in it\n"), "{}", &log[log.len() - 200..]);
    assert!(!end.to_string().contains("hunter2"));
}

#[test]
fn check_without_its_sentinel_counts_as_not_started() {
    let world = World::new();
    let run_with_sentinel = |script: &str| {
        let case = world.case_with_check(script);
        let check = Check { sentinel: Some("inside".to_owned()), ..case.check.clone().unwrap() };
        world.run(&Case { check: Some(check), ..case })["checked"].take()
    };
    let good = run_with_sentinel("echo WARNING; echo inside; echo fine");
    assert_eq!((&good["outcome"], &good["last_output"]), (&"verified".into(), &"WARNING\nfine\n".into()));
    assert_eq!(good["output"]["received"], 13);
    assert_eq!(run_with_sentinel("echo inside; exit 1")["outcome"], "refuted");
    let broken = run_with_sentinel("echo bwrap: no permission; exit 0");
    assert_eq!(
        (&broken["outcome"], &broken["last_output"]),
        (&"sandbox_failed".into(), &"bwrap: no permission\n".into())
    );
}

#[test]
fn check_of_a_killed_supervisor_is_found_by_its_mark() {
    let world = World::new();
    let mut supervisor = world.start(&[world.case_with_check("touch $FOLDER/checking; sleep 300")]);
    wait_until("it checks", || exists(&world.path("checking")));
    kill_process(supervisor.pid(), Signal::KILL).unwrap();
    supervisor.wait_exit();
    let limits = delegator_supervisor::process::SweepLimits::default();
    delegator_supervisor::process::sweep_lost(
        &world.task,
        &|_| delegator_supervisor::process::Owner::ThisTask,
        limits,
    )
    .unwrap();
    world.assert_no_processes_left();
}
