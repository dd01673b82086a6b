//! Merges the changes of several trees into one list, with paths relative to the working directory. Pure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use delegator_git::{ChangeKind, Comparison, FileChange, LeftOut, LeftOutReason};

use super::finding::{Finding, FindingKind};
use super::paths::display_path;
use super::tree::{TreeChanges, TreeObservation};
use super::{Attribution, Files, Lines, MAX_LISTED, Renamed, RepositoryChanges, Source};

#[derive(Debug, Default)]
pub(super) struct Merged {
    /// How each tree was examined; that of the working directory first.
    pub(super) sources: Vec<Source>,
    pub(super) partial: Option<String>,
    pub(super) changes: Vec<Change>,
    pub(super) files: Files,
    pub(super) lines: Lines,
    pub(super) lines_not_counted: u64,
    /// Changes of the repository of the working directory.
    pub(super) history: Option<RepositoryChanges>,
    pub(super) left_out: Vec<LeftOut>,
}

/// One changed file, by its path relative to the working directory.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) kind: ChangeKind,
    /// Lines added and deleted, if they were counted.
    pub(super) lines: Option<(u64, u64)>,
    pub(super) from: Option<PathBuf>,
}

impl Merged {
    /// Skips trees whose changes could not be determined, and files below `state_dir`, which are ours.
    pub(super) fn of(
        trees: &[TreeObservation],
        changes: &[Result<TreeChanges, String>],
        state_dir: &Path,
    ) -> Merged {
        let tops: BTreeSet<PathBuf> = trees.iter().map(|tree| tree.view.top.clone()).collect();
        let mut merged = Merged::default();
        for (number, (tree, changes)) in trees.iter().zip(changes).enumerate() {
            let Ok(changes) = changes else {
                merged.partial.get_or_insert_with(|| "a directory could not be examined".to_owned());
                continue;
            };
            merged.sources.push(changes.source);
            merged.partial = merged.partial.take().or_else(|| changes.partial.clone());
            for change in &changes.files {
                let path = tree.view.absolute(&change.path);
                // A scan also enters directories that are observed as separate trees.
                let mut above = path.ancestors().skip(1).take_while(|above| **above != tree.view.top);
                if !above.any(|above| tops.contains(above)) && !path.starts_with(state_dir) {
                    merged.add(tree, change);
                }
            }
            if let Some(compared) = &changes.compared {
                merged.add_left_out(tree, compared, &tops);
                if number == 0 {
                    merged.history = Some(history(compared));
                }
            }
        }
        merged.files.modified.sort();
        merged.files.added.sort();
        merged.files.deleted.sort();
        merged
    }

    fn add(&mut self, tree: &TreeObservation, change: &FileChange) {
        let path = tree.view.relative_path(&change.path);
        match change.lines {
            Some((added, deleted)) => {
                self.lines.added = self.lines.added.saturating_add(added);
                self.lines.deleted = self.lines.deleted.saturating_add(deleted);
            }
            None => self.lines_not_counted += 1,
        }
        let files = &mut self.files;
        let list = match &change.kind {
            ChangeKind::Modified => &mut files.modified,
            ChangeKind::Added | ChangeKind::Renamed { .. } => &mut files.added,
            ChangeKind::Deleted => &mut files.deleted,
        };
        let from = match &change.kind {
            ChangeKind::Renamed { from } => Some(tree.view.relative_path(from)),
            _ => None,
        };
        if list.len() >= MAX_LISTED {
            files.not_listed += 1;
        } else {
            list.push(display_path(&path));
            if let Some(from) = &from {
                files.deleted.push(display_path(from));
                files.renamed.push(Renamed { from: display_path(from), to: display_path(&path) });
            }
        }
        self.changes.push(Change { path, kind: change.kind.clone(), lines: change.lines, from });
    }

    /// Does not list repositories that are observed as separate trees.
    fn add_left_out(&mut self, tree: &TreeObservation, compared: &Comparison, tops: &BTreeSet<PathBuf>) {
        let is_a_tree = |entry: &LeftOut| {
            entry.reason == LeftOutReason::Repository
                && tops.contains(&tree.view.absolute(entry.path.as_bytes()))
        };
        for entry in compared.left_out.iter().chain(&compared.not_examined).filter(|entry| !is_a_tree(entry))
        {
            let slash = if entry.path.ends_with('/') { "/" } else { "" };
            let path = display_path(&tree.view.relative_path(entry.path.as_bytes())) + slash;
            self.left_out.push(LeftOut { path, ..entry.clone() });
        }
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let paths = |wanted: fn(LeftOutReason) -> bool| {
            let paths = self.left_out.iter().filter(move |entry| wanted(entry.reason));
            paths.map(|entry| entry.path.as_str()).collect::<Vec<&str>>()
        };
        let not_examined =
            paths(|reason| matches!(reason, LeftOutReason::Ignored | LeftOutReason::Repository));
        let not_read = paths(|reason| !matches!(reason, LeftOutReason::Ignored | LeftOutReason::Repository));
        let not_read_count = not_read.len() as u64;
        let mut findings = Vec::new();
        if !not_read.is_empty() {
            let message = format!("changed files that were not read: {}; see left_out", not_read.len());
            findings.push(Finding::new(FindingKind::Partial, message).about(not_read));
        }
        if !not_examined.is_empty() {
            let message = format!("directories that were not examined: {}; see left_out", not_examined.len());
            findings.push(Finding::new(FindingKind::Partial, message).about(not_examined));
        }
        // Files that were not read are covered above.
        if self.lines_not_counted > not_read_count {
            let message =
                format!("the lines of {} changed files could not be counted", self.lines_not_counted);
            findings.push(Finding::new(FindingKind::Partial, message));
        }
        findings
    }
}

fn history(compared: &Comparison) -> RepositoryChanges {
    let (before, after) = (compared.head_before.clone(), compared.head_after.clone());
    RepositoryChanges {
        head_before: before.commit,
        branch_before: before.branch,
        repository_gone: after.is_none(),
        head_after: after.as_ref().and_then(|head| head.commit.clone()),
        branch_after: after.and_then(|head| head.branch),
        index_changed: compared.index_changed,
        commits: compared.commits.count,
        subjects: compared.commits.subjects.clone(),
        attribution: Attribution::default(),
    }
}
