//! The file changes of a task in our JSON: `file_operations`, `artifacts`, and warnings about contradictions.
//!
//! The tool envelope defines the three lists and `lines_changed`, but no renames: the old name is in
//! `deleted_files`, the new one in `added_files`, and `renamed_files` contains the pairs.

use std::collections::BTreeMap;

use delegator_domain::terminal::escape_line_breaks;
use delegator_engine::{
    Artifact, Evidence, Finding, FindingKind, LeftOut, NotHashed, Renamed, RepositoryChanges, Source,
};

use crate::output::prelude::*;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct FileOperations {
    pub modified_files: Vec<String>,
    pub added_files: Vec<String>,
    pub deleted_files: Vec<String>,
    pub lines_changed: u64,
    /// False if lines of changed files could not be counted, or if nothing observed the changes: then `lines_changed` is
    /// the number of lines that are known.
    #[schemars(extend("x-optional" = true))]
    pub is_lines_changed_exact: bool,
    pub lines_added: Option<u64>,
    pub lines_deleted: Option<u64>,
    /// git, scan, diff, late: by git after the supervisor was lost, or agent: only what the agent reported.
    #[schemars(extend("x-optional" = true))]
    pub source: &'static str,
    /// whole or partial.
    #[schemars(extend("x-optional" = true))]
    pub scope: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<BTreeMap<String, String>>")]
    pub renamed_files: Vec<Renamed>,
    /// Changed during the task, but nothing that the agent did explains it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unattributed_files: Vec<String>,
    /// The agent could have made these changes, but reports no events by which this could be verified.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub possibly_agent_files: Vec<String>,
    pub not_listed_count: Option<u64>,
    /// Paths that were not examined or not read, with the reason.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub left_out: Option<Vec<LeftOut>>,
    pub left_out_count: Option<usize>,
}

/// A file that changed during the task and still exists.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArtifactData {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(rename = "ref")]
    pub path: String,
    pub size: u64,
    pub sha256: Option<String>,
    /// Why there is no digest.
    #[schemars(with = "Option<String>")]
    pub not_hashed: Option<NotHashed>,
    /// Whose change it is: agent, possibly_agent or unknown.
    #[schemars(extend("x-optional" = true))]
    pub attributed_to: &'static str,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GitChanges {
    pub head_before: Option<String>,
    pub head_after: Option<String>,
    pub branch_before: Option<String>,
    pub branch_after: Option<String>,
    pub commit_count: u64,
    /// First lines of the newest commits.
    pub commits: Vec<String>,
    /// Whose commits they are: agent, possibly_agent or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributed_to: Option<&'static str>,
    pub is_index_changed: bool,
}

/// From the evidence, else from the agent's own report.
pub fn operations(task: &Task, record: Option<&Record>) -> FileOperations {
    match record.and_then(|record| record.evidence.as_ref()) {
        Some(evidence) => from_evidence(evidence),
        // A task that never started has changed nothing.
        None => FileOperations {
            is_lines_changed_exact: task.started_at_ms.is_none(),
            ..from_agent_report(record)
        },
    }
}

fn from_evidence(evidence: &Evidence) -> FileOperations {
    let (files, lines) = (evidence.files.clone(), evidence.lines);
    let has_left_out = evidence.left_out_count > 0;
    FileOperations {
        modified_files: files.modified,
        added_files: files.added,
        deleted_files: files.deleted,
        lines_changed: lines.added.saturating_add(lines.deleted),
        is_lines_changed_exact: !evidence.is_partial(),
        lines_added: Some(lines.added),
        lines_deleted: Some(lines.deleted),
        source: match evidence.source {
            Source::Git => "git",
            Source::Scan => "scan",
            Source::Diff => "diff",
            Source::Late => "late",
        },
        scope: if evidence.is_partial() { "partial" } else { "whole" },
        renamed_files: files.renamed,
        unattributed_files: evidence.unattributed.files.clone(),
        possibly_agent_files: evidence.unattributed.possibly_agent.clone(),
        not_listed_count: Some(files.not_listed).filter(|count| *count > 0),
        left_out: has_left_out.then(|| evidence.left_out.clone()),
        left_out_count: has_left_out.then_some(evidence.left_out_count),
    }
}

fn from_agent_report(record: Option<&Record>) -> FileOperations {
    let files = record.map(|record| record.report.files.clone()).unwrap_or_default();
    FileOperations {
        modified_files: files.modified,
        added_files: files.added,
        deleted_files: files.deleted,
        source: "agent",
        scope: "partial",
        ..FileOperations::default()
    }
}

pub fn artifacts(evidence: &Evidence) -> Vec<ArtifactData> {
    let artifact = |file: &Artifact| ArtifactData {
        kind: "file",
        path: file.path.clone(),
        size: file.size,
        sha256: file.sha256.clone(),
        not_hashed: file.not_hashed,
        attributed_to: file.attribution.name(),
    };
    evidence.artifacts.iter().map(artifact).collect()
}

pub fn git_changes(changes: &RepositoryChanges) -> GitChanges {
    GitChanges {
        head_before: changes.head_before.clone(),
        head_after: changes.head_after.clone(),
        branch_before: changes.branch_before.clone(),
        branch_after: changes.branch_after.clone(),
        commit_count: changes.commits,
        commits: changes.subjects.clone(),
        attributed_to: (changes.commits > 0).then(|| changes.attribution.name()),
        is_index_changed: changes.index_changed,
    }
}

