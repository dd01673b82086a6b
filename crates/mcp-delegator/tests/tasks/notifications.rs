//! Notifications at the end of tasks and chains: delivered although the receiver was down and the delivery process was killed, only for
//! the configured ends, and without secrets.

#![cfg(debug_assertions)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, is_alive, pids, successful_turn, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

const SECRET: &str = "correct-horse-battery-staple";

/// A stage with this `[notify]` table, whose failed deliveries are repeated after 100 ms.
fn stage(notify: &str) -> Stage {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]))
        .variable("MCP_DELEGATOR_TEST_INHERIT", "MCP_DELEGATOR_TEST_RETRY_MS")
        .variable("MCP_DELEGATOR_TEST_RETRY_MS", "100");
    stage.world.write("home/.config/mcp-delegator/config.toml", &format!("[notify]\n{notify}\n"));
    stage
}

/// The processes that deliver the notifications of a stage.
pub(crate) fn delivery_processes(stage: &Stage) -> Vec<i32> {
    let home = format!("MCP_DELEGATOR_HOME={}\0", stage.root().join("home/state").display());
    let contains = |path: String, text: &str| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let is_ours = |pid: &i32| {
        contains(format!("/proc/{pid}/cmdline"), "\0deliver-notifications\0")
            && contains(format!("/proc/{pid}/environ"), &home)
            && is_alive(*pid)
    };
    pids().into_iter().filter(is_ours).collect()
}

pub(crate) fn listed(stage: &Stage, kind: &str) -> Vec<Value> {
    stage.run_json(&["notify"])["data"][format!("{kind}_notifications")].as_array().unwrap().clone()
}

/// A request and the status that was answered.
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Value,
    status: u16,
}

/// Receives requests; answers the first with 500 and the others with 200.
fn receive(address: SocketAddr) -> Receiver<Received> {
    let listener = TcpListener::bind(address).unwrap();
    let (sender, received) = channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let status = if number == 0 { 500 } else { 200 };
            if sender.send(answer(stream.unwrap(), status)).is_err() {
                return;
            }
        }
    });
    received
}

pub(crate) fn answer(mut stream: TcpStream, status: u16) -> Received {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let head = head.to_ascii_lowercase();
    let length = head.split_once("content-length: ").unwrap().1.lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    write!(stream, "HTTP/1.1 {status} Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    Received { head, body: serde_json::from_slice(&body).unwrap(), status }
}

/// The files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    found
}

#[test]
fn a_receiver_that_was_down_gets_every_notification_once() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stage = stage(&format!(
        "webhook = 'http://{address}/hook/private-path'\nwebhook_secret_file = '~/secret'\ntemplate = '{{state}}: {{title}}'"
    ));
    stage.world.write("home/secret", &format!("{SECRET}\n"));
    let ids: Vec<String> = (0..2).map(|_| stage.exec(&["--labels", &format!("token={SECRET}")])).collect();
    ids.iter().for_each(|id| drop(stage.wait(id)));
    // No receiver listens, so every attempt fails.
    wait_until("both were tried", || {
        let pending = listed(&stage, "pending");
        pending.len() == 2 && pending.iter().all(|found| found["last_error"].is_string())
    });
    let pending = stage.world.run(["notify", "--format", "human"]).stdout;
    assert!(pending.contains("could not be reached") && !pending.contains("private-path"), "{pending}");
    for pid in delivery_processes(&stage) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    let received = receive(address);
    let mut all = Vec::new();
    wait_until("both were accepted", || {
        // Any command starts the delivery again.
        stage.run_json(&["local", "status"]);
        all.extend(received.try_iter());
        all.iter().filter(|received: &&Received| received.status == 200).count() == 2
    });
    wait_until("the delivery process has ended", || delivery_processes(&stage).is_empty());
    all.extend(received.try_iter());
    let id_of = |received: &Received| received.body["id"].as_str().unwrap().to_owned();
    let accepted: Vec<&Received> = all.iter().filter(|received| received.status == 200).collect();
    let unique: BTreeSet<String> = accepted.iter().map(|received| id_of(received)).collect();
    assert_eq!((all.len(), accepted.len()), (3, 2), "one was refused, and each was accepted once");
    assert_eq!(unique, ids.iter().map(|id| format!("{id}.end")).collect());
    for received in &all {
        let (head, body) = (&received.head, &received.body);
        assert!(head.contains("\r\nmcp-delegator-signature: sha256="), "{head}");
        assert!(
            head.contains(&format!("\r\nmcp-delegator-id: {}\r\n", id_of(received).to_lowercase())),
            "{head}"
        );
        assert!(body["delivery_attempt"].as_u64().unwrap() > 1, "{body}");
        assert_eq!(
            (&body["title"], &body["subject"]["state"]),
            (&json!("completed: do it"), &json!("completed"))
        );
        assert!(!body.to_string().contains(SECRET), "{body}");
    }
    assert_eq!((listed(&stage, "pending"), listed(&stage, "failed")), (Vec::new(), Vec::new()));
    let state = stage.root().join("home/state");
    assert_eq!(files_with(&state, SECRET), Vec::<String>::new());
    assert_eq!(files_with(&state, "private-path"), Vec::<String>::new());
}

