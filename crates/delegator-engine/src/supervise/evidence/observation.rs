//! Observes all trees that a task may change, from before the run until all its processes are gone: that of
//! the working directory first, then those of the additional directories (for a task that may write), then
//! repositories inside them. Their changes become one [`Evidence`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{Mode, TaskId};
use delegator_git::{AgentChanges, Baseline, ChangeKind, Doubt, GitSettings, LeftOut, LeftOutReason, Limits};
use delegator_registry::TaskDir;
use delegator_supervisor::agent::Variables;
use delegator_supervisor::run::RunResult;
use delegator_transcript::{Dialect, Report, StreamOutcome};

use super::artifacts::{Artifacts, Budget};
use super::attribution::AgentActions;
use super::finding::{Finding, FindingKind};
use super::merge::{Change, Merged};
use super::paths::display_path;
use super::reconcile::{Claim, ClaimLocation, Claims, ObservedChanges, reconcile};
use super::tree::{TreeChanges, TreeObservation};
use super::{
    AgentTimes, Attribution, ChangeCounts, Evidence, EvidenceAndFindings, Lines, MAX_LEFT_OUT, MAX_LISTED,
    Source, UnattributedChanges,
};
use crate::restore_points::record::{RestorePointRecord, first_line};
use crate::shared::git_program::git;
use crate::shared::work_tree::work_tree_of;
use crate::supervise::create_restore_points::RestorePointWriter;

/// Time limit for git per tree of which no restore point is created.
const BASELINE_GIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Further trees are not examined once the agent has waited this long.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_TREES: usize = 16;
/// It needs no restore point, so the agent should not wait long.
const READ_ONLY_LIMITS: Limits =
    Limits { file_bytes: 10 << 20, total_bytes: 50 << 20, time: Duration::from_secs(2) };

#[derive(Debug)]
pub(crate) struct Observation {
    workdir: OwnedFd,
    /// The tree of the working directory first.
    trees: Vec<TreeObservation>,
    /// Directories that are not examined: linked worktrees, and those beyond the limits.
    not_observed: Vec<PathBuf>,
    state_dir: PathBuf,
    dir: TaskDir,
    was_read_only: bool,
    may_write: bool,
    since_ms: i64,
    took: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservationContext<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) dir: &'a TaskDir,
    pub(crate) workdir: &'a OwnedFd,
    /// Canonical paths of the additional directories.
    pub(crate) add_dirs: &'a [PathBuf],
    pub(crate) environment: &'a Variables,
    /// The working directory is in a worktree, which is its own protection: it needs no restore point.
    pub(crate) is_isolated: bool,
    /// Our own directory, which changes while tasks run.
    pub(crate) state_dir: &'a Path,
    pub(crate) mode: Mode,
    pub(crate) may_write: bool,
    pub(crate) no_restore_point: bool,
    /// The wall clock before the run: files modified later may be the task's.
    pub(crate) since_ms: i64,
}

