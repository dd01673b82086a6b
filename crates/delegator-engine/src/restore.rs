//! Bringing work trees back to what they were before a task.
//!
//! Files and index come back; HEAD and its branch only if asked. A task has one restore point per work tree it could write
//! to, and all are checked before the first change. The present state of each is kept first, so a restore can be undone
//! like a task. A restore never starts while another task may write to one of the trees.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use delegator_git::{Plan, Prospect, RestoreError, RestorePoint, look};
use delegator_registry::{Registry, Task};
use delegator_supervisor::agent::Variables;

use crate::Engine;
use crate::error::EngineError;
use crate::restore_lookup::{Found, PointSource};
use crate::restore_point::{git, undo_reference};

/// A restore copies what it is about to overwrite, whatever its size.
const MAY_TAKE: Duration = Duration::from_secs(300);

/// How a restore is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreAsked {
    /// Only say what would be done.
    pub dry_run: bool,
    /// HEAD and its branch, too.
    pub and_head: bool,
    /// Back to before the last restore, instead of before the task.
    pub undo: bool,
}

/// What was done to one work tree, or would be.
#[derive(Debug)]
pub struct Restored {
    pub plan: Plan,
    /// What was gone back to.
    pub point: RestorePoint,
    /// Where the state before is kept; `None` when nothing was changed.
    pub undo: Option<RestorePoint>,
    /// HEAD was brought back.
    pub head_restored: bool,
}

impl Restored {
    fn unchanged(prospect: &Prospect, point: RestorePoint) -> Restored {
        Restored { plan: prospect.plan.clone(), point, undo: None, head_restored: false }
    }
}

/// A checked restore of one work tree.
struct Checked {
    point: RestorePoint,
    prospect: Prospect,
    and_head: bool,
}

impl Checked {
    fn changes_nothing(&self) -> bool {
        self.prospect.plan.is_empty() && !self.and_head
    }
}

impl Engine {
    /// Restores every work tree of a task, that of its working directory first. A task that is no longer in the registry
    /// is looked up in the repository `here` lies in.
    pub fn restore(
        &self,
        task: &TaskId,
        asked: RestoreAsked,
        (environment, here): (&Variables, &Path),
    ) -> Result<Vec<Restored>, EngineError> {
        let mut registry = self.find()?;
        if let Some(registry) = &mut registry {
            self.rescue_in(registry)?;
        }
        let source = PointSource { registry: registry.as_deref(), environment, here };
        let mut found = source.find(task)?;
        let points = wanted(task, &found, asked.undo)?;
        refuse_while_busy(registry.as_deref(), &points)?;
        let mut checked = Vec::new();
        for point in points {
            let git = git(environment, &point.top_level, MAY_TAKE)?;
            let prospect = look(&git, &point, found.place.path())?;
            let and_head = asked.and_head && prospect.plan.head_moved;
            if and_head {
                prospect.check_head()?;
            }
            checked.push(Checked { point, prospect, and_head });
        }
        if asked.dry_run || checked.iter().all(Checked::changes_nothing) {
            return Ok(checked
                .into_iter()
                .map(|one| Restored::unchanged(&one.prospect, one.point))
                .collect());
        }
        // Looking may have taken a while.
        let points: Vec<RestorePoint> = checked.iter().map(|one| one.point.clone()).collect();
        refuse_while_busy(registry.as_deref(), &points)?;
        let undo = keep_undo(&mut checked, &mut found)?;
        apply(checked, undo)
    }
}

fn wanted(task: &TaskId, found: &Found, undo: bool) -> Result<Vec<RestorePoint>, EngineError> {
    let kept = &found.kept;
    let points = if undo { kept.undo.last().cloned().unwrap_or_default() } else { kept.points.clone() };
    let problem = match undo {
        true => Some("it was never restored".to_owned()),
        false => kept.problems.first().map(|one| one.problem.clone()),
    };
    match points.is_empty() {
        true => Err(EngineError::NoRestorePoint { task: task.clone(), problem }),
        false => Ok(points),
    }
}

/// Keeps the present state of every tree that will change, and notes it durably before the first change: a crash half-way
/// leaves the way back.
fn keep_undo(checked: &mut [Checked], found: &mut Found) -> Result<Vec<Option<RestorePoint>>, EngineError> {
    let mut number = found.kept.undo.len() + 1;
    // A crash may have left undo points that were never noted.
    loop {
        let mut is_free = true;
        for one in checked.iter() {
            let reference = undo_reference(&one.point.reference, number);
            is_free &= one.prospect.is_free(&reference).map_err(RestoreError::from)?;
        }
        if is_free {
            break;
        }
        number += 1;
    }
    let mut undo = Vec::new();
    for one in checked {
        undo.push(match one.changes_nothing() {
            true => None,
            false => {
                let reference = undo_reference(&one.point.reference, number);
                Some(one.prospect.keep_undo(&reference).map_err(RestoreError::from)?)
            }
        });
    }
    found.kept.undo.push(undo.iter().flatten().cloned().collect());
    found.note()?;
    crash_point(CrashPoint::UndoNoted);
    Ok(undo)
}

fn apply(checked: Vec<Checked>, undo: Vec<Option<RestorePoint>>) -> Result<Vec<Restored>, EngineError> {
    let trees: Vec<PathBuf> = checked.iter().map(|one| one.point.top_level.clone()).collect();
    let mut done = Vec::new();
    for (number, (one, undo)) in checked.into_iter().zip(undo).enumerate() {
        let Some(undo) = undo else {
            done.push(Restored::unchanged(&one.prospect, one.point));
            continue;
        };
        let plan = one.prospect.plan.clone();
        if let Err(source) = one.prospect.apply(&undo, one.and_head) {
            if trees.len() == 1 {
                return Err(source.into());
            }
            let (before, rest) = trees.split_at(number);
            let after = rest.get(1..).unwrap_or_default();
            return Err(EngineError::RestoreIncomplete {
                restored: before.to_vec(),
                failed: one.point.top_level,
                untouched: after.to_vec(),
                source,
            });
        }
        done.push(Restored { plan, point: one.point, undo: Some(undo), head_restored: one.and_head });
    }
    Ok(done)
}

/// A task that writes, or is about to, would write into what is being restored.
fn refuse_while_busy(registry: Option<&Registry>, points: &[RestorePoint]) -> Result<(), EngineError> {
    let Some(registry) = registry else { return Ok(()) };
    let mut unfinished = registry.queue(u32::MAX)?;
    for active in registry.active()? {
        unfinished.extend(registry.get(&active.id)?);
    }
    unfinished.retain(|task| !task.state.is_terminal() && task.mode.writes());
    for point in points {
        let top_level = &point.top_level;
        if let Some(busy) = unfinished.iter().find(|task| writes_in(task, top_level)) {
            let (busy, state) = (busy.id.clone(), busy.state);
            return Err(EngineError::WorkTreeBusy { busy, state, top_level: top_level.clone() });
        }
    }
    Ok(())
}

fn writes_in(task: &Task, top_level: &Path) -> bool {
    let directories = task.work_trees.iter().map(|tree| tree.root()).chain([Path::new(&task.working_dir)]);
    directories.into_iter().any(|dir| dir.starts_with(top_level) || top_level.starts_with(dir))
}
