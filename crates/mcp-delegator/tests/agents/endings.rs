//! Every kind of agent while it runs a command that never ends: a cancelled task, a killed supervisor and a killed agent. No
//! process may be left.

use delegator_testkit::stage::{is_alive, pids, supervisor_of, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::agent_kinds::{AgentKind, for_every_agent};
use crate::live_world::LiveWorld;

for_every_agent!(a_cancelled_task_ends, a_lost_supervisor_is_noticed, a_killed_agent_fails_its_task);

/// A world with a task whose command runs.
fn running(kind: AgentKind) -> (LiveWorld, String) {
    let live = LiveWorld::new(kind, |_| Vec::new());
    let id = live.exec("wait", &["--mode", "workspace-write"]);
    live.wait_for_command();
    wait_until("the command does not end", || !live.endless_processes().is_empty());
    (live, id)
}

/// Asserts that neither the agent nor its command runs.
fn assert_nothing_runs(live: &LiveWorld, id: &str) {
    assert_eq!((task_processes(id), live.endless_processes()), (Vec::new(), Vec::new()));
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait_until("the process is dead", || !is_alive(pid));
}

/// What the agent is sent to stop its turn, if its protocol has a message for that.
fn stop_messages(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::CodexAppServer => &["turn/interrupt", "thread/backgroundTerminals/clean"],
        AgentKind::Claude => &[r#""subtype":"interrupt""#],
        AgentKind::Qwen | AgentKind::Opencode => &["session/cancel"],
        AgentKind::Codex | AgentKind::Plain | AgentKind::IdleJsonl => &[],
    }
}

fn a_cancelled_task_ends(kind: AgentKind) {
    let (live, id) = running(kind);
    live.world.run(["local", "cancel", &id]).json();
    let data = live.wait(&id);
    assert_nothing_runs(&live, &id);
    assert_eq!(data["state"], "cancelled", "{data:#}");
    let output = live.world.run(["logs", &id, "--raw"]).stdout;
    for message in stop_messages(kind) {
        assert!(output.contains(message), "{message}: {output}");
    }
}

fn a_lost_supervisor_is_noticed(kind: AgentKind) {
    let (live, id) = running(kind);
    kill(supervisor_of(&id));
    let data = live.wait(&id);
    assert_nothing_runs(&live, &id);
    assert_eq!(
        (&data["state"], &data["metadata"]["error_context"]["failure_kind"]),
        (&json!("failed"), &json!("supervisor_lost")),
        "{data:#}"
    );
}

fn a_killed_agent_fails_its_task(kind: AgentKind) {
    let (live, id) = running(kind);
    kill(agent_of(&id));
    let data = live.wait(&id);
    assert_nothing_runs(&live, &id);
    assert_eq!(
        (&data["state"], &data["metadata"]["error_context"]["failure_kind"]),
        (&json!("failed"), &json!("killed")),
        "{data:#}"
    );
}

/// The agent of a task: the first child of its supervisor.
fn agent_of(id: &str) -> i32 {
    let supervisor = supervisor_of(id);
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before it may contain spaces.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        parent == Some(supervisor)
    };
    pids().into_iter().filter(is_child).min().unwrap()
}
