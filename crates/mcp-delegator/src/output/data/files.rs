//! The file changes of a task in our JSON: `file_operations`, `artifacts`, and warnings about contradictions.
//!
//! The tool envelope defines the three lists and `lines_changed`, but no renames: the old name is in `deleted_files`, the
//! new one in `added_files`, and `renamed_files` contains the pairs.

use delegator_engine::{Evidence, Finding, FindingKind, Record, Source};
use delegator_transcript::FileOperations;
use serde_json::{Map, Value, json};

use crate::output::outcome::Warning;

/// `metadata.file_operations`: from the evidence, else from the agent's own report.
pub fn operations(record: Option<&Record>) -> Value {
    match record.and_then(|record| record.evidence.as_ref()) {
        Some(evidence) => from_evidence(evidence),
        None => from_agent_report(record),
    }
}

fn from_evidence(evidence: &Evidence) -> Value {
    let files = &evidence.files;
    let lines = evidence.lines;
    let mut value = json!({
        "modified_files": files.modified,
        "added_files": files.added,
        "deleted_files": files.deleted,
        "lines_changed": lines.added.saturating_add(lines.deleted),
        "lines_added": lines.added,
        "lines_deleted": lines.deleted,
        "source": match evidence.source {
            Source::Git => "git",
            Source::Scan => "scan",
        },
        "scope": if evidence.is_partial() { "partial" } else { "whole" },
    });
    if !files.renamed.is_empty() {
        value["renamed_files"] = json!(files.renamed);
    }
    if files.not_listed > 0 {
        value["not_listed_count"] = files.not_listed.into();
    }
    if evidence.left_out_count > 0 {
        value["left_out"] = json!(evidence.left_out);
        value["left_out_count"] = evidence.left_out_count.into();
    }
    value
}

fn from_agent_report(record: Option<&Record>) -> Value {
    let none = FileOperations::default();
    let files = record.map_or(&none, |record| &record.report.files);
    json!({
        "modified_files": files.modified,
        "added_files": files.added,
        "deleted_files": files.deleted,
        "lines_changed": 0,
        "source": "agent",
        "scope": "partial",
    })
}

/// Adds `data.artifacts` and `data.git`, if there is evidence.
pub fn add_to(data: &mut Map<String, Value>, record: Option<&Record>) {
    let Some(evidence) = record.and_then(|record| record.evidence.as_ref()) else { return };
    let artifact = |file: &delegator_engine::Artifact| {
        let mut value = json!({"type": "file", "ref": file.path, "size": file.size});
        if let Some(digest) = &file.sha256 {
            value["sha256"] = digest.clone().into();
        }
        if let Some(why) = &file.not_hashed {
            value["not_hashed"] = json!(why);
        }
        value
    };
    data.insert("artifacts".into(), evidence.artifacts.iter().map(artifact).collect());
    if evidence.artifacts_not_listed > 0 {
        data.insert("artifacts_not_listed_count".into(), evidence.artifacts_not_listed.into());
    }
    if let Some(history) = &evidence.history {
        let git = json!({
            "head_before": history.head_before,
            "head_after": history.head_after,
            "branch_before": history.branch_before,
            "branch_after": history.branch_after,
            "commit_count": history.commits,
            "commits": history.subjects,
            "index_changed": history.index_changed,
        });
        data.insert("git".into(), git);
    }
}

/// Warnings about the file changes.
pub fn warnings(record: Option<&Record>) -> Vec<Warning> {
    let findings = record.map(|record| record.findings.as_slice()).unwrap_or_default();
    let mut warnings: Vec<Warning> = findings.iter().map(warning).collect();
    warnings.extend(record.filter(|record| record.evidence.is_none()).and_then(lines_not_counted));
    warnings
}

/// Without evidence only the agent's own list exists, which has no line counts.
fn lines_not_counted(record: &Record) -> Option<Warning> {
    let FileOperations { modified, added, deleted, .. } = &record.report.files;
    let count = modified.len() + added.len() + deleted.len();
    (count > 0).then(|| {
        let message = format!("the lines of {count} changed files could not be counted");
        Warning::new(warning_code(FindingKind::Partial), message)
    })
}

fn warning(finding: &Finding) -> Warning {
    let mut warning = Warning::new(warning_code(finding.kind), finding.message.clone());
    let mut add = |key: &str, value: Value| warning.context.insert(key.to_owned(), value);
    if !finding.paths.is_empty() {
        add("paths", json!(finding.paths));
    }
    if finding.paths_not_listed > 0 {
        add("paths_not_listed_count", finding.paths_not_listed.into());
    }
    if !finding.tasks.is_empty() {
        add("task_ids", json!(finding.tasks));
    }
    if let Some(branches) = &finding.branches {
        add("branch_before", json!(branches.before));
        add("branch_after", json!(branches.after));
    }
    if let Some(problem) = &finding.problem {
        add("problem", problem.clone().into());
    }
    warning
}

/// Codes are only appended, never changed.
fn warning_code(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::ClaimRefuted => "W_FILES_001",
        FindingKind::ClaimNotChecked => "W_FILES_002",
        FindingKind::NotClaimed => "W_FILES_003",
        FindingKind::ByCommands => "W_FILES_004",
        FindingKind::ReadOnlyChanged => "W_FILES_005",
        FindingKind::OtherWriters => "W_FILES_006",
        FindingKind::Repository => "W_FILES_007",
        FindingKind::Partial => "W_FILES_008",
        FindingKind::NoEvidence => "W_FILES_009",
    }
}

/// Facts for a document: renames, lines, commits.
pub fn outline(data: &Value) -> Vec<(String, String)> {
    let files = &data["metadata"]["file_operations"];
    let mut facts = Vec::new();
    let pairs = files["renamed_files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let renames: Vec<String> = pairs
        .iter()
        .filter_map(|pair| Some(format!("{} → {}", pair["from"].as_str()?, pair["to"].as_str()?)))
        .collect();
    if !renames.is_empty() {
        facts.push(("renamed".to_owned(), join_truncated(&renames)));
    }
    if let (Some(added), Some(deleted)) = (files["lines_added"].as_u64(), files["lines_deleted"].as_u64())
        && added + deleted > 0
    {
        facts.push(("lines".to_owned(), format!("+{added} −{deleted}")));
    }
    if let Some(count) = data["git"]["commit_count"].as_u64().filter(|count| *count > 0) {
        let subjects = data["git"]["commits"].as_array().map(Vec::as_slice).unwrap_or_default();
        let subjects: Vec<String> = subjects.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        facts.push(("commits".to_owned(), format!("{count}: {}", join_truncated(&subjects))));
    }
    facts
}

fn join_truncated(items: &[String]) -> String {
    const MAX_ITEMS: usize = 20;
    match items.len().saturating_sub(MAX_ITEMS) {
        0 => items.join(", "),
        more => format!("{} and {more} more", items[..MAX_ITEMS].join(", ")),
    }
}
