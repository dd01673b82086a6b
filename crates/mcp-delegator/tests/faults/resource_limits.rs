//! Resource limits: without file descriptors or processes a command fails or the task stays queued; nothing is lost.

use delegator_testkit::stage::successful_turn;
use serde_json::json;

use crate::agent_exit::{UnprivilegedProgram, program_as_unprivileged_user};
use crate::{PROGRAM, scripted_stage};

#[test]
fn f15_too_few_file_descriptors_are_a_retryable_error() {
    let stage = scripted_stage(successful_turn(&[]));
    for limit in [5, 7, 9, 11, 13, 16, 20] {
        let limited = stage.write_program(
            "bin/limited",
            &format!("#!/bin/sh\nexec prlimit --nofile={limit} '{PROGRAM}' \"$@\"\n"),
        );
        let run = stage.world.run_as(&limited, ["local", "run", "x"]);
        assert!(run.exit.is_some(), "{limit}: it was killed: {run:?}");
        assert_eq!(run.json()["ok"], run.exit == Some(0), "{limit}: {run:?}");
    }
    let limited = stage
        .write_program("bin/limited", &format!("#!/bin/sh\nexec prlimit --nofile=6 '{PROGRAM}' \"$@\"\n"));
    for command in [&["local", "status"][..], &["local", "run", "x"]] {
        let error = stage.world.run_as(&limited, command).json()["error"].clone();
        assert_eq!(error["retryable"], true, "{command:?}: {error}");
        assert!(error["retry_after"].is_number(), "{command:?}: {error}");
        assert!(error["suggestion"].as_str().unwrap().contains("ulimit -n"), "{command:?}: {error}");
    }
    // Tasks that stayed queued are started by the next command, and all of them complete.
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
    let stage = scripted_stage(successful_turn(&[]));
    let Some(UnprivilegedProgram { wrapper: free, copy }) = program_as_unprivileged_user(&stage) else {
        return;
    };
    // RLIMIT_NPROC counts all processes of the user, so 1 allows no further process.
    let limited = stage.write_program(
        "bin/limited",
        &format!(
            "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups prlimit --nproc=1 '{}' \"$@\"\n",
            copy.display()
        ),
    );
    // Run once without the limit, so that the agent's version is cached and the limit applies to the start itself.
    assert_eq!(stage.world.run_as(&free, ["local", "run", "first"]).exit, Some(0));
    let response = stage.world.run_as(&limited, ["local", "exec", "x"]).json();
    assert_eq!((&response["ok"], &response["data"]["state"]), (&json!(true), &json!("queued")), "{response}");
    let id = response["data"]["task_id"].as_str().unwrap().to_owned();
    let status = stage.world.run_as(&limited, ["local", "status"]).json();
    assert_eq!(status["data"]["summary"]["queued"], 1, "{status}");
    let response = stage.world.run_as(&free, ["local", "wait", &id]).json();
    assert_eq!(response["data"]["state"], "completed", "{response}");
}

#[test]
fn f15_a_run_without_a_supervisor_is_retryable() {
    let stage = scripted_stage(successful_turn(&[]));
    let Some(UnprivilegedProgram { wrapper: free, copy }) = program_as_unprivileged_user(&stage) else {
        return;
    };
    assert_eq!(stage.world.run_as(&free, ["local", "run", "first"]).exit, Some(0));
    let limited = stage.write_program(
        "bin/limited",
        &format!(
            "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups prlimit --nproc=1 '{}' \"$@\"\n",
            copy.display()
        ),
    );
    let run = stage.world.run_as(&limited, ["local", "run", "x"]);
    let error = run.json()["error"].clone();
    let expected = (Some(12), &json!("SUPERVISOR_UNAVAILABLE"), &json!(true));
    assert_eq!((run.exit, &error["code"], &error["retryable"]), expected, "{run:?}");
}

/// The kernel refuses an argument over 128 KiB before the program runs, so only help and documentation can point to stdin.
#[test]
fn a_task_longer_than_an_argument_is_read_from_stdin() {
    let stage = scripted_stage(successful_turn(&[]));
    let text = "\u{20ac}".repeat(100_000);
    assert!(text.len() > 128 << 10);
    let run = stage.world.run_with_input(["local", "run", "-"], text.as_bytes());
    assert_eq!(run.exit, Some(0), "{run:?}");
    let help = stage.world.run(["local", "run", "--help"]);
    assert!(help.stdout.contains("128 KiB"), "{help:?}");
}
