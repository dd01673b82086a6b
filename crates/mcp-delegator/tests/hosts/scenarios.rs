//! What happens to the model behind a host: the usual workflow, and the mistakes and refusals of a first hour.

use serde_json::{Value, json};

use super::sessions::{Host, ServerChoice, Session};
use super::{AGENT_ANSWER, Call, PROGRAM};

const SERVER: ServerChoice<'_> = ServerChoice { program: PROGRAM, toolsets: "local,registry" };
const QUESTION: &str = "How deep is the well?";

fn call(tool: &str, input: Value) -> Call {
    Call { tool: tool.to_owned(), input }
}

/// Starts a task outside of a git repository, with further inputs.
fn exec(more: &Value) -> Call {
    let mut input = json!({"task": QUESTION, "options": {"skip_git_repo_check": true}});
    for (name, value) in more.as_object().unwrap() {
        input[name] = value.clone();
    }
    call("local_exec", input)
}

fn wait() -> Call {
    call("local_wait", json!({"task_id": "T-the-task"}))
}

fn session(host: Host, turns: Vec<Vec<Call>>) -> Session {
    host.session(SERVER, turns)
}

#[test]
fn exec_and_wait_are_enough_for_the_final_answer() {
    for host in Host::ALL {
        let session = session(host, vec![vec![exec(&json!({}))], vec![wait()]]);
        let [started, ended] = session.results.as_slice() else { panic!("{session:?}") };
        assert!(started.contains("Next: `_codex_local_wait {\"task_id\":\"T-local-"), "{host:?}: {started}");
        assert!(!started.contains(AGENT_ANSWER), "{host:?}: {started}");
        assert!(ended.contains("completed") && ended.contains(AGENT_ANSWER), "{host:?}: {ended}");
        assert!(!ended.contains("Next:"), "a result needs no further call: {ended}");
    }
}

/// Both hosts declare elicitation, and refuse the question by themselves when they run without a user.
#[test]
fn a_host_without_a_user_learns_to_ask_the_user() {
    for host in Host::ALL {
        let write = json!({"mode": "workspace-write"});
        let refused = Call { tool: "local_run".to_owned(), ..exec(&write) };
        let session = session(host, vec![vec![refused], vec![exec(&write)], vec![wait()]]);
        let refusal = &session.results[0];
        assert!(refusal.contains("CONFIRMATION_REQUIRED"), "{host:?}: {refusal}");
        for part in ["confirmation is not available", "Ask the user", "confirm: true"] {
            assert!(refusal.contains(part), "{host:?}: {part}: {refusal}");
        }
        assert!(!refusal.contains("local_exec"), "a way around the user: {refusal}");
        assert!(!refusal.contains("reports that the user declined"), "{refusal}");
        assert!(session.results[2].contains(AGENT_ANSWER), "{host:?}: {:?}", session.results);
    }
}

#[test]
fn a_mistyped_input_is_named_with_its_correction() {
    for host in Host::ALL {
        let turns = vec![
            vec![exec(&json!({"workdir": "/"}))],
            vec![exec(&json!({"working_dir": "/"}))],
            vec![wait()],
        ];
        let session = session(host, turns);
        let refusal = &session.results[0];
        assert!(refusal.contains("workdir") && refusal.contains("Did you mean working_dir?"), "{refusal}");
        assert!(session.results[1].contains("directory: /"), "{host:?}: {:?}", session.results);
        assert!(session.results[2].contains(AGENT_ANSWER), "{host:?}: {:?}", session.results);
    }
}

#[test]
fn parallel_tasks_are_waited_for_together() {
    for host in Host::ALL {
        let both = call("local_wait", json!({"task_ids": ["T-task-1", "T-task-2"]}));
        let session = session(host, vec![vec![exec(&json!({})), exec(&json!({}))], vec![both]]);
        let ended = &session.results[2];
        assert_eq!(ended.matches(AGENT_ANSWER).count(), 2, "{host:?}: {ended}");
        for started in &session.results[..2] {
            let (_, rest) = started.split_once("# Task ").unwrap_or_else(|| panic!("{started}"));
            let id = rest.split(' ').next().unwrap();
            assert!(ended.contains(id), "{host:?}: {id}: {ended}");
        }
    }
}
