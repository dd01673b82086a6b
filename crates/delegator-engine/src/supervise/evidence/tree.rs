//! One directory tree that a task may change: a [`Baseline`] of the whole git work tree before the run, or
//! elsewhere a bounded scan, and what changed since.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_git::{AgentChanges, Baseline, Comparison, FileChange, GitSettings, Limits};

use super::Source;
use super::finding::{Branches, Finding, FindingKind};
use super::paths::{TreePaths, display_path};
use super::scan::{Bounds, Scan, is_in_tool_directory};
use crate::restore_points::record::first_line;

/// Time limit for the comparison of one tree at the end of a task.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for git to store the state of one tree after a task.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for recording directories and permissions after a task.
const SURVEY_TIME: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct TreeObservation {
    pub(super) view: TreePaths,
    before: Before,
    problem: Option<String>,
    /// Whether there was a repository, readable or not.
    has_git: bool,
}

#[derive(Debug)]
enum Before {
    Git(Box<Baseline>),
    Scan(Scan),
    Unknown,
}

#[derive(Debug)]
pub(super) struct TreeChanges {
    pub(super) source: Source,
    pub(super) files: Vec<FileChange>,
    pub(super) partial: Option<String>,
    pub(super) compared: Option<Comparison>,
}

impl TreeObservation {
    /// Calls `take_baseline` in a git work tree; `scratch` is a directory for temporary files.
    pub(super) fn take(
        directory: &Path,
        workdir: &Path,
        scratch: &Path,
        take_baseline: impl FnOnce() -> Result<Option<Baseline>, String>,
    ) -> TreeObservation {
        let has_git = directory.ancestors().any(is_top_level);
        let (baseline, problem) = match if has_git { take_baseline() } else { Ok(None) } {
            Ok(baseline) => (baseline, None),
            Err(problem) => (None, Some(problem)),
        };
        let (before, top) = match baseline {
            Some(baseline) => {
                let top = baseline.repository().top_level.clone();
                (Before::Git(Box::new(baseline)), top)
            }
            None => {
                let scan = Scan::take(directory, scratch, Bounds::default());
                (scan.map_or(Before::Unknown, Before::Scan), directory.to_owned())
            }
        };
        TreeObservation { view: TreePaths { workdir: workdir.to_owned(), top }, before, problem, has_git }
    }

    pub(super) fn inner_repositories(&self) -> Vec<PathBuf> {
        match &self.before {
            Before::Git(baseline) => baseline.inner_repositories(),
            Before::Scan(scan) => scan.repositories.clone(),
            Before::Unknown => Vec::new(),
        }
    }

    pub(super) fn has_git(&self) -> bool {
        self.has_git
    }

    fn baseline(&self) -> Option<&Baseline> {
        match &self.before {
            Before::Git(baseline) => Some(baseline),
            Before::Scan(_) | Before::Unknown => None,
        }
    }

    /// Compares with the current state. `since_ms` is when the observation began.
    pub(super) fn compare(&mut self, since_ms: i64) -> Result<TreeChanges, String> {
        match &mut self.before {
            _ if !self.view.workdir.is_dir() => {
                Err("the working directory does not exist any more".to_owned())
            }
            Before::Git(baseline) => {
                baseline.set_time_limit(COMPARE_TIMEOUT);
                let compared = baseline.compare(Limits::default(), since_ms.div_euclid(1000));
                let mut compared = compared.map_err(|error| first_line(&error.to_string()))?;
                let mut files = std::mem::take(&mut compared.files);
                files.sort_by(|a, b| a.path.cmp(&b.path));
                let partial = compared.names_only.clone();
                Ok(TreeChanges { source: Source::Git, files, partial, compared: Some(compared) })
            }
            Before::Scan(scan) => {
                let scanned = scan.compare(Bounds::default(), since_ms).map_err(|error| error.to_string())?;
                let partial =
                    (!scanned.is_whole).then(|| "there are more files than the scan limit".to_owned());
                Ok(TreeChanges { source: Source::Scan, files: scanned.files, partial, compared: None })
            }
            Before::Unknown => Err("the files could not be examined before the task".to_owned()),
        }
    }

