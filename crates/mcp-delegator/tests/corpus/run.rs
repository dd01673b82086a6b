//! A case from its world to what the program says about it, on two surfaces at least.

use delegator_testkit::stage::wait_until;
use serde_json::Value;

use crate::case::{Agent, CallSequence, Case};
use crate::case_world::{CaseWorld, script};
use crate::fields::NEVER_SHOWN;

/// What the program said.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// The tool envelopes that tell of the task's end, each with the command that gave it.
    pub(crate) envelopes: Vec<(&'static str, Value)>,
    /// What `local run` said, if it was run.
    pub(crate) run: Option<Value>,
    /// The exit code of `local run`.
    pub(crate) run_exit: Option<i32>,
    /// The task's transcript, summarised; null where nobody asked.
    pub(crate) summary: Value,
}

const TASK: &str = "Do what you are there for.";

pub(crate) fn run_case(case: &Case, theatre: &CaseWorld) -> Outputs {
    match &case.way {
        CallSequence::Exec => {
            set_agent_script(case, theatre);
            let id = submit(theatre, &call_args(case, theatre, &["exec", TASK]));
            collect_outputs(case, theatre, &id)
        }
        CallSequence::Run => {
            set_agent_script(case, theatre);
            run_in_foreground(case, theatre, &call_args(case, theatre, &["run", TASK, "--confirm"]))
        }
        CallSequence::CancelWhenThere(file) => {
            set_agent_script(case, theatre);
            let id = submit(theatre, &call_args(case, theatre, &["exec", TASK]));
            let file = theatre.working_dir(case).join(file);
            wait_until("there is something to cancel", || file.exists());
            theatre.stage.run_json(&["local", "cancel", &id]);
            collect_outputs(case, theatre, &id)
        }
        CallSequence::Resume(steps) => {
            if !matches!(case.agent, Agent::Codex(_)) {
                theatre.stage.set_script(script(steps, false));
            }
            let first = submit(theatre, &call_args(case, theatre, &["exec", TASK]));
            theatre.stage.wait(&first);
            set_agent_script(case, theatre);
            let again = call_args(case, theatre, &["resume", "Go on.", "--task-id", &first]);
            let id = submit(theatre, &again);
            collect_outputs(case, theatre, &id)
        }
    }
}

/// What the scripted agent does from now on; a model knows what it says from the beginning.
fn set_agent_script(case: &Case, theatre: &CaseWorld) {
    match &case.agent {
        Agent::Scripted(steps) => theatre.stage.set_script(script(steps, false)),
        Agent::Stream(steps) => theatre.stage.set_script(script(steps, true)),
        Agent::Codex(_) => {}
    }
}

fn call_args(case: &Case, theatre: &CaseWorld, first: &[&str]) -> Vec<String> {
    let mut all = vec!["local".to_owned()];
    all.extend(first.iter().map(|word| (*word).to_owned()));
    if first[0] != "resume" {
        let directory = theatre.working_dir(case).display().to_string();
        all.extend(["--working-dir".to_owned(), directory]);
    }
    all.extend(["--skip-git-repo-check".to_owned()]);
    all.extend_from_slice(&case.words);
    all
}

fn tool_envelope(theatre: &CaseWorld, words: &[&str]) -> Value {
    theatre.stage.run_json(&[words, &["--format", "json", "--envelope", "tool"]].concat())
}

fn submit(theatre: &CaseWorld, words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let accepted = tool_envelope(theatre, &words);
    accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

fn collect_outputs(case: &Case, theatre: &CaseWorld, id: &str) -> Outputs {
    let waited = tool_envelope(theatre, &["local", "wait", id]);
    let results = tool_envelope(theatre, &["local", "results", id]);
    let answers = vec![("wait", waited), ("results", results)];
    Outputs { envelopes: answers, run: None, run_exit: None, summary: summary(case, theatre, id) }
}

fn run_in_foreground(case: &Case, theatre: &CaseWorld, words: &[String]) -> Outputs {
    let mut words = words.to_vec();
    words.extend(["--format", "json", "--envelope", "tool"].map(str::to_owned));
    let run = theatre.stage.world.run(&words);
    let said = run.json();
    let id = [&said["data"]["task_id"], &said["error"]["details"]["task_id"]];
    let id = id.into_iter().find_map(Value::as_str).unwrap_or_else(|| panic!("{said}")).to_owned();
    let results = tool_envelope(theatre, &["local", "results", &id]);
    let mut answers = vec![("results", results)];
    if said["data"].is_object() {
        answers.push(("run", said.clone()));
    }
    Outputs { envelopes: answers, run: Some(said), run_exit: run.exit, summary: summary(case, theatre, &id) }
}

/// Asked for only where the truth is about it.
fn summary(case: &Case, theatre: &CaseWorld, id: &str) -> Value {
    if !["plan", NEVER_SHOWN].iter().any(|name| case.truth.contains_key(*name)) {
        return Value::Null;
    }
    theatre.stage.run_json(&["events", "summarize", id])["data"].take()
}
