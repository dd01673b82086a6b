//! `docs/extraction.md`: what of a task is extracted, and how much of it is held to truth.
//!
//! The figures are counted in the cases. Which fields are right need not be measured: every case is a test that fails if
//! another one is wrong than those it says are missed, or if one of these is right.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::case::{Agent, CallSequence, Case};
use crate::fields::{FIELDS, NEVER_SHOWN};

const INTRODUCTION: &str = "\
# Extraction

<!-- Written by tests/corpus from its cases: `just update-generated`. -->

What `wait`, `run` and `results` say about a task is extracted: from what the agent and its commands printed, from what we saw of the
files, from how the process ended. Whether it is right is measured with a corpus of finished tasks whose truth is known.
";

const METHOD: &str = "\
## How truth was made

A case (`crates/mcp-delegator/tests/corpus/cases/*.json`) is a project, what an agent does in it, how the task is asked for, and the truth. The truth was
written by hand from what the case makes happen: files and lines from the texts that are written, digests from these texts
by another program, tests counted in the recorded output, places read where the compiler printed them. None of it was copied from an answer. What a case says
of files is also held to the disk when it is played, so a wrong truth fails too.

Each case is a test of its own: the world is set up, the task is run by the real program, and every field that the truth names is
compared, on two surfaces (`wait` and `results`, or `run` and `results`). A field that differs fails the test, unless the case says that it
is missed; a missed one that is right fails it, too. So the score is what the tests hold. `cargo nextest run -p mcp-delegator --test corpus` plays them.

The outputs of compilers and test runners are recordings of real ones (`delegator-transcript/tests/test_runs` and `error_places` say of which),
printed by a script in the project that ends with the real exit code.
";

const GAPS: &str = "\
## What is not covered

- Codex is the real 0.166.0 with its sandbox, but what its model says is written by us: whether a real model's habits (longer commands, other
  ways to run tests) are read as well is not shown here. Older versions are only in the recordings of `delegator-transcript`.
- Of the test runners cargo, nextest, pytest, unittest, go, Jest, Vitest and RSpec are in whole tasks; the others, and more outputs of each, are compared in
  `delegator-transcript/tests/test_runs.rs`.
- Failures that no agent produces (`supervisor_lost`, `spawn_failed`, `internal`), tasks beside each other and what cannot be looked at have
  tests of their own (`evidence.rs`, `crashes.rs`, `faults`).
- Durations, times and ids are not truth that can be written down; only whether there is a thread is compared.
";

pub(crate) fn page(cases: &[(&str, Case)]) -> String {
    [INTRODUCTION, &score(cases), METHOD, &known_errors(cases), &field_table(cases), &case_table(cases), GAPS]
        .join("\n")
}

fn score(cases: &[(&str, Case)]) -> String {
    let all: usize = cases.iter().map(|(_, case)| case.truth.len()).sum();
    let missed: usize = cases.iter().map(|(_, case)| case.missed.len()).sum();
    let codex = cases.iter().filter(|(_, case)| matches!(case.agent, Agent::Codex(_))).count();
    format!(
        "**Score: {} of {all} fields in {} cases** ({codex} cases with the real Codex, {} with the scripted agent).\n",
        all - missed,
        cases.len(),
        cases.len() - codex
    )
}

fn known_errors(cases: &[(&str, Case)]) -> String {
    let mut table =
        "## What is known to be wrong\n\n| case | what happens | fields | why |\n|---|---|---|---|\n"
            .to_owned();
    for (name, case) in cases.iter().filter(|(_, case)| !case.missed.is_empty()) {
        let fields: Vec<String> = case.missed.keys().map(|field| format!("`{field}`")).collect();
        let reasons: BTreeSet<&str> = case.missed.values().map(String::as_str).collect();
        let reasons: Vec<&str> = reasons.into_iter().collect();
        let _ =
            writeln!(table, "| `{name}` | {} | {} | {} |", case.about, fields.join(", "), reasons.join("; "));
    }
    table
}

fn field_table(cases: &[(&str, Case)]) -> String {
    let mut table =
        "## Fields\n\n| field | what | stated | of these nothing | right |\n|---|---|---|---|---|\n"
            .to_owned();
    let means = FIELDS.iter().map(|field| (field.name, field.description));
    for (name, means) in means.chain([(NEVER_SHOWN, "secrets that appear in no answer")]) {
        let stated: Vec<&Value> = cases.iter().filter_map(|(_, case)| case.truth.get(name)).collect();
        let nothing = stated.iter().filter(|truth| is_empty_truth(truth)).count();
        let missed = cases.iter().filter(|(_, case)| case.missed.contains_key(name)).count();
        let (stated, right) = (stated.len(), stated.len() - missed);
        let _ = writeln!(table, "| `{name}` | {means} | {stated} | {nothing} | {right} |");
    }
    table + "\n\"Nothing\" is a truth as well: no tests, no error, no warning, no change.\n"
}

fn case_table(cases: &[(&str, Case)]) -> String {
    let mut table =
        "## Cases\n\n| case | agent | asked with | what it is there for | fields |\n|---|---|---|---|---|\n"
            .to_owned();
    for (name, case) in cases {
        let (agent, way) = (agent(case), calls(case));
        let _ = writeln!(table, "| `{name}` | {agent} | {way} | {} | {} |", case.about, case.truth.len());
    }
    table
}

/// Whether a truth says that there is nothing.
pub(crate) fn is_empty_truth(truth: &Value) -> bool {
    match truth {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

fn agent(case: &Case) -> &'static str {
    match case.agent {
        Agent::Codex(_) => "Codex",
        Agent::Scripted(_) => "scripted",
        Agent::Stream(_) => "scripted, a stream of its own",
    }
}

fn calls(case: &Case) -> &'static str {
    match case.way {
        CallSequence::Exec => "exec, wait",
        CallSequence::Run => "run",
        CallSequence::CancelWhenThere(_) => "exec, cancel",
        CallSequence::Resume(_) => "exec, resume",
    }
}