    /// The settings of the repository before the task and now, if they differ.
    pub(super) fn changed_settings(
        &self,
        changes: &Result<TreeChanges, String>,
    ) -> Option<(GitSettings, GitSettings)> {
        let after = changes.as_ref().ok()?.compared.as_ref()?.settings.clone()?;
        Some((self.baseline()?.settings().clone(), after))
    }

    /// Stores the state after the task beside the restore point. Returns whether there is a restore point.
    pub(super) fn store_end_state(
        &mut self,
        compared: &Comparison,
        agent: &AgentChanges,
    ) -> Result<bool, Finding> {
        let Before::Git(baseline) = &mut self.before else { return Ok(false) };
        // The comparison of other trees may have used up the time of this one.
        baseline.set_time_limit(STORE_TIMEOUT);
        baseline.store_end_state(compared, agent, SURVEY_TIME).map_err(|error| {
            let message =
                "the state after the task could not be stored; a restore restores the whole work tree";
            let finding = Finding::new(FindingKind::Partial, message);
            finding.about([&*display_path(&self.view.top)]).because(&first_line(&error.to_string()))
        })
    }

    /// The path relative to the working directory, and whether it is examined. `None` outside of this tree.
    pub(super) fn locate(&self, claimed: &str) -> Option<(PathBuf, bool)> {
        let path = self.view.claimed_path(claimed)?;
        let is_gits_own = path.components().any(|part| part.as_os_str() == ".git");
        let is_examined = !is_gits_own && (self.baseline().is_some() || !is_in_tool_directory(&path));
        Some((path, is_examined))
    }

    pub(super) fn ignored<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
        let Some(baseline) = self.baseline() else { return Vec::new() };
        let paths: Vec<(&Path, Vec<u8>)> =
            paths.filter_map(|path| Some((path, self.view.tree_path(path)?))).collect();
        let tree_paths: Vec<&[u8]> = paths.iter().map(|(_, path)| path.as_slice()).collect();
        let ignored = baseline.ignored(&tree_paths).unwrap_or_default();
        let ignored = paths.iter().filter(|(_, tree_path)| ignored.contains(tree_path));
        ignored.map(|(path, _)| (*path).to_owned()).collect()
    }

    pub(super) fn findings(&self, changes: &Result<TreeChanges, String>) -> Vec<Finding> {
        let top = display_path(&self.view.top);
        let mut findings = Vec::new();
        if let Some(problem) = &self.problem {
            let message = "git could not report what the task changed";
            findings.push(Finding::new(FindingKind::Partial, message).about([top.as_str()]).because(problem));
        }
        let changes = match changes {
            Ok(changes) => changes,
            Err(problem) => {
                let message = "the changes of the task could not be examined";
                findings.push(
                    Finding::new(FindingKind::NoEvidence, message).about([top.as_str()]).because(problem),
                );
                return findings;
            }
        };
        if let Some(problem) = &changes.partial {
            let message = "not all changes of the task could be examined";
            findings.push(Finding::new(FindingKind::Partial, message).about([top.as_str()]).because(problem));
        }
        findings.extend(
            self.repository_finding(changes.compared.as_ref()).map(|finding| finding.about([top.as_str()])),
        );
        findings
    }

    fn repository_finding(&self, compared: Option<&Comparison>) -> Option<Finding> {
        let Some(compared) = compared else {
            let is_new = !self.has_git && is_top_level(&self.view.top);
            return is_new
                .then(|| Finding::new(FindingKind::Repository, "the directory is a git repository now"));
        };
        let Some(after) = &compared.head_after else {
            let message = "the git repository was removed or replaced";
            return Some(Finding::new(FindingKind::Repository, message));
        };
        let before = &compared.head_before;
        (after.branch != before.branch).then(|| {
            let name = |branch: &Option<String>| {
                branch
                    .as_deref()
                    .map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned())
            };
            let branches = Branches { before: name(&before.branch), after: name(&after.branch) };
            let finding = Finding::new(FindingKind::Repository, "the work tree is on another branch now");
            Finding { branches: Some(branches), ..finding }
        })
    }
}

/// By names alone. An empty `.git` does not count: sandboxes create such directories.
fn is_top_level(dir: &Path) -> bool {
    let git = dir.join(".git");
    git.is_file() || git.join("HEAD").exists()
}
