//! Observes all trees that a task may change, from before the run until all its processes are gone.
//!
//! The tree of the working directory comes first, then those of the additional directories (for a task that may write),
//! then repositories inside them (submodules, nested and ignored ones). Their changes become one [`Evidence`].

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_domain::task::{Mode, TaskId};
use delegator_git::{Baseline, ChangeKind, LeftOut, LeftOutReason, Limits};
use delegator_registry::TaskDir;
use delegator_supervisor::agent::Variables;
use delegator_transcript::{Dialect, Report};

use super::artifacts::{Artifacts, Budget};
use super::finding::Finding;
use super::merge::Merged;
use super::paths::display_path;
use super::reconcile::{Claim, ClaimLocation, Claims, ObservedChanges, reconcile};
use super::tree::{TreeChanges, TreeObservation};
use super::{Evidence, EvidenceAndFindings, Files, MAX_LEFT_OUT, Source};
use crate::submit::work_tree::work_tree_of;
use crate::supervise::create_restore_points::RestorePointWriter;
use crate::upkeep::restore_record;

/// Time limit for git per tree before a task that cannot write.
const READ_ONLY_GIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Further trees are not examined once the agent has waited this long.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_TREES: usize = 16;
/// Lower limits before a task that cannot write: it needs no restore point, so the agent should not wait long.
const READ_ONLY_LIMITS: Limits =
    Limits { file_bytes: 10 << 20, total_bytes: 50 << 20, time: Duration::from_secs(2) };

#[derive(Debug)]
pub(crate) struct Observation {
    workdir: OwnedFd,
    /// The tree of the working directory first.
    trees: Vec<TreeObservation>,
    /// Directories that are not examined: linked worktrees, and those beyond the limits.
    not_observed: Vec<PathBuf>,
    was_read_only: bool,
    since_ms: i64,
    took: Duration,
}

/// The task whose files are observed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservationContext<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) dir: &'a TaskDir,
    pub(crate) workdir: &'a OwnedFd,
    /// Canonical paths of the additional directories.
    pub(crate) add_dirs: &'a [PathBuf],
    pub(crate) environment: &'a Variables,
    pub(crate) mode: Mode,
    pub(crate) may_write: bool,
    /// The wall clock before the run: files modified later may be the task's.
    pub(crate) since_ms: i64,
}

/// Records the state of the files before the agent starts. For a task that may write, also creates the restore points.
pub(crate) fn begin_observation(context: ObservationContext<'_>) -> Option<Observation> {
    let began = Instant::now();
    let fd = context.workdir.try_clone().ok()?;
    let workdir = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    let mut writer = RestorePointWriter::new(context.task, context.dir, context.environment);
    let mut directories = directories(context, &workdir);
    let (mut trees, mut not_observed) = (Vec::new(), Vec::new());
    let is_full = |trees: &[TreeObservation]| trees.len() >= MAX_TREES || began.elapsed() > TOTAL_TIMEOUT;
    while let Some(directory) = directories.pop_front() {
        // The working directory is always observed.
        if !trees.is_empty() && is_full(&trees) {
            // An inner repository is listed in the restore point of the outer one.
            if context.add_dirs.contains(&directory) {
                writer.skip(&directory, "the task has too many directories");
            }
            not_observed.push(directory);
            continue;
        }
        let tree =
            TreeObservation::take(&directory, &workdir, context.dir.path(), || match context.may_write {
                true => writer.create(&directory),
                false => baseline(context, &directory),
            });
        if context.may_write && !tree.has_git() && directory != workdir {
            writer.skip(&directory, "it is not in a git work tree");
        }
        // A linked worktree is a separate tree, in which another task may write at the same time.
        let (linked, inner): (Vec<PathBuf>, Vec<PathBuf>) =
            tree.inner_repositories().into_iter().partition(|inner| work_tree_of(inner).is_linked());
        let is_new = |inner: &PathBuf| !directories.contains(inner) && *inner != workdir;
        let inner: Vec<PathBuf> = inner.into_iter().filter(is_new).collect();
        directories.extend(inner);
        not_observed.extend(
            linked.into_iter().filter(|linked| *linked != workdir && !context.add_dirs.contains(linked)),
        );
        trees.push(tree);
    }
    writer.finish();
    Some(Observation {
        workdir: fd,
        trees,
        not_observed,
        was_read_only: !context.mode.writes(),
        since_ms: context.since_ms,
        took: began.elapsed(),
    })
}

/// The working directory and, for a task that may write, its additional directories; one per work tree.
fn directories(context: ObservationContext<'_>, workdir: &Path) -> VecDeque<PathBuf> {
    let mut directories = VecDeque::from([workdir.to_owned()]);
    let mut trees = vec![work_tree_of(workdir)];
    for directory in context.add_dirs.iter().filter(|_| context.may_write) {
        let tree = work_tree_of(directory);
        if !trees.contains(&tree) {
            trees.push(tree);
            directories.push_back(directory.clone());
        }
    }
    directories
}

