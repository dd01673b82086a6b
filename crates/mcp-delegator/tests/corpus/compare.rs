//! Compares the expected values of a case with the program's output and with the project on disk.
//!
//! All differences are collected, so that one run shows everything that is wrong. Expected file changes are also compared
//! with the disk, so that a case with a wrong expectation fails too.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::case::{Agent, Case};
use crate::fields::{FIELDS, Field, Location, NEVER_SHOWN};
use crate::run::Outputs;

/// All differences, one sentence each; empty if the case passes.
pub(crate) fn differences(case: &Case, outputs: &Outputs, working_dir: &Path) -> Vec<String> {
    let known = |name: &str| name == NEVER_SHOWN || FIELDS.iter().any(|field| field.name == name);
    let unknown = case.truth.keys().filter(|name| !known(name)).map(|name| format!("{name} is no field"));
    let mut all: Vec<String> = unknown.collect();
    for field in FIELDS {
        let Some(truth) = case.truth.get(field.name) else { continue };
        let found = field_differences(field, truth, outputs);
        match case.missed.contains_key(field.name) {
            false => all.extend(found),
            // Parts of Codex run concurrently: an event that is missing in one run may be printed in another.
            true if matches!(case.agent, Agent::Codex(_)) => {}
            true if found.is_empty() => all.push(format!("{} is right but listed as missed", field.name)),
            true => {}
        }
    }
    let unstated = case.missed.keys().filter(|name| !case.truth.contains_key(*name));
    all.extend(unstated.map(|name| format!("{name} is listed as missed but not stated")));
    all.extend(expected_strings(case, NEVER_SHOWN).filter_map(|text| forbidden_text_found(text, outputs)));
    all.extend(disk_differences(case, working_dir));
    all
}

fn field_differences(field: &Field, truth: &Value, outputs: &Outputs) -> Vec<String> {
    let readings: Vec<(&str, Value)> = match field.location {
        Location::Everywhere(read) => {
            outputs.envelopes.iter().map(|(from, envelope)| (*from, read(envelope))).collect()
        }
        Location::Results(read) => {
            let envelopes = outputs.envelopes.iter().filter(|(from, _)| *from != "run");
            envelopes.map(|(from, envelope)| (*from, read(envelope))).collect()
        }
        Location::Whole(read) => vec![("all", read(outputs))],
    };
    let wrong = readings.into_iter().filter(|(_, reading)| reading != truth);
    wrong.map(|(from, reading)| format!("{} ({from}): {reading} and not {truth}", field.name)).collect()
}

fn expected_strings<'a>(case: &'a Case, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let list = case.truth.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str)
}

fn forbidden_text_found(text: &str, outputs: &Outputs) -> Option<String> {
    let all = json!([
        outputs.envelopes.iter().map(|(_, envelope)| envelope).collect::<Vec<_>>(),
        outputs.run,
        outputs.summary
    ]);
    all.to_string().contains(text).then(|| format!("{text} must not appear in any output"))
}

/// Expected file changes that the disk does not confirm.
fn disk_differences(case: &Case, working_dir: &Path) -> Vec<String> {
    let is_file = |path: &str| working_dir.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let expected = expected_strings(case, "modified_files").chain(expected_strings(case, "added_files"));
    let missing = expected.filter(|path| !is_file(path)).map(|path| format!("{path} does not exist"));
    let undeleted = expected_strings(case, "deleted_files").filter(|path| is_file(path));
    let mut all: Vec<String> = missing.chain(undeleted.map(|path| format!("{path} still exists"))).collect();
    for artifact in case.truth.get("artifacts").and_then(Value::as_array).into_iter().flatten() {
        let bytes = std::fs::read(working_dir.join(artifact["ref"].as_str().unwrap_or_default()));
        let bytes = bytes.unwrap_or_default();
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let is_true = artifact["size"] == bytes.len()
            && (artifact["sha256"] == digest || artifact.get("not_hashed").is_some());
        all.extend((!is_true).then(|| format!("{artifact} is wrong: {} bytes, {digest}", bytes.len())));
    }
    all
}
