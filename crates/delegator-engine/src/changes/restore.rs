//! Reverts what a task changed, or restores the whole work trees to their state before it.
//!
//! Restores files and index; HEAD and its branch only on request. A task has one restore point per work tree,
//! and all are checked before the first change: if a later change overlaps with one of the task's, nothing is
//! restored. The current state is saved as an undo point first, so a restore can be undone. A restore never
//! starts while another task may write to one of the trees.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use delegator_git::{
    EmptyWorkTree, HeadTarget, Overlap, OverlapPart, Plan, PreparedRestore, Recovery, RestoreError,
    RestorePoint, RestoreScope, prepare_restore, recover_interrupted,
};
use delegator_registry::{Registry, Task};
use delegator_supervisor::agent::Variables;

use crate::Changes;
use crate::changes::restore_settings::SettingsRestore;
use crate::error::{EngineError, RestoreChanges, Result};
use crate::restore_points::lookup::{FoundPoints, PointSource};
use crate::restore_points::record::undo_reference;
use crate::shared::git_program::git;
use crate::shared::mount_alias::primary_path;
use crate::upkeep::rescue::rescue_in;

/// Long, because a restore copies what it overwrites, whatever its size.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreRequest {
    pub dry_run: bool,
    /// Restore the whole work trees, including what changed after the task, or after the restore with `undo`.
    pub whole_tree: bool,
    /// Also restore HEAD and its branch.
    pub include_head: bool,
    /// Revert what the last restore changed instead of what the task changed.
    pub undo: bool,
}

#[derive(Debug)]
pub struct RestoredTree {
    pub plan: Plan,
    pub point: RestorePoint,
    /// The state before the restore; `None` if nothing was changed.
    pub undo: Option<RestorePoint>,
    /// HEAD was, or would be, restored.
    pub head_restored: bool,
}

#[derive(Debug, Default)]
pub struct RestoreReport {
    pub trees: Vec<RestoredTree>,
    /// Work trees whose repository or restore point is missing, with the reason.
    pub unavailable: Vec<(PathBuf, String)>,
    pub settings: Vec<PathBuf>,
    pub recovered: Vec<Recovery>,
}

impl RestoredTree {
    fn unchanged(tree: CheckedTree) -> RestoredTree {
        RestoredTree {
            plan: tree.prepared.plan.clone(),
            point: tree.point,
            undo: None,
            head_restored: tree.include_head,
        }
    }
}

impl RestoreRequest {
    fn scope(self) -> RestoreScope {
        match (self.whole_tree, self.undo) {
            (true, _) => RestoreScope::WholeTree,
            (false, true) => RestoreScope::RestoreChanges,
            (false, false) => RestoreScope::TaskChanges,
        }
    }
}

impl RestoreChanges {
    pub fn of_trees(trees: &[RestoredTree]) -> RestoreChanges {
        let changed = trees.iter().filter(|tree| tree.undo.is_some());
        changed.map(|tree| Self::of_tree(tree.head_restored)).max().unwrap_or(RestoreChanges::None)
    }

    fn of_tree(head_restored: bool) -> RestoreChanges {
        if head_restored { RestoreChanges::FilesAndHead } else { RestoreChanges::Files }
    }
}

struct CheckedTree {
    point: RestorePoint,
    prepared: PreparedRestore,
    include_head: bool,
    /// Set for a submodule that was deleted.
    recreated: Option<EmptyWorkTree>,
}

impl CheckedTree {
    fn changes_nothing(&self) -> bool {
        self.prepared.plan.is_empty() && !self.include_head
    }
}

