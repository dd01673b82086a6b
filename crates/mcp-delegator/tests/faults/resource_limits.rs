//! F15: no descriptors, no processes. Whoever asks gets an answer, and when there are some again, all goes on.

use delegator_testkit::stage::successful_turn;
use serde_json::json;

use crate::agent_exit::program_as_unprivileged_user;
use crate::{PROGRAM, playing};

#[test]
fn f15_too_few_file_descriptors_are_a_retryable_error() {
    let stage = playing(successful_turn(&[]));
    for most in [5, 7, 9, 11, 13, 16, 20] {
        let limited = stage.write_program(
            "bin/limited",
            &format!("#!/bin/sh\nexec prlimit --nofile={most} {PROGRAM} \"$@\"\n"),
        );
        let run = stage.world.run_as(&limited, ["local", "run", "x"]);
        assert!(run.exit.is_some(), "{most}: it dies of nothing: {run:?}");
        assert_eq!(run.json()["ok"], run.exit == Some(0), "{most}: {run:?}");
    }
    let limited =
        stage.write_program("bin/limited", &format!("#!/bin/sh\nexec prlimit --nofile=6 {PROGRAM} \"$@\"\n"));
    for command in [&["local", "status"][..], &["local", "run", "x"]] {
        let error = stage.world.run_as(&limited, command).json()["error"].clone();
        assert_eq!(error["retryable"], true, "{command:?}: {error}");
        assert!(error["retry_after"].is_number(), "{command:?}: {error}");
        assert!(error["suggestion"].as_str().unwrap().contains("ulimit -n"), "{command:?}: {error}");
    }
    // What stayed in the queue is started by whoever comes next, and all of it ends.
    let listed = stage.run_json(&["local", "status", "--limit", "100"])["data"].clone();
    let waiting = ["tasks", "queue"].map(|key| listed[key].as_array().unwrap().clone()).concat();
    for task in waiting {
        let id = task["task_id"].as_str().unwrap();
        assert_eq!(stage.wait(id)["data"]["state"], "completed", "{task}");
    }
    assert_eq!(stage.world.run(["local", "run", "next"]).exit, Some(0));
    let summary = stage.run_json(&["local", "status"])["data"]["summary"].clone();
    assert_eq!((&summary["running"], &summary["queued"]), (&json!(0), &json!(0)));
}

#[test]
fn f15_a_task_stays_queued_when_no_process_can_start() {
    let stage = playing(successful_turn(&[]));
    let Some(free) = program_as_unprivileged_user(&stage) else { return };
    // The limit counts all processes of the user, so with 1 there is never another.
    let limited = stage.write_program(
        "bin/limited",
        &format!(
            "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups prlimit --nproc=1 {PROGRAM} \"$@\"\n"
        ),
    );
    // Once without, so that the agent's version is known and the shortage hits the start itself.
    assert_eq!(stage.world.run_as(&free, ["local", "run", "first"]).exit, Some(0));
    let answer = stage.world.run_as(&limited, ["local", "exec", "x"]).json();
    assert_eq!((&answer["ok"], &answer["data"]["state"]), (&json!(true), &json!("queued")), "{answer}");
    let id = answer["data"]["task_id"].as_str().unwrap().to_owned();
    let status = stage.world.run_as(&limited, ["local", "status"]).json();
    assert_eq!(status["data"]["summary"]["queued"], 1, "{status}");
    let answer = stage.world.run_as(&free, ["local", "wait", &id]).json();
    assert_eq!(answer["data"]["state"], "completed", "{answer}");
}

/// The system refuses a longer argument before the program runs, so only help and documentation can name the way.
#[test]
fn a_task_longer_than_an_argument_is_read_from_stdin() {
    let stage = playing(successful_turn(&[]));
    let text = "\u{20ac}".repeat(100_000);
    assert!(text.len() > 128 << 10);
    let run = stage.world.run_with_input(["local", "run", "-"], text.as_bytes());
    assert_eq!(run.exit, Some(0), "{run:?}");
    let help = stage.world.run(["local", "run", "--help"]);
    assert!(help.stdout.contains("128 KiB"), "{help:?}");
}