pub fn warnings(record: Option<&Record>) -> Vec<Warning> {
    let findings = record.map(|record| record.findings.as_slice()).unwrap_or_default();
    let mut warnings: Vec<Warning> = findings.iter().map(warning).collect();
    warnings.extend(record.filter(|record| record.evidence.is_none()).and_then(lines_not_counted));
    warnings
}

/// Without evidence only the agent's own list exists, which has no line counts.
fn lines_not_counted(record: &Record) -> Option<Warning> {
    let delegator_transcript::FileOperations { modified, added, deleted, .. } = &record.report.files;
    let count = modified.len() + added.len() + deleted.len();
    (count > 0).then(|| {
        let message = format!("the lines of {count} changed files could not be counted");
        Warning::new(warning_code(FindingKind::Partial), message)
    })
}

fn warning(finding: &Finding) -> Warning {
    let mut warning = Warning::new(warning_code(finding.kind), finding.message.clone());
    let branches = finding.branches.as_ref();
    let context = [
        ("paths", (!finding.paths.is_empty()).then(|| json!(finding.paths))),
        ("paths_not_listed_count", (finding.paths_not_listed > 0).then(|| finding.paths_not_listed.into())),
        ("task_ids", (!finding.tasks.is_empty()).then(|| json!(finding.tasks))),
        ("branch_before", branches.map(|branches| json!(branches.before))),
        ("branch_after", branches.map(|branches| json!(branches.after))),
        ("problem", finding.problem.clone().map(Value::from)),
    ];
    let known = context.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    warning.context.extend(known);
    warning
}

fn warning_code(kind: FindingKind) -> WarningCode {
    match kind {
        FindingKind::ClaimRefuted => WarningCode::ClaimRefuted,
        FindingKind::ClaimNotChecked => WarningCode::ClaimNotChecked,
        FindingKind::NotAttributed => WarningCode::NotAttributed,
        FindingKind::ByCommands => WarningCode::ChangedByCommands,
        FindingKind::ReadOnlyChanged => WarningCode::ReadOnlyChanged,
        FindingKind::OtherWriters => WarningCode::OtherWriters,
        FindingKind::Repository => WarningCode::RepositoryChanged,
        FindingKind::Partial => WarningCode::PartlyExamined,
        FindingKind::NoEvidence => WarningCode::NotExamined,
        FindingKind::GitSettings => WarningCode::GitSettingsChanged,
    }
}

impl GitChanges {
    fn has_changes(&self) -> bool {
        self.is_index_changed
            || self.head_before != self.head_after
            || self.branch_before != self.branch_after
    }
}

impl FileOperations {
    /// Whether a task changed files, the index or HEAD, or may have: not everything could be examined.
    pub fn may_have_changes(&self, git: Option<&GitChanges>) -> bool {
        let lists = [&self.modified_files, &self.added_files, &self.deleted_files];
        self.scope != "whole"
            || lists.iter().any(|files| !files.is_empty())
            || git.is_some_and(GitChanges::has_changes)
    }

    /// Facts for a document: files, renames, lines, commits.
    pub fn facts(&self, git: Option<&GitChanges>) -> Vec<(String, String)> {
        // Files that nothing attributes to the agent have their own line.
        let attributed = |files: &[String]| -> Vec<String> {
            files.iter().filter(|file| !self.unattributed_files.contains(file)).cloned().collect()
        };
        let renamed: Vec<String> =
            self.renamed_files.iter().map(|pair| format!("{} → {}", pair.from, pair.to)).collect();
        let lines = self.lines_added.zip(self.lines_deleted).filter(|(added, deleted)| added + deleted > 0);
        let commits = git.filter(|git| git.commit_count > 0);
        known_facts([
            ("modified", joined(&attributed(&self.modified_files))),
            ("added", joined(&attributed(&self.added_files))),
            ("deleted", joined(&attributed(&self.deleted_files))),
            ("not attributed to the agent", joined(&self.unattributed_files)),
            ("possibly by the agent", joined(&self.possibly_agent_files)),
            ("renamed", joined(&renamed)),
            ("lines", lines.map(|(added, deleted)| format!("+{added} −{deleted}"))),
            (
                "commits",
                commits
                    .map(|git| format!("{}: {}", git.commit_count, joined(&git.commits).unwrap_or_default())),
            ),
        ])
    }
}

/// The first names, and how many more there are; `None` if there are none.
pub fn joined(names: &[String]) -> Option<String> {
    const MAX_NAMES: usize = 20;
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| escape_line_breaks(name)).collect();
    match names.len().saturating_sub(MAX_NAMES) {
        _ if names.is_empty() => None,
        0 => Some(shown.join(", ")),
        more => Some(format!("{} and {more} more", shown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_changed_is_not_listed_as_a_change_of_the_agent() {
        let operations = FileOperations {
            modified_files: vec!["a.txt".to_owned(), "c.txt".to_owned()],
            unattributed_files: vec!["c.txt".to_owned()],
            ..FileOperations::default()
        };
        let expected = [("modified", "a.txt"), ("not attributed to the agent", "c.txt")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(operations.facts(None), expected);
    }
}
