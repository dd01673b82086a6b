//! The end of a server with tasks under way (F41): it goes, they stay.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use delegator_testkit::program::finished;
use delegator_testkit::stage::{processes_of, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::host::{ERAS, Host, NEW, OLD, go, waiting};

/// How a server is told to end, and the exit code that follows; none where the signal itself ends it.
#[derive(Debug, Clone, Copy)]
enum End {
    Eof,
    Signal(Signal, Option<i32>),
}

#[test]
fn tasks_outlive_their_server_and_the_next_one_shows_them() {
    let ends = [End::Eof, End::Signal(Signal::TERM, Some(143)), End::Signal(Signal::HUP, None)];
    for (end, era) in ends.into_iter().zip(ERAS) {
        let stage = waiting();
        let mut host = Host::of(&stage, era);
        let id = host.exec();
        until("the agent runs", || !processes_of(&id).is_empty());
        // A call that is under way does not hold up the end.
        let params = json!({"name": "_codex_local_wait", "arguments": {"task_id": id, "timeout_sec": 600}, "_meta": {"progressToken": 1}});
        host.ask("tools/call", params);
        host.until("progress", |message| message["method"] == "notifications/progress");
        let (exit, stderr) = match end {
            End::Eof => host.hang_up(),
            End::Signal(signal, _) => {
                kill_process(Pid::from_child(&host.child), signal).unwrap();
                host.end()
            }
        };
        let expected = match end {
            End::Eof => Some(0),
            End::Signal(_, code) => code,
        };
        assert_eq!(exit, expected, "{end:?}: {stderr}");
        assert!(!processes_of(&id).is_empty(), "{end:?} ended the task");
        let mut next = Host::of(&stage, NEW);
        let status = next.envelope("_codex_local_status", json!({}));
        assert_eq!(status["data"]["tasks"][0]["task_id"], json!(id), "{status}");
        go(&stage);
        let waited = next.envelope("_codex_local_wait", json!({"task_id": id}));
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
    }
}

#[test]
fn a_host_that_hangs_up_at_once_has_done_nothing_wrong() {
    let stage = waiting();
    let run = stage.world.run(["serve"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), ""), "{run:?}");
}

/// As for every other answer: a reader that goes away is not an error of ours. The input stays open all the while.
#[test]
fn a_host_that_does_not_listen_any_more_ends_its_server_silently() {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let nonsense = json!("nonsense");
    for heard_greeting in [false, true] {
        for last in [&ask, &nonsense] {
            let stage = waiting();
            let mut command = stage.world.command(["serve"]);
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut stdout = BufReader::new(stdout);
            if heard_greeting {
                writeln!(stdin, "{hello}\n{ready}").unwrap();
                stdout.read_line(&mut String::new()).unwrap();
            }
            drop(stdout);
            // It may be gone before it was told everything.
            let _ = writeln!(stdin, "{hello}\n{ready}\n{last}");
            let run = finished(child);
            assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{heard_greeting} {last}");
            drop(stdin);
        }
    }
}

#[test]
fn answers_under_way_are_still_given_at_the_end_of_the_input() {
    let stage = waiting();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "_codex_local_status", "arguments": {},
    }});
    let run = stage.world.run_with_input(["serve"], format!("{hello}\n{call}\n").as_bytes());
    let replies: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        replies.iter().map(|reply| reply["id"].as_i64().unwrap()).collect::<Vec<_>>(),
        [1, 2],
        "{run:?}"
    );
}

#[test]
fn a_task_is_not_the_servers_child_to_take_along() {
    // The host is killed with its whole process group, as a terminal does it.
    let stage = waiting();
    let mut host = Host::of(&stage, OLD);
    let id = host.exec();
    until("the agent runs", || !processes_of(&id).is_empty());
    kill_process(Pid::from_child(&host.child), Signal::KILL).unwrap();
    drop(host);
    go(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}
