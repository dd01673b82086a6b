//! Generates `docs/reports/extraction.md`: which fields are extracted from a task, and how many of them are tested.
//!
//! The figures are counted from the cases, not measured: every case is a test that fails when a field other than those
//! listed as missed is wrong, or when a missed field becomes right.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::case::{Agent, CallSequence, Case};
use crate::fields::{FIELDS, NEVER_SHOWN};

const INTRODUCTION: &str = "\
# Extraction

<!-- Written by tests/corpus from its cases: `just update-generated`. -->

`wait`, `run` and `results` report facts that are extracted from a finished task: from the output of the agent and its commands, from
the files before and after, and from the exit of the process. A corpus of tasks with known expected values measures whether they are right.
";

const METHOD: &str = "\
## Method

A case (`crates/mcp-delegator/tests/corpus/cases/*.json`) is a project, what an agent does in it, how the task is submitted, and the
expected values. The expected values were written by hand from what the case does: files and lines from the texts it writes, digests computed
by another program, tests counted in the recorded output, locations read from the compiler output. None was copied from our own output.
Expected file changes are also compared with the disk, so a wrong expectation fails too.

Each case is a test: it sets up the project, runs the task with the real program, and compares every stated field in two outputs
(`wait` and `results`, or `run` and `results`). A field that differs fails the test, unless the case lists it as missed; a missed field that
is right fails the test as well. So the score below is what the tests enforce. Run them with `cargo nextest run -p mcp-delegator --test corpus`.

Compiler and test runner outputs are recordings of real ones (see `delegator-transcript/tests/test_runs` and `error_locations`), printed by a
script in the project that exits with the real exit code.
";

const GAPS: &str = "\
## What is not covered

- Codex is the real 0.166.0 with its sandbox, but we write the responses of its model. Habits of a real model, such as longer commands or other
  ways to run tests, are not tested here. Older versions are tested only with the recordings of `delegator-transcript`.
- Whole tasks cover the test runners cargo, nextest, pytest, unittest, go, Jest, Vitest and RSpec. Other runners, and more outputs of each,
  are tested in `delegator-transcript/tests/decoding/test_runs.rs`.
- Failures that no agent causes (`supervisor_lost`, `spawn_failed`, `internal`), parallel tasks, and files that cannot be examined have tests of
  their own (`evidence.rs`, `crashes.rs`, `faults`).
- Durations, times and ids have no fixed expected value; for a thread only its existence is compared.
";

pub(crate) fn page(cases: &[(&str, Case)]) -> String {
    [INTRODUCTION, &score(cases), METHOD, &known_errors(cases), &field_table(cases), &case_lists(cases), GAPS]
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
        "## Known errors\n\n| case | what happens | fields | reason |\n|---|---|---|---|\n".to_owned();
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
        "## Fields\n\n| field | meaning | stated | stated as empty | right |\n|---|---|---|---|---|\n"
            .to_owned();
    let means = FIELDS.iter().map(|field| (field.name, field.description));
    for (name, means) in means.chain([(NEVER_SHOWN, "secrets that must not appear in any output")]) {
        let stated: Vec<&Value> = cases.iter().filter_map(|(_, case)| case.truth.get(name)).collect();
        let nothing = stated.iter().filter(|truth| is_empty_truth(truth)).count();
        let missed = cases.iter().filter(|(_, case)| case.missed.contains_key(name)).count();
        let (stated, right) = (stated.len(), stated.len() - missed);
        let _ = writeln!(table, "| `{name}` | {means} | {stated} | {nothing} | {right} |");
    }
    table + "\n\"Stated as empty\": the case expects no tests, no error, no warning or no change.\n"
}

/// The names of the cases, by kind of agent and commands, in the order of their first cases.
fn case_lists(cases: &[(&str, Case)]) -> String {
    let kind = |case: &Case| (agent(case), calls(case));
    let mut kinds = Vec::new();
    for (_, case) in cases {
        if !kinds.contains(&kind(case)) {
            kinds.push(kind(case));
        }
    }
    let mut text = "## Cases\n\nBy agent and commands. The file of a case says what it is for.\n".to_owned();
    for (agent, calls) in kinds {
        let of_kind = cases.iter().filter(|(_, case)| kind(case) == (agent, calls));
        let names: Vec<String> = of_kind.map(|(name, _)| format!("`{name}`")).collect();
        let _ = write!(text, "\n- **{agent}; {calls}** ({}): {}.\n", names.len(), names.join(", "));
    }
    text
}

/// Whether the expected value is "nothing": null, false, zero or an empty list.
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
        Agent::Stream(_) => "scripted, own stream",
    }
}

fn calls(case: &Case) -> &'static str {
    match case.calls {
        CallSequence::Exec => "exec, wait",
        CallSequence::Run => "run",
        CallSequence::CancelWhenExists(_) => "exec, cancel",
        CallSequence::Resume(_) => "exec, resume",
    }
}