impl Changes<'_> {
    /// Whether a task's changes were reverted since they were made, so that the next thing to revert is that
    /// restore.
    pub fn is_reverted(&self, task: &TaskId, environment: &Variables, here: &Path) -> Result<bool> {
        let registry = self.engine.find_registry()?;
        let source = PointSource { registry: registry.as_deref(), environment, here };
        let record = source.find(task)?.record;
        let newest = |points: &[RestorePoint]| points.iter().map(|point| point.created_at).max();
        let restored = record.undo.last().and_then(|points| newest(points));
        Ok(restored.is_some() && restored >= newest(&record.points))
    }

    /// Restores every work tree of a task, that of its working directory first. A task that is no longer in
    /// the registry is looked up in the repository that contains `here`.
    pub fn restore(
        &self,
        task: &TaskId,
        request: RestoreRequest,
        environment: &Variables,
        here: &Path,
    ) -> Result<RestoreReport> {
        let mut registry = self.engine.find_registry()?;
        if let Some(registry) = &mut registry {
            rescue_in(self.engine, registry)?;
        }
        let source = PointSource { registry: registry.as_deref(), environment, here };
        let mut found = source.find(task)?;
        let settings = SettingsRestore::check(
            task,
            registry.as_deref(),
            &found.record,
            request.whole_tree,
            request.undo,
        )?;
        let points = match requested_points(task, &found, request.undo) {
            Err(EngineError::NoRestorePoint { .. }) if !settings.is_empty() => Vec::new(),
            points => points?,
        };
        refuse_while_busy(registry.as_deref(), top_levels(&points))?;
        let recovered = recover(&points, environment)?;
        // Nothing may be left of what was interrupted.
        let is_gone = !recovered.is_empty() && !points.iter().any(RestorePoint::is_stored);
        let (mut checked, unavailable) = if points.is_empty() || is_gone {
            Default::default()
        } else {
            check_all(points, request, environment, &found)?
        };
        let report = |trees| RestoreReport { trees, unavailable, settings: settings.files(), recovered };
        let changes_no_file = checked.iter().all(CheckedTree::changes_nothing);
        if request.dry_run || (changes_no_file && settings.is_empty()) {
            return Ok(report(checked.into_iter().map(RestoredTree::unchanged).collect()));
        }
        // The checks may have taken a while.
        let points: Vec<RestorePoint> = checked.iter().map(|tree| tree.point.clone()).collect();
        refuse_while_busy(registry.as_deref(), top_levels(&points))?;
        let undo = if changes_no_file {
            checked.iter().map(|_| None).collect()
        } else {
            create_undo_points(&mut checked, &mut found)?
        };
        settings.apply(&mut found, request.undo)?;
        apply(checked, undo).map(report)
    }
}

type Unavailable = Vec<(PathBuf, String)>;

/// Finishes what killed processes left in the work trees.
fn recover(points: &[RestorePoint], environment: &Variables) -> Result<Vec<Recovery>> {
    let mut recovered = Vec::new();
    for point in points.iter().filter(|point| point.top_level.is_dir()) {
        let git = git(environment, &point.top_level, RESTORE_TIMEOUT)?;
        let found = recover_interrupted(&git, &point.top_level, &point.reference);
        recovered.extend(found.map_err(RestoreError::from)?);
    }
    Ok(recovered)
}

/// An error if all repositories are missing, or if later changes overlap anywhere.
fn check_all(
    points: Vec<RestorePoint>,
    request: RestoreRequest,
    environment: &Variables,
    found: &FoundPoints,
) -> Result<(Vec<CheckedTree>, Unavailable)> {
    let (mut checked, mut missing, mut overlaps) = (Vec::new(), Vec::new(), Vec::new());
    // All of them first: the work tree above shall not change once it is checked.
    let recreated: Vec<Option<EmptyWorkTree>> = points
        .iter()
        .map(|point| {
            EmptyWorkTree::create(point).map_err(EngineError::io("create the directory of a submodule"))
        })
        .collect::<Result<_, _>>()?;
    for (point, recreated) in points.into_iter().zip(recreated) {
        let git = git(environment, &point.top_level, RESTORE_TIMEOUT)?;
        let prepared = match prepare_restore(&git, &point, request.scope(), found.scratch.path()) {
            Err(error @ (RestoreError::DifferentRepository { .. } | RestoreError::PointMissing { .. })) => {
                missing.push((point.top_level, error));
                continue;
            }
            prepared => prepared?,
        };
        let top_level = &point.top_level;
        let in_tree = |overlap: &Overlap| Overlap { path: top_level.join(&overlap.path), part: overlap.part };
        overlaps.extend(prepared.plan.overlaps.iter().map(in_tree));
        let include_head = request.include_head && prepared.plan.head_target == HeadTarget::Moves;
        if include_head {
            prepared.check_head()?;
        } else if request.include_head && prepared.plan.head_target == HeadTarget::Overlaps {
            overlaps.push(Overlap { path: top_level.clone(), part: OverlapPart::Head });
        }
        checked.push(CheckedTree { point, prepared, include_head, recreated });
    }
    if !overlaps.is_empty() {
        return Err(EngineError::RestoreOverlap { overlaps });
    }
    if checked.is_empty() && !missing.is_empty() {
        return Err(missing.swap_remove(0).1.into());
    }
    Ok((checked, missing.into_iter().map(|(path, error)| (path, error.to_string())).collect()))
}

