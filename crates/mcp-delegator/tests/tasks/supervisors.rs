//! Supervisors as processes: what they inherit, what ends them, and which processes a sweep leaves alone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use delegator_testkit::answers;
use delegator_testkit::stage::{Stage, is_alive, pids, successful_turn, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;
const SECRET: &str = "hunter2-and-more-of-it";

fn waiting_stage() -> Stage {
    Stage::with_script(
        PROGRAM,
        successful_turn(&[json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})]),
    )
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The names of the variables of a process.
fn variables_of(pid: i32) -> BTreeSet<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let entries = environ.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    entries.map(|entry| String::from_utf8_lossy(entry).split('=').next().unwrap().to_owned()).collect()
}

fn file_holds(path: PathBuf, text: &str) -> bool {
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .contains(text)
}

/// Parent, process group and session of a process.
fn relations_of(pid: i32) -> Option<[i32; 3]> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some([fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?])
}

#[test]
fn a_supervisor_inherits_only_the_listed_variables() {
    let stage = waiting_stage()
        .variable("MY_PASSWORD", SECRET)
        .variable("AWS_SECRET_ACCESS_KEY", SECRET)
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let first = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    let expected = ["HOME", "KEEP_MS", "KEEP_POINTS_MS", "SLOTS"];
    let expected: BTreeSet<String> = expected.map(|name| format!("MCP_DELEGATOR_{name}")).into();
    assert_eq!(variables_of(stage.supervisor_pid(&first)), expected);
    // The supervisor of the first task starts the second one.
    stage.set_script(successful_turn(&[json!({"touch_file": "second"}), json!({"wait_for_file": "go on"})]));
    let second = stage.exec(&[]);
    stage.world.write("project/go", "");
    stage.wait_for_project_file("second");
    assert_eq!(variables_of(stage.supervisor_pid(&second)), expected);
    stage.world.write("project/go on", "");
    assert_eq!(stage.wait(&second)["data"]["state"], "completed");
}

#[test]
fn agent_verify_command_and_version_probe_see_no_secret_of_the_caller() {
    let note = "env > \"$(dirname \"$0\")/env-of-$([ \"$1\" = --version ] && echo probe || echo agent)\"";
    let stage = Stage::with_shell_agent(PROGRAM, "")
        .variable("MY_PASSWORD", SECRET)
        .variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let version = "if [ \"$1\" = --version ]; then echo codex-cli 0.166.0; exit 0; fi";
    let turn = "cat > /dev/null; echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; \
                echo '{\"type\":\"turn.started\"}'; \
                echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}'";
    stage.write_program("bin/codex", &format!("#!/bin/sh\n{note}\n{version}\n{turn}\n"));
    let bin_dir = stage.root().join("bin");
    let check = format!("[\"/bin/sh\",\"-c\",\"env > {}/env-of-check\"]", bin_dir.display());
    for policy in ["inherit-none", "inherit-all"] {
        let id = stage.exec(&["--env-policy", policy, "--verify", &check]);
        let data = stage.wait(&id)["data"].clone();
        assert_eq!(data["state"], "completed", "{data}");
        for file in ["env-of-probe", "env-of-agent", "env-of-check"] {
            assert!(file_holds(bin_dir.join(file), "PATH="), "{file} is not an environment");
            assert!(!file_holds(bin_dir.join(file), SECRET), "{policy}: {file} holds the caller's secret");
        }
    }
}

