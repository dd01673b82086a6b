//! A case from its world to what the program says about it, on two surfaces at least.

use delegator_testkit::stage::until;
use serde_json::Value;

use crate::case::{Agent, Case, Way};
use crate::fields::NEVER_TOLD;
use crate::stage::{Theatre, script};

/// What the program said.
#[derive(Debug)]
pub(crate) struct Told {
    /// The tool envelopes that tell of the task's end, each with the command that gave it.
    pub(crate) answers: Vec<(&'static str, Value)>,
    /// What `local run` said, if it was run.
    pub(crate) run: Option<Value>,
    /// The exit code of `local run`.
    pub(crate) run_exit: Option<i32>,
    /// The task's transcript, summarised; null where nobody asked.
    pub(crate) summary: Value,
}

const TASK: &str = "Do what you are there for.";

pub(crate) fn play(case: &Case, theatre: &Theatre) -> Told {
    match &case.way {
        Way::Exec => {
            perform(case, theatre);
            let id = submitted(theatre, &words(case, theatre, &["exec", TASK]));
            ended(case, theatre, &id)
        }
        Way::Run => {
            perform(case, theatre);
            run(case, theatre, &words(case, theatre, &["run", TASK, "--confirm"]))
        }
        Way::CancelWhenThere(file) => {
            perform(case, theatre);
            let id = submitted(theatre, &words(case, theatre, &["exec", TASK]));
            let file = theatre.working_dir(case).join(file);
            until("there is something to cancel", || file.exists());
            theatre.stage.answer(&["local", "cancel", &id]);
            ended(case, theatre, &id)
        }
        Way::Resume(steps) => {
            if !matches!(case.agent, Agent::Codex(_)) {
                theatre.stage.play(script(steps, false));
            }
            let first = submitted(theatre, &words(case, theatre, &["exec", TASK]));
            theatre.stage.wait(&first);
            perform(case, theatre);
            let again = words(case, theatre, &["resume", "Go on.", "--task-id", &first]);
            let id = submitted(theatre, &again);
            ended(case, theatre, &id)
        }
    }
}

/// What the scripted agent does from now on; a model knows what it says from the beginning.
fn perform(case: &Case, theatre: &Theatre) {
    match &case.agent {
        Agent::Scripted(steps) => theatre.stage.play(script(steps, false)),
        Agent::Stream(steps) => theatre.stage.play(script(steps, true)),
        Agent::Codex(_) => {}
    }
}

fn words(case: &Case, theatre: &Theatre, first: &[&str]) -> Vec<String> {
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

fn answer(theatre: &Theatre, words: &[&str]) -> Value {
    theatre.stage.answer(&[words, &["--format", "json", "--envelope", "tool"]].concat())
}

fn submitted(theatre: &Theatre, words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let accepted = answer(theatre, &words);
    accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

fn ended(case: &Case, theatre: &Theatre, id: &str) -> Told {
    let waited = answer(theatre, &["local", "wait", id]);
    let results = answer(theatre, &["local", "results", id]);
    let answers = vec![("wait", waited), ("results", results)];
    Told { answers, run: None, run_exit: None, summary: summary(case, theatre, id) }
}

fn run(case: &Case, theatre: &Theatre, words: &[String]) -> Told {
    let mut words = words.to_vec();
    words.extend(["--format", "json", "--envelope", "tool"].map(str::to_owned));
    let run = theatre.stage.world.run(&words);
    let said = run.json();
    let id = [&said["data"]["task_id"], &said["error"]["details"]["task_id"]];
    let id = id.into_iter().find_map(Value::as_str).unwrap_or_else(|| panic!("{said}")).to_owned();
    let results = answer(theatre, &["local", "results", &id]);
    let mut answers = vec![("results", results)];
    if said["data"].is_object() {
        answers.push(("run", said.clone()));
    }
    Told { answers, run: Some(said), run_exit: run.exit, summary: summary(case, theatre, &id) }
}

/// Asked for only where the truth is about it.
fn summary(case: &Case, theatre: &Theatre, id: &str) -> Value {
    if !["plan", NEVER_TOLD].iter().any(|name| case.truth.contains_key(*name)) {
        return Value::Null;
    }
    theatre.stage.answer(&["events", "summarize", id])["data"].take()
}
