//! Runs a case with the real program and collects its outputs from at least two commands.

use delegator_testkit::stage::wait_until;
use serde_json::Value;

use crate::case::{Agent, CallSequence, Case};
use crate::case_world::{CaseWorld, script};
use crate::fields::NEVER_SHOWN;

/// Everything the program printed about the task.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// The tool envelopes of the finished task, each with the command that printed it.
    pub(crate) envelopes: Vec<(&'static str, Value)>,
    /// The output of `local run`, if the case uses it.
    pub(crate) run: Option<Value>,
    pub(crate) run_exit: Option<i32>,
    /// Output of `events summarize`; null if the case states nothing about it.
    pub(crate) summary: Value,
}

const TASK: &str = "Do the task.";

pub(crate) fn run_case(case: &Case, world: &CaseWorld) -> Outputs {
    match &case.calls {
        CallSequence::Exec => {
            set_agent_script(case, world);
            let id = submit(world, &call_args(case, world, &["exec", TASK]));
            collect_outputs(case, world, &id)
        }
        CallSequence::Run => {
            set_agent_script(case, world);
            run_in_foreground(case, world, &call_args(case, world, &["run", TASK]))
        }
        CallSequence::CancelWhenExists(file) => {
            set_agent_script(case, world);
            let id = submit(world, &call_args(case, world, &["exec", TASK]));
            let file = world.working_dir(case).join(file);
            wait_until("the file to cancel at exists", || file.exists());
            world.stage.run_json(&["local", "cancel", &id]);
            collect_outputs(case, world, &id)
        }
        CallSequence::Resume(steps) => {
            if !matches!(case.agent, Agent::Codex(_)) {
                world.stage.set_script(script(steps, false));
            }
            let first = submit(world, &call_args(case, world, &["exec", TASK]));
            world.stage.wait(&first);
            set_agent_script(case, world);
            let again = call_args(case, world, &["resume", "Go on.", "--task-id", &first]);
            let id = submit(world, &again);
            collect_outputs(case, world, &id)
        }
    }
}

/// Sets the script of the scripted agent. The fake model of Codex has its script from the start.
fn set_agent_script(case: &Case, world: &CaseWorld) {
    match &case.agent {
        Agent::Scripted(steps) => world.stage.set_script(script(steps, false)),
        Agent::Stream(steps) => world.stage.set_script(script(steps, true)),
        Agent::Codex(_) => {}
    }
}

fn call_args(case: &Case, world: &CaseWorld, first: &[&str]) -> Vec<String> {
    let mut all = vec!["local".to_owned()];
    all.extend(first.iter().map(|word| (*word).to_owned()));
    if first[0] != "resume" {
        let directory = world.working_dir(case).display().to_string();
        all.extend(["--working-dir".to_owned(), directory]);
    }
    all.extend(["--skip-git-repo-check".to_owned()]);
    all.extend_from_slice(&case.args);
    all
}

fn tool_envelope(world: &CaseWorld, args: &[&str]) -> Value {
    world.stage.run_json(&[args, &["--format", "json", "--envelope", "tool"]].concat())
}

fn submit(world: &CaseWorld, args: &[String]) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let accepted = tool_envelope(world, &args);
    accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

fn collect_outputs(case: &Case, world: &CaseWorld, id: &str) -> Outputs {
    let waited = tool_envelope(world, &["local", "wait", id]);
    let results = tool_envelope(world, &["local", "results", id]);
    let envelopes = vec![("wait", waited), ("results", results)];
    Outputs { envelopes, run: None, run_exit: None, summary: summary(case, world, id) }
}

fn run_in_foreground(case: &Case, world: &CaseWorld, args: &[String]) -> Outputs {
    let mut args = args.to_vec();
    args.extend(["--format", "json", "--envelope", "tool"].map(str::to_owned));
    let run = world.stage.world.run(&args);
    let envelope = run.json();
    let id = [&envelope["data"]["task_id"], &envelope["error"]["details"]["task_id"]];
    let id = id.into_iter().find_map(Value::as_str).unwrap_or_else(|| panic!("{envelope}")).to_owned();
    let results = tool_envelope(world, &["local", "results", &id]);
    let mut envelopes = vec![("results", results)];
    if envelope["data"].is_object() {
        envelopes.push(("run", envelope.clone()));
    }
    Outputs { envelopes, run: Some(envelope), run_exit: run.exit, summary: summary(case, world, &id) }
}

/// Runs `events summarize` only if the case states something about it.
fn summary(case: &Case, world: &CaseWorld, id: &str) -> Value {
    if !["plan", NEVER_SHOWN].iter().any(|name| case.truth.contains_key(*name)) {
        return Value::Null;
    }
    world.stage.run_json(&["events", "summarize", id])["data"].take()
}