/// Starts a server in a session of its own, as a client does.
fn serve(stage: &Stage) -> Child {
    let mut command = stage.world.command_as("setsid".as_ref(), [PROGRAM, "serve"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// An MCP client over stdio.
struct Client {
    server: Child,
    responses: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Client {
    fn start(stage: &Stage) -> Client {
        let mut server = serve(stage);
        let stdout = server.stdout.take().unwrap();
        let responses = std::io::BufRead::lines(std::io::BufReader::new(stdout));
        let mut client = Client { server, responses };
        client.request(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, message: &Value) {
        use std::io::Write;
        let input = self.server.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn request(&mut self, message: Value) -> Value {
        self.write(&message);
        loop {
            let line = self.responses.next().unwrap().unwrap();
            let response: Value = serde_json::from_str(&line).unwrap();
            answers::check(&response);
            if response["id"] == message["id"] {
                return response;
            }
        }
    }

    fn submit(&mut self, stage: &Stage) -> String {
        let arguments = json!({"task": "do it", "working_dir": stage.world.project()});
        let response = self.request(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "_codex_local_exec", "arguments": arguments}}));
        let text = response.to_string();
        let at = text.find("T-local-").unwrap_or_else(|| panic!("{response}"));
        text[at..at + "T-local-".len() + 10].to_owned()
    }
}

/// All processes that a client can reach from a server: its descendants, and all members of their process groups and
/// sessions.
fn tree_of(root: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let groups: BTreeSet<i32> = found
            .iter()
            .filter_map(|pid| relations_of(*pid))
            .flat_map(|[_, group, session]| [group, session])
            .collect();
        let before = found.len();
        for pid in pids() {
            if let Some([parent, group, session]) = relations_of(pid)
                && (found.contains(&parent) || groups.contains(&group) || groups.contains(&session))
            {
                found.insert(pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[test]
fn a_task_survives_killing_the_process_tree_of_its_server() {
    let stage = waiting_stage();
    let mut client = Client::start(&stage);
    let id = client.submit(&stage);
    stage.wait_for_project_file("ready");
    let server = client.server.id().cast_signed();
    let supervisor = stage.supervisor_pid(&id);
    let tree = tree_of(server);
    assert!(!tree.contains(&std::process::id().cast_signed()), "the server is in a session of its own");
    assert!(!tree.contains(&supervisor), "the supervisor is still in reach: {tree:?}");
    let [_, _, session] = relations_of(supervisor).unwrap();
    assert_eq!(session, supervisor, "the supervisor leads its own session");
    for signal in [Signal::TERM, Signal::KILL] {
        for pid in tree.iter().filter(|pid| is_alive(**pid)) {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), signal);
        }
    }
    client.server.wait().unwrap();
    assert!(is_alive(supervisor));
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn a_signal_to_the_supervisor_ends_its_task_and_records_it() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let stage = Stage::with_script(
            PROGRAM,
            successful_turn(&[
                json!({"message": "so far"}),
                json!({"child": {"session": "own", "orphan": true, "ignore": ["TERM", "INT"]}}),
                json!({"touch_file": "ready"}),
                json!({"wait_for_file": "go"}),
            ]),
        );
        let id = stage.exec(&[]);
        stage.wait_for_project_file("ready");
        let supervisor = stage.supervisor_pid(&id);
        send(supervisor, signal);
        let data = stage.wait(&id)["data"].clone();
        assert_eq!(data["state"], "cancelled", "{data}");
        let text = format!("ended by a signal: its supervisor received {name}");
        assert!(data.to_string().contains(&text), "{data}");
        assert_eq!(task_processes(&id), Vec::<i32>::new(), "the tree was swept");
        let report = std::fs::read_to_string(stage.task_dir(&id).join("report.json")).unwrap();
        assert!(
            report.contains("so far") && report.contains("SIGINT"),
            "not the usual termination: {report}"
        );
        assert!(!stage.task_dir(&id).join("launch").exists());
        wait_until("the supervisor has ended", || !is_alive(supervisor));
    }
}

#[test]
fn a_hangup_does_not_end_a_task() {
    let stage = waiting_stage();
    let id = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    send(stage.supervisor_pid(&id), Signal::HUP);
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn a_signal_during_the_verify_command_ends_the_task() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]))
        .variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let id = stage.exec(&["--verify", "[\"/bin/sh\",\"-c\",\"touch checking; exec sleep 300\"]"]);
    stage.wait_for_project_file("checking");
    send(stage.supervisor_pid(&id), Signal::TERM);
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "cancelled", "{data}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
}

/// A process that copies the command line of another task's supervisor is swept like any other.
#[test]
fn a_copied_command_line_does_not_survive_the_sweep() {
    let stage = waiting_stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "2");
    let other = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    let supervisor = stage.supervisor_pid(&other);
    let line = std::fs::read(format!("/proc/{supervisor}/cmdline")).unwrap();
    let args = String::from_utf8(line).unwrap();
    let args: Vec<&str> = args.trim_end_matches('\0').split('\0').skip(1).collect();
    // `cat` blocks on a FIFO that is named like the first argument.
    let run = format!(
        "mkfifo {}; env -i setsid cat {} >/dev/null 2>&1 & echo $! > copy; \
         until [ \"$(head -c 3 /proc/$!/cmdline)\" = cat ]; do :; done",
        args[0],
        args.join(" ")
    );
    stage.set_script(successful_turn(&[json!({"command": {"run": run}})]));
    let id = stage.exec(&[]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    let copy = std::fs::read_to_string(stage.world.project().join("copy")).unwrap();
    assert!(!is_alive(copy.trim().parse().unwrap()), "the copy is alive");
    assert!(is_alive(supervisor), "the real supervisor was killed");
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&other)["data"]["state"], "completed");
}