/// The last one of each work tree. One that is gone counts only if there is no other.
fn requested_points(task: &TaskId, found: &FoundPoints, undo: bool) -> Result<Vec<RestorePoint>> {
    let record = &found.record;
    let has_stored = |points: &&Vec<RestorePoint>| points.iter().any(RestorePoint::is_stored);
    let undo_points = || record.undo.iter().rev().find(has_stored).or(record.undo.last());
    let candidates = if undo { undo_points().cloned().unwrap_or_default() } else { record.points.clone() };
    let mut points: Vec<RestorePoint> = Vec::new();
    for point in candidates {
        match points.iter_mut().find(|other| other.top_level == point.top_level) {
            Some(other) if point.is_stored() || !other.is_stored() => *other = point,
            Some(_) => {}
            None => points.push(point),
        }
    }
    let problem = if undo {
        Some("it was never restored".to_owned())
    } else {
        record.problems.first().map(|entry| entry.problem.clone())
    };
    if points.is_empty() {
        Err(EngineError::NoRestorePoint { task: task.clone(), problem })
    } else {
        Ok(points)
    }
}

/// Recorded durably before the first change, so that a crash half-way can be undone.
fn create_undo_points(
    checked: &mut [CheckedTree],
    found: &mut FoundPoints,
) -> Result<Vec<Option<RestorePoint>>> {
    let mut number = found.record.undo.len() + 1;
    // A crash may have left undo points that were never recorded.
    loop {
        let mut is_free = true;
        for tree in checked.iter() {
            let reference = undo_reference(&tree.point.reference, number);
            is_free &= tree.prepared.is_name_free(&reference).map_err(RestoreError::from)?;
        }
        if is_free {
            break;
        }
        number += 1;
    }
    let mut undo = Vec::new();
    for tree in checked {
        undo.push(if tree.changes_nothing() {
            None
        } else {
            let reference = undo_reference(&tree.point.reference, number);
            Some(tree.prepared.create_undo_point(&reference)?)
        });
    }
    found.record.undo.push(undo.iter().flatten().cloned().collect());
    found.save_record()?;
    crash_point(CrashPoint::UndoNoted);
    Ok(undo)
}

fn apply(checked: Vec<CheckedTree>, undo: Vec<Option<RestorePoint>>) -> Result<Vec<RestoredTree>> {
    let trees: Vec<PathBuf> = checked.iter().map(|tree| tree.point.top_level.clone()).collect();
    let mut done = Vec::new();
    for (number, (tree, undo)) in checked.into_iter().zip(undo).enumerate() {
        let Some(undo) = undo else {
            done.push(RestoredTree::unchanged(tree));
            continue;
        };
        let (plan, head_restored) = (tree.prepared.plan.clone(), tree.include_head);
        if let Some(recreated) = tree.recreated {
            recreated.retain();
        }
        if let Err(source) = tree.prepared.apply(&undo, head_restored) {
            if trees.len() == 1 {
                return Err(source.into());
            }
            let here = match source {
                // Every other error occurs before the first change.
                RestoreError::Write(ref error) if error.has_changed_files() => {
                    RestoreChanges::of_tree(head_restored)
                }
                _ => RestoreChanges::None,
            };
            let (before, rest) = trees.split_at(number);
            let after = rest.get(1..).unwrap_or_default();
            return Err(EngineError::RestoreIncomplete {
                restored: before.to_vec(),
                failed: tree.point.top_level,
                untouched: after.to_vec(),
                changes: here.max(RestoreChanges::of_trees(&done)),
                source,
            });
        }
        done.push(RestoredTree { plan, point: tree.point, undo: Some(undo), head_restored });
    }
    Ok(done)
}

fn top_levels(points: &[RestorePoint]) -> impl Iterator<Item = &Path> {
    points.iter().map(|point| point.top_level.as_path())
}

/// A running or queued task that writes in one of the trees would interfere with the restore.
pub(super) fn refuse_while_busy<'a>(
    registry: Option<&Registry>,
    trees: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let Some(registry) = registry else { return Ok(()) };
    let mut unfinished = registry.queue(u32::MAX)?;
    for active in registry.active()? {
        unfinished.extend(registry.get(&active.id)?);
    }
    unfinished.retain(|task| !task.state.is_terminal() && task.may_write());
    for top_level in trees {
        let primary = primary_path(top_level);
        let is_busy = |task: &&Task| writes_in(task, top_level) || writes_in(task, &primary);
        if let Some(busy) = unfinished.iter().find(is_busy) {
            let (busy, state) = (busy.id.clone(), busy.state);
            return Err(EngineError::WorkTreeBusy { busy, state, top_level: top_level.to_owned() });
        }
    }
    Ok(())
}

/// A task in a worktree of its own has the user's directory as its working directory, but does not write there.
fn writes_in(task: &Task, top_level: &Path) -> bool {
    let own = task.worktree.is_none().then(|| Path::new(&task.working_dir));
    let directories = task.work_trees.iter().map(|tree| tree.root()).chain(own);
    directories.into_iter().any(|dir| dir.starts_with(top_level) || top_level.starts_with(dir))
}