fn baseline(context: ObservationContext<'_>, directory: &Path) -> Result<Option<Baseline>, String> {
    let git = restore_record::git(context.environment, directory, READ_ONLY_GIT_TIMEOUT)
        .map_err(|error| error.to_string())?;
    Baseline::take(&git, directory, context.dir.path(), READ_ONLY_LIMITS)
        .map_err(|error| restore_record::first_line(&error.to_string()))
}

impl Observation {
    /// Examines the trees again, after all processes of the task are gone. `other_writers` returns the tasks that wrote in
    /// the same trees meanwhile; it is called only if something changed.
    pub(crate) fn finish(
        mut self,
        report: &Report,
        other_writers: impl FnOnce() -> Vec<TaskId>,
    ) -> EvidenceAndFindings {
        let began = Instant::now();
        let since_ms = self.since_ms;
        let changes: Vec<Result<TreeChanges, String>> =
            self.trees.iter_mut().map(|tree| tree.compare(since_ms)).collect();
        let mut findings: Vec<Finding> =
            self.trees.iter().zip(&changes).flat_map(|(tree, changes)| tree.findings(changes)).collect();
        let is_complete = |changes: &TreeChanges| changes.source == Source::Git || changes.partial.is_none();
        // git lists every changed file, even if its content was not read.
        let is_whole = changes.iter().all(|changes| changes.as_ref().is_ok_and(is_complete));
        let mut merged = Merged::of(&self.trees, changes);
        if merged.sources.is_empty() {
            return (None, findings);
        }
        merged.left_out.extend(self.not_observed.iter().map(|directory| LeftOut {
            path: display_path(&self.trees[0].view.relative_path_of(directory)) + "/",
            reason: LeftOutReason::Repository,
            bytes: 0,
        }));
        findings.extend(self.compare_with_claims(&merged.files, is_whole, report, other_writers));
        findings.extend(merged.findings());
        (Some(self.evidence(merged, began)), findings)
    }

    fn compare_with_claims(
        &self,
        files: &Files,
        is_whole: bool,
        report: &Report,
        other_writers: impl FnOnce() -> Vec<TaskId>,
    ) -> Vec<Finding> {
        let changed = files.modified.iter().chain(&files.added).chain(&files.deleted);
        let changed: BTreeSet<String> = changed.cloned().collect();
        let observed = ObservedChanges {
            renamed: files.renamed.clone(),
            not_listed: files.not_listed,
            was_read_only: self.was_read_only,
            other_writers: if changed.is_empty() { Vec::new() } else { other_writers() },
            is_whole,
            changed,
        };
        reconcile(&self.claims(report, &observed.changed), &observed)
    }

    /// The agent's claims. A claimed file without an observed change is looked up in the ignore rules of git.
    fn claims(&self, report: &Report, changed: &BTreeSet<String>) -> Claims {
        let named = report.files.added.iter().chain(&report.files.modified).chain(&report.files.deleted);
        let mut claims: Vec<(PathBuf, ClaimLocation)> = Vec::new();
        for name in named {
            claims.push(match self.trees.iter().find_map(|tree| tree.locate(name)) {
                Some((path, true)) => (path, ClaimLocation::Examined),
                Some((path, false)) => (path, ClaimLocation::NotExamined),
                None => (PathBuf::from(name), ClaimLocation::Outside),
            });
        }
        let unobserved = claims.iter().filter(|(path, location)| {
            *location == ClaimLocation::Examined && !changed.contains(&display_path(path))
        });
        let unobserved: Vec<&Path> = unobserved.map(|(path, _)| path.as_path()).collect();
        let ignored: BTreeSet<PathBuf> =
            self.trees.iter().flat_map(|tree| tree.ignored(unobserved.iter().copied())).collect();
        let claims = claims.into_iter().map(|(path, location)| Claim {
            location: if ignored.contains(&path) { ClaimLocation::Ignored } else { location },
            path: display_path(&path),
        });
        Claims {
            files: claims.collect(),
            // An agent that prints text names no files.
            is_whole: report.files.not_listed == 0 && report.dialect != Some(Dialect::Plain),
            ran_commands: report.commands.finished > 0,
        }
    }

    fn evidence(&self, merged: Merged, began: Instant) -> Evidence {
        let mut artifacts = Artifacts::new(Budget::default());
        let still_there = merged.changes.iter().filter(|change| change.kind != ChangeKind::Deleted);
        let still_there: Vec<PathBuf> = still_there.map(|change| change.path.clone()).collect();
        artifacts.add_below(&self.workdir, &still_there);
        for tree in &self.trees[1..] {
            artifacts.add_in_tree(&tree.view, &still_there);
        }
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Evidence {
            source: merged.sources[0],
            partial: merged.partial,
            files: merged.files,
            lines: merged.lines,
            lines_not_counted: merged.lines_not_counted,
            left_out_count: merged.left_out.len(),
            left_out: merged.left_out.into_iter().take(MAX_LEFT_OUT).collect(),
            history: merged.history,
            artifacts: artifacts.found,
            artifacts_not_listed: artifacts.not_listed,
            took_ms: [milliseconds(self.took), milliseconds(began.elapsed())],
        }
    }
}
