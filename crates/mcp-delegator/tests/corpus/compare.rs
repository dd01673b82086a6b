//! Truth beside what was told, and beside the project itself.
//!
//! All that differs is collected, so that one run of a case shows everything that is wrong with it. What truth says of
//! files is also held to the disk: a case whose truth is not true fails as surely as one whose answer is not.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::case::{Agent, Case};
use crate::fields::{FIELDS, Field, Location, NEVER_SHOWN};
use crate::run::Outputs;

/// What differs, in words; nothing where all is as it should be.
pub(crate) fn differences(case: &Case, told: &Outputs, working_dir: &Path) -> Vec<String> {
    let known = |name: &str| name == NEVER_SHOWN || FIELDS.iter().any(|field| field.name == name);
    let unknown = case.truth.keys().filter(|name| !known(name)).map(|name| format!("{name} is no field"));
    let mut all: Vec<String> = unknown.collect();
    for field in FIELDS {
        let Some(truth) = case.truth.get(field.name) else { continue };
        let found = field_differences(field, truth, told);
        match case.missed.contains_key(field.name) {
            false => all.extend(found),
            // Codex's own parts race: what it fails to print on one day it may print on another.
            true if matches!(case.agent, Agent::Codex(_)) => {}
            true if found.is_empty() => all.push(format!("{} is right and said to be missed", field.name)),
            true => {}
        }
    }
    let unstated = case.missed.keys().filter(|name| !case.truth.contains_key(*name));
    all.extend(unstated.map(|name| format!("{name} is missed and not stated")));
    all.extend(expected_strings(case, NEVER_SHOWN).filter_map(|words| forbidden_text_found(words, told)));
    all.extend(disk_differences(case, working_dir));
    all
}

fn field_differences(field: &Field, truth: &Value, told: &Outputs) -> Vec<String> {
    let readings: Vec<(&str, Value)> = match field.location {
        Location::Everywhere(read) => {
            told.envelopes.iter().map(|(from, answer)| (*from, read(answer))).collect()
        }
        Location::Results(read) => {
            let answers = told.envelopes.iter().filter(|(from, _)| *from != "run");
            answers.map(|(from, answer)| (*from, read(answer))).collect()
        }
        Location::Whole(read) => vec![("all", read(told))],
    };
    let wrong = readings.into_iter().filter(|(_, reading)| reading != truth);
    wrong.map(|(from, reading)| format!("{} ({from}): {reading} and not {truth}", field.name)).collect()
}

fn expected_strings<'a>(case: &'a Case, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let list = case.truth.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str)
}

fn forbidden_text_found(words: &str, told: &Outputs) -> Option<String> {
    let all =
        json!([told.envelopes.iter().map(|(_, answer)| answer).collect::<Vec<_>>(), told.run, told.summary]);
    all.to_string().contains(words).then(|| format!("{words} was to be told nowhere"))
}

/// What truth says of files and the disk does not.
fn disk_differences(case: &Case, working_dir: &Path) -> Vec<String> {
    let is_there = |path: &str| working_dir.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let here = expected_strings(case, "modified_files").chain(expected_strings(case, "added_files"));
    let missing = here.filter(|path| !is_there(path)).map(|path| format!("{path} is not there"));
    let left = expected_strings(case, "deleted_files").filter(|path| is_there(path));
    let mut all: Vec<String> = missing.chain(left.map(|path| format!("{path} is still there"))).collect();
    for artifact in case.truth.get("artifacts").and_then(Value::as_array).into_iter().flatten() {
        let bytes = std::fs::read(working_dir.join(artifact["ref"].as_str().unwrap_or_default()));
        let bytes = bytes.unwrap_or_default();
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let is_true = artifact["size"] == bytes.len()
            && (artifact["sha256"] == digest || artifact.get("not_hashed").is_some());
        all.extend((!is_true).then(|| format!("{artifact} is not so: {} bytes, {digest}", bytes.len())));
    }
    all
}
