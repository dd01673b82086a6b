//! Shutdown of a server with running tasks: the server exits, the tasks continue.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::{task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::client::{Client, ERAS, V2025_06, V2026_07, release_agents, waiting_stage};

/// How a server is ended, and the exit code that follows; `None` if the signal kills it.
#[derive(Debug, Clone, Copy)]
enum End {
    Eof,
    Signal(Signal, Option<i32>),
}

#[test]
fn tasks_continue_after_their_server_ends() {
    let ends = [End::Eof, End::Signal(Signal::TERM, Some(143)), End::Signal(Signal::HUP, None)];
    for (end, era) in ends.into_iter().zip(ERAS) {
        let stage = waiting_stage();
        let mut client = Client::connect(&stage, era);
        let id = client.exec();
        wait_until("the agent runs", || !task_processes(&id).is_empty());
        // A pending call does not delay the exit.
        let params = json!({"name": "_codex_local_wait", "arguments": {"task_id": id, "timeout_sec": 600}, "_meta": {"progressToken": 1}});
        client.send_request("tools/call", params);
        client.wait_for("progress", |message| message["method"] == "notifications/progress");
        let (exit, stderr) = match end {
            End::Eof => client.close(),
            End::Signal(signal, _) => {
                kill_process(Pid::from_child(&client.child), signal).unwrap();
                client.wait_for_exit()
            }
        };
        let expected = match end {
            End::Eof => Some(0),
            End::Signal(_, code) => code,
        };
        assert_eq!(exit, expected, "{end:?}: {stderr}");
        assert!(!task_processes(&id).is_empty(), "{end:?} ended the task");
        let mut next = Client::connect(&stage, V2026_07);
        let status = next.envelope("_codex_local_status", json!({}));
        assert_eq!(status["data"]["tasks"][0]["task_id"], json!(id), "{status}");
        release_agents(&stage);
        let waited = next.envelope("_codex_local_wait", json!({"task_id": id}));
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
    }
}

#[test]
fn a_server_exits_0_when_stdin_closes_at_once() {
    let stage = waiting_stage();
    let run = stage.world.run(["serve"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), ""), "{run:?}");
}

/// A client that closes stdout is not an error, as for every command. Stdin stays open meanwhile.
#[test]
fn a_server_exits_0_when_the_client_closes_stdout() {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let nonsense = json!("nonsense");
    for reads_first_response in [false, true] {
        for last in [&ask, &nonsense] {
            let stage = waiting_stage();
            let mut command = stage.world.command(["serve"]);
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut stdout = BufReader::new(stdout);
            if reads_first_response {
                writeln!(stdin, "{initialize}\n{ready}").unwrap();
                stdout.read_line(&mut String::new()).unwrap();
            }
            drop(stdout);
            // The server may have exited already.
            let _ = writeln!(stdin, "{initialize}\n{ready}\n{last}");
            let run = wait_for_output(child);
            assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{reads_first_response} {last}");
            drop(stdin);
        }
    }
}

#[test]
fn pending_responses_are_sent_after_stdin_closes() {
    let stage = waiting_stage();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "_codex_local_status", "arguments": {},
    }});
    let run = stage.world.run_with_input(["serve"], format!("{initialize}\n{call}\n").as_bytes());
    let replies: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        replies.iter().map(|reply| reply["id"].as_i64().unwrap()).collect::<Vec<_>>(),
        [1, 2],
        "{run:?}"
    );
}

#[test]
fn a_killed_server_leaves_its_task_running() {
    // The server is killed; its task is in another session.
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    wait_until("the agent runs", || !task_processes(&id).is_empty());
    kill_process(Pid::from_child(&client.child), Signal::KILL).unwrap();
    drop(client);
    release_agents(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}