#[test]
fn a_command_is_run_for_the_configured_ends_and_can_be_tested() {
    let line = r#"{ cat; echo; } >> ~/notified; test ! -e ~/broken || { echo out of paper >&2; exit 3; }"#;
    let stage = stage(&format!("on = ['cancelled', 'timeout']\ncommand = ['sh', '-c', '{line}']"));
    let notified = stage.world.home().join("notified");
    let completed = stage.exec(&[]);
    stage.wait(&completed);
    stage.run_json(&["queue", "pause"]);
    let queued = stage.exec(&[]);
    stage.run_json(&["local", "cancel", &queued, "--reason", "not needed"]);
    wait_until("the command was run", || notified.exists());
    wait_until("nothing is left to send", || listed(&stage, "pending").is_empty());
    let sent: Value = serde_json::from_str(&read_text(&notified)).unwrap();
    assert_eq!((&sent["subject"]["id"], &sent["subject"]["state"]), (&json!(queued), &json!("cancelled")));
    assert_eq!((&sent["is_test"], &sent["delivery_attempt"]), (&json!(false), &json!(1)));
    let tested = stage.run_json(&["notify", "--test"]);
    assert_eq!(tested["data"]["channels"], json!([{"channel": "command", "is_delivered": true}]), "{tested}");
    let last: Value = serde_json::from_str(read_text(&notified).lines().last().unwrap()).unwrap();
    assert_eq!(last["is_test"], true);
    let check = |stage: &Stage| {
        let checks = stage.world.doctor_checks();
        let found = checks.as_array().unwrap().iter().find(|check| check["name"] == "notifications");
        found.unwrap_or_else(|| panic!("{checks}")).clone()
    };
    assert_eq!(check(&stage)["status"], "ok");
    stage.world.write("home/broken", "");
    let tested = stage.world.run(["notify", "--test", "--format", "human"]);
    assert_ne!(tested.exit, Some(0));
    assert!(tested.stderr.contains("out of paper"), "{tested:?}");
    stage.exec(&[]);
    stage.run_json(&["cancel", "--all"]);
    wait_until("the failure is known", || check(&stage)["message"].to_string().contains("out of paper"));
    std::fs::remove_file(stage.world.home().join("broken")).unwrap();
    wait_until("it was delivered", || listed(&stage, "pending").is_empty());
    stage.world.write("home/.config/mcp-delegator/config.toml", "[notify]\ncommand = ['no-such-program']\n");
    let message = check(&stage)["message"].to_string();
    assert!(message.contains("no-such-program"), "{message}");
}

#[test]
fn a_failed_check_is_an_end_of_its_own() {
    let stage = stage("on = ['verify_failed']\ncommand = ['sh', '-c', 'cat >> ~/notified']")
        .variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let notified = stage.world.home().join("notified");
    stage.wait(&stage.exec(&[]));
    stage.wait(&stage.exec(&["--verify", "true"]));
    let refuted = stage.exec(&["--verify", "false"]);
    stage.wait(&refuted);
    wait_until("the command was run", || notified.exists());
    wait_until("nothing is left to send", || listed(&stage, "pending").is_empty());
    let sent: Value = serde_json::from_str(&read_text(&notified)).unwrap();
    assert_eq!((&sent["title"], &sent["subject"]["id"]), (&json!("verify failed: do it"), &json!(refuted)));
    for ended in [&sent["subject"], &sent["tasks"][0]] {
        assert_eq!(
            (&ended["state"], &ended["end"]),
            (&json!("completed"), &json!("verify_failed")),
            "{sent}"
        );
    }
}

/// The channel is broken until the chain has ended, so its only notification is found with the old settings first.
#[test]
fn a_chain_notifies_once_and_a_retry_uses_corrected_settings() {
    let stage = stage("command = ['no-such-program']");
    let first = stage.exec(&["--on-success", "second", "--on-failure", "never"]);
    wait_until("the chain has ended", || {
        listed(&stage, "pending").iter().any(|found| found["last_error"].is_string())
    });
    let found: Vec<_> = listed(&stage, "pending")
        .iter()
        .map(|found| (found["subject"].clone(), found["subject_id"].clone()))
        .collect();
    assert_eq!(found, [(json!("chain"), json!(first))]);
    let shown = stage.world.run(["notify", "--format", "human"]).stdout;
    assert!(shown.contains("mcp-delegator notify --retry"), "{shown}");
    let config = "[notify]\ncommand = ['sh', '-c', '{ cat; echo; } >> ~/notified']\n";
    stage.world.write("home/.config/mcp-delegator/config.toml", config);
    assert_eq!(stage.run_json(&["notify", "--retry"])["data"]["retried_count"], 1);
    wait_until("nothing is left to send", || listed(&stage, "pending").is_empty());
    let sent: Value = serde_json::from_str(&read_text(&stage.world.home().join("notified"))).unwrap();
    assert_eq!((&sent["event"], &sent["subject"]["state"]), (&json!("chain.ended"), &json!("completed")));
    assert_eq!(sent["subject"]["counts"]["completed"], 2, "{sent}");
    assert_eq!(sent["subject"]["counts"]["skipped"], 1, "{sent}");
    assert_eq!(listed(&stage, "failed"), Vec::<Value>::new());
}