/// Records the state of the files before the agent starts. For a task that may write, also creates the
/// restore points; an error if that of a directory which the caller named could not be created.
pub(crate) fn begin_observation(context: ObservationContext<'_>) -> Result<Option<Observation>, String> {
    let began = Instant::now();
    let opened = context.workdir.try_clone().and_then(|fd| {
        let workdir = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        Ok((fd, workdir))
    });
    let Ok((fd, workdir)) = opened else { return Ok(None) };
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
        let tree = TreeObservation::take(&directory, &workdir, context.dir.path(), || {
            if !context.may_write {
                baseline(context, &directory, READ_ONLY_LIMITS)
            } else if context.no_restore_point || (context.is_isolated && directory == workdir) {
                baseline(context, &directory, Limits::default())
            } else {
                writer.create(&directory)
            }
        });
        if let Err(problem) = check_point(&mut writer, context, &tree, &directory, directory == workdir) {
            writer.finish();
            return Err(problem);
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
    Ok(Some(Observation {
        workdir: fd,
        trees,
        not_observed,
        state_dir: context.state_dir.canonicalize().unwrap_or_else(|_| context.state_dir.to_owned()),
        dir: context.dir.clone(),
        was_read_only: !context.mode.writes(),
        may_write: context.may_write,
        since_ms: context.since_ms,
        took: began.elapsed(),
    }))
}

/// Records why a directory has no restore point; an error if the caller named it and wants one.
fn check_point(
    writer: &mut RestorePointWriter<'_>,
    context: ObservationContext<'_>,
    tree: &TreeObservation,
    directory: &PathBuf,
    is_workdir: bool,
) -> Result<(), String> {
    let is_named = is_workdir || context.add_dirs.contains(directory);
    match writer.take_failure() {
        Some(problem) if is_named => return Err(format!("{}: {problem}", directory.display())),
        Some(problem) => writer.skip(directory, &problem),
        None if !context.may_write => {}
        None if !tree.has_git() && !is_workdir => writer.skip(directory, "it is not in a git work tree"),
        None if tree.has_git() && is_named && context.no_restore_point => {
            writer.skip(directory, "the caller requested none");
        }
        None => {}
    }
    Ok(())
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

fn baseline(
    context: ObservationContext<'_>,
    directory: &Path,
    limits: Limits,
) -> Result<Option<Baseline>, String> {
    let git = git(context.environment, directory, BASELINE_GIT_TIMEOUT).map_err(|error| error.to_string())?;
    Baseline::take(&git, directory, context.dir.path(), limits)
        .map_err(|error| first_line(&error.to_string()))
}

impl Observation {
    /// Examines the trees again, after all processes of the task are gone. `other_writers` returns the tasks
    /// that wrote in the same trees meanwhile; it reads the registry.
    pub(crate) fn finish(
        mut self,
        result: &RunResult,
        times: AgentTimes,
        other_writers: impl FnOnce() -> Vec<TaskId>,
    ) -> EvidenceAndFindings {
        let began = Instant::now();
        let since_ms = self.since_ms;
        let changes: Vec<Result<TreeChanges, String>> =
            self.trees.iter_mut().map(|tree| tree.compare(since_ms)).collect();
        let observed = || self.trees.iter().zip(&changes);
        let settings = observed().filter_map(|(tree, changes)| tree.changed_settings(changes)).collect();
        let mut findings: Vec<Finding> = self.record_settings(settings).into_iter().collect();
        findings.extend(observed().flat_map(|(tree, changes)| tree.findings(changes)));
        let is_complete = |changes: &TreeChanges| changes.source == Source::Git || changes.partial.is_none();
        // git lists every changed file, even if its content was not read.
        let is_whole = changes.iter().all(|changes| changes.as_ref().is_ok_and(is_complete));
        let mut merged = Merged::of(&self.trees, &changes, &self.state_dir);
        if merged.sources.is_empty() {
            return (None, findings);
        }
        merged.left_out.extend(self.not_observed.iter().map(|directory| LeftOut {
            path: display_path(&self.trees[0].view.relative_path_of(directory)) + "/",
            reason: LeftOutReason::Repository,
            bytes: 0,
        }));
        let changed = merged.files.modified.iter().chain(&merged.files.added).chain(&merged.files.deleted);
        let claims = self.claims(&result.report, &changed.map(String::as_str).collect());
        let actions = self.agent_actions(result, &claims, &merged.changes, times);
        let attributed = self.attribute(&actions, &merged.changes);
        if let Some((history, newest_ms)) = merged.history.as_mut().zip(newest_commit_ms(&changes)) {
            history.attribution = actions.attribute_commits(newest_ms);
        }
        let observed = ObservedChanges {
            not_listed: merged.files.not_listed,
            was_read_only: self.was_read_only,
            is_enforced: !self.may_write,
            // Only changes, and the end state of a task that may write, depend on them.
            other_writers: if attributed.changed.is_empty() && self.was_read_only {
                Vec::new()
            } else {
                other_writers()
            },
            is_whole,
            named: actions.named.clone(),
            changed: attributed.changed.clone(),
        };
        findings.extend(reconcile(&claims, &observed));
        findings.extend(merged.findings());
        findings.extend(self.store_end_states(
            &changes,
            &merged.changes,
            &observed,
            &attributed.doubts,
            &actions,
        ));
        (Some(self.evidence(merged, attributed, began)), findings)
    }

    /// Reports changed settings of repositories, and records them for a restore if the task could write.
    fn record_settings(&self, changed: Vec<(GitSettings, GitSettings)>) -> Option<Finding> {
        let files = changed.iter().flat_map(|(before, after)| before.differing_files(after));
        let view = &self.trees[0].view;
        let names: BTreeSet<String> = files.map(|path| display_path(&view.relative_path_of(path))).collect();
        let message = "git's configuration, hooks or attributes changed during the task: check them before you run git, \
                       they name programs that git runs";
        let finding = Finding::new(FindingKind::GitSettings, message).about(names.iter().map(String::as_str));
        if names.is_empty() {
            return None;
        }
        let recorded = if self.may_write {
            RestorePointRecord::add_changed_settings(&self.dir, changed)
        } else {
            Ok(())
        };
        Some(match recorded {
            Ok(()) => finding,
            Err(error) => finding.because(&error.to_string()),
        })
    }

    fn agent_actions(
        &self,
        result: &RunResult,
        claims: &Claims,
        changes: &[Change],
        times: AgentTimes,
    ) -> AgentActions {
        let report = &result.report;
        let attempted = report.files.attempted.iter();
        let attempted = attempted.filter_map(|name| self.trees.iter().find_map(|tree| tree.locate(name)));
        let mcp_calls = &report.mcp_calls;
        // Codex may print no event for a command that it had started when it was ended.
        let was_interrupted = report.outcome == StreamOutcome::Interrupted;
        AgentActions {
            named: claims.named(changes),
            attempted: attempted.map(|(path, _)| display_path(&path)).collect(),
            may_write: self.may_write,
            has_complete_events: claims.is_whole && !was_interrupted,
            called_mcp_tools: mcp_calls.finished + mcp_calls.unfinished > 0,
            // Codex prints no event for a command that its sandbox stopped.
            made_other_calls: report.sub_agents + report.unknown_items > 0 || result.refused.count > 0,
            renamed_a_file: claims.has_rename_without_new_name(changes),
            times,
            since_ms: self.since_ms,
        }
    }

    fn attribute(&self, actions: &AgentActions, changes: &[Change]) -> AttributedChanges {
        let mut attributed =
            AttributedChanges { is_enforced: !self.may_write, ..AttributedChanges::default() };
        for change in changes {
            let found = std::fs::symlink_metadata(self.trees[0].view.workdir.join(&change.path));
            let changed_ms = found.ok().map(|found| {
                found.ctime().saturating_mul(1000).saturating_add(found.ctime_nsec() / 1_000_000)
            });
            let path = display_path(&change.path);
            let attribution = actions.attribute(&path, changed_ms, change.kind == ChangeKind::Added);
            attributed.add(change, attribution, actions.doubt(&path, changed_ms, attribution));
        }
        attributed
    }

    /// Stores the state after the task in each work tree that has a restore point. Without it, a restore can
    /// only restore the whole tree, so an error is a finding.
    fn store_end_states(
        &mut self,
        changes: &[Result<TreeChanges, String>],
        files: &[Change],
        observed: &ObservedChanges,
        doubts: &BTreeMap<String, Doubt>,
        actions: &AgentActions,
    ) -> Vec<Finding> {
        // If other tasks wrote in the same trees, only what an event names is certainly this agent's.
        let is_shared = !observed.other_writers.is_empty();
        let is_unknown = |path: &Path| {
            let name = display_path(path);
            let attribution = observed.changed.get(&name);
            attribution == Some(&Attribution::Unknown) || (is_shared && !observed.named.contains(&name))
        };
        let paths = files.iter().flat_map(|change| [Some(&change.path), change.from.as_ref()]).flatten();
        let (unattributed, others): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.partition(|path| is_unknown(path));
        let doubt = |path: &Path| {
            if is_shared { Some(Doubt::OtherTask) } else { doubts.get(&display_path(path)).copied() }
        };
        let doubtful: Vec<(&PathBuf, Doubt)> =
            others.into_iter().filter_map(|path| Some((path, doubt(path)?))).collect();
        let mut findings = Vec::new();
        for (tree, changes) in self.trees.iter_mut().zip(changes) {
            let Some(compared) = changes.as_ref().ok().and_then(|changes| changes.compared.as_ref()) else {
                continue;
            };
            let in_tree = unattributed.iter().filter_map(|path| tree.view.tree_path(path)).collect();
            let agent = AgentChanges {
                unattributed: in_tree,
                doubtful: doubtful
                    .iter()
                    .filter_map(|(path, doubt)| Some((tree.view.tree_path(path)?, *doubt)))
                    .collect(),
                ran_commands: !is_shared && actions.may_change_anything(),
                moved_head: !is_shared && actions.may_have_moved_head(&compared.commits.made_at),
            };
            match tree.store_end_state(compared, &agent) {
                Ok(true) => crash_point(CrashPoint::EndStateStored),
                Ok(false) => {}
                Err(finding) => findings.push(finding),
            }
        }
        findings
    }

    /// The agent's claims. A claimed file without an observed change is looked up in the ignore rules of git.
    fn claims(&self, report: &Report, changed: &BTreeSet<&str>) -> Claims {
        let changed_files = report.files.added.iter().chain(&report.files.modified);
        let named = changed_files.map(|name| (name, false));
        let named = named.chain(report.files.deleted.iter().map(|name| (name, true)));
        let mut claims: Vec<(PathBuf, ClaimLocation, bool)> = Vec::new();
        for (name, is_deletion) in named {
            let (path, location) = match self.trees.iter().find_map(|tree| tree.locate(name)) {
                Some((path, true)) => (path, ClaimLocation::Examined),
                Some((path, false)) => (path, ClaimLocation::NotExamined),
                None => (PathBuf::from(name), ClaimLocation::Outside),
            };
            claims.push((path, location, is_deletion));
        }
        let unobserved = claims.iter().filter(|(path, location, _)| {
            *location == ClaimLocation::Examined && !changed.contains(display_path(path).as_str())
        });
        let unobserved: Vec<&Path> = unobserved.map(|(path, ..)| path.as_path()).collect();
        let ignored: BTreeSet<PathBuf> =
            self.trees.iter().flat_map(|tree| tree.ignored(unobserved.iter().copied())).collect();
        let claims = claims.into_iter().map(|(path, location, is_deletion)| Claim {
            location: if ignored.contains(&path) { ClaimLocation::Ignored } else { location },
            path: display_path(&path),
            is_deletion,
        });
        Claims {
            files: claims.collect(),
            // An agent that prints text names no files.
            is_whole: report.files.not_listed == 0 && report.dialect != Some(Dialect::Plain),
        }
    }

    fn evidence(&self, merged: Merged, attributed: AttributedChanges, began: Instant) -> Evidence {
        let mut artifacts = Artifacts::new(Budget::default(), &attributed.changed);
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
            attributed: attributed.counts,
            unattributed: attributed.unattributed,
            left_out_count: merged.left_out.len(),
            left_out: merged.left_out.into_iter().take(MAX_LEFT_OUT).collect(),
            history: merged.history,
            artifacts: artifacts.found,
            artifacts_not_listed: artifacts.not_listed,
            took_ms: [milliseconds(self.took), milliseconds(began.elapsed())],
        }
    }
}

#[derive(Debug, Default)]
struct AttributedChanges {
    /// The agent's sandbox prevents writing, so a change that may be the agent's does not count as its own.
    is_enforced: bool,
    changed: BTreeMap<String, Attribution>,
    /// Why changes that are the agent's, or may be, may be another's as well.
    doubts: BTreeMap<String, Doubt>,
    counts: ChangeCounts,
    unattributed: UnattributedChanges,
}

impl AttributedChanges {
    fn add(&mut self, change: &Change, attribution: Attribution, doubt: Option<Doubt>) {
        let is_counted = match attribution {
            Attribution::Agent => true,
            Attribution::PossiblyAgent => !self.is_enforced,
            Attribution::Unknown => false,
        };
        if is_counted {
            let (added, deleted) = change.lines.unwrap_or_default();
            self.counts.add(&change.kind, Lines { added, deleted });
        }
        let paths = [Some(&change.path), change.from.as_ref()].into_iter().flatten();
        let paths: Vec<String> = paths.map(|path| display_path(path)).collect();
        let list = match attribution {
            Attribution::Agent => None,
            Attribution::PossiblyAgent => Some(&mut self.unattributed.possibly_agent),
            Attribution::Unknown => Some(&mut self.unattributed.files),
        };
        if let Some(list) = list.filter(|list| list.len() < MAX_LISTED) {
            list.extend(paths.iter().cloned());
        }
        self.doubts
            .extend(doubt.into_iter().flat_map(|doubt| paths.iter().map(move |path| (path.clone(), doubt))));
        self.changed.extend(paths.into_iter().map(|path| (path, attribution)));
    }
}

impl ChangeCounts {
    pub(crate) fn add(&mut self, kind: &ChangeKind, lines: Lines) {
        let count = match kind {
            ChangeKind::Modified => &mut self.modified,
            ChangeKind::Added => &mut self.added,
            ChangeKind::Deleted => &mut self.deleted,
            ChangeKind::Renamed { .. } => &mut self.renamed,
        };
        *count += 1;
        self.lines.added = self.lines.added.saturating_add(lines.added);
        self.lines.deleted = self.lines.deleted.saturating_add(lines.deleted);
    }
}

fn newest_commit_ms(changes: &[Result<TreeChanges, String>]) -> Option<i64> {
    let compared = changes.first()?.as_ref().ok()?.compared.as_ref()?;
    compared.commits.made_at.iter().max().map(|seconds| seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_beyond_the_lists_are_counted_by_attribution() {
        let change = |number: usize| Change {
            path: format!("f{number}").into(),
            kind: ChangeKind::Added,
            lines: Some((1, 0)),
            from: None,
        };
        let mut attributed = AttributedChanges { is_enforced: true, ..AttributedChanges::default() };
        for number in 0..MAX_LISTED + 5 {
            attributed.add(&change(number), Attribution::Unknown, None);
        }
        attributed.add(&change(MAX_LISTED + 5), Attribution::PossiblyAgent, None);
        assert_eq!((attributed.counts.files(), attributed.unattributed.files.len()), (0, MAX_LISTED));
        assert_eq!(attributed.changed[&format!("f{}", MAX_LISTED + 4)], Attribution::Unknown);
        attributed.add(&change(MAX_LISTED + 6), Attribution::Agent, None);
        assert_eq!((attributed.counts.added, attributed.counts.lines.added), (1, 1));
    }
}
