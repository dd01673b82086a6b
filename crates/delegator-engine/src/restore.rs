//! Bringing a work tree back to what it was before a task.
//!
//! Files and index come back; HEAD and its branch only if asked. The present state is kept first, so a restore can be
//! undone like a task. All that can be checked is checked before the first change.

use std::path::Path;
use std::time::Duration;

use delegator_domain::task::{State, TaskId};
use delegator_git::{Plan, RestorePoint, look};
use delegator_registry::{Registry, TaskDir};
use delegator_supervisor::agent::Variables;

use crate::Engine;
use crate::error::EngineError;
use crate::restore_point::{KeptPoint, git, reference};

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

/// What was done, or would be.
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

impl Engine {
    pub fn restore(
        &self,
        task: &TaskId,
        asked: RestoreAsked,
        environment: &Variables,
    ) -> Result<Restored, EngineError> {
        let unknown = || EngineError::UnknownTask { given: task.to_string() };
        let mut registry = self.find()?.ok_or_else(unknown)?;
        self.rescue_in(&mut registry)?;
        registry.get(task)?.ok_or_else(unknown)?;
        let dir = registry.dir().task(task);
        let mut kept = KeptPoint::read(&dir)?.unwrap_or_default();
        let point = wanted(task, &kept, asked.undo)?;
        refuse_while_busy(&registry, &point.top_level)?;
        let git = git(environment, &point.top_level, MAY_TAKE)?;
        let mut prospect = look(&git, &point, dir.path())?;
        let plan = prospect.plan.clone();
        let and_head = asked.and_head && plan.head_moved;
        if and_head {
            prospect.check_head()?;
        }
        if asked.dry_run || (plan.is_empty() && !and_head) {
            return Ok(Restored { plan, point, undo: None, head_restored: false });
        }
        // Looking may have taken a while.
        refuse_while_busy(&registry, &point.top_level)?;
        let name = format!("{}.undo-{}", reference(task, 0), kept.undo.len() + 1);
        let undo = prospect.keep_undo(&name).map_err(delegator_git::RestoreError::from)?;
        note(&mut kept, &undo, &dir)?;
        prospect.apply(&undo, and_head)?;
        Ok(Restored { plan, point, undo: Some(undo), head_restored: and_head })
    }
}

fn wanted(task: &TaskId, kept: &KeptPoint, undo: bool) -> Result<RestorePoint, EngineError> {
    let found = if undo { kept.undo.last().and_then(|undo| undo.first()) } else { kept.points.first() };
    let problem = if undo {
        Some("it was never restored".to_owned())
    } else {
        kept.problems.first().map(|one| one.problem.clone())
    };
    found.cloned().ok_or_else(|| EngineError::NoRestorePoint { task: task.clone(), problem })
}

/// Durable before anything changes: whoever dies half-way leaves the way back.
fn note(kept: &mut KeptPoint, undo: &RestorePoint, dir: &TaskDir) -> Result<(), EngineError> {
    kept.undo.push(vec![undo.clone()]);
    kept.write(dir)
}

/// A task that writes, or is about to, would write into what is being restored.
fn refuse_while_busy(registry: &Registry, top_level: &Path) -> Result<(), EngineError> {
    let mut unfinished = registry.queue(u32::MAX)?;
    for active in registry.active()? {
        unfinished.extend(registry.get(&active.id)?);
    }
    let writes_there = |working_dir: &str| {
        let dir = Path::new(working_dir);
        dir.starts_with(top_level) || top_level.starts_with(dir)
    };
    let unfinished = unfinished.into_iter().filter(|task| !task.state.is_terminal() && task.mode.writes());
    match unfinished.into_iter().find(|task| writes_there(&task.working_dir)) {
        Some(busy) => {
            let state: State = busy.state;
            Err(EngineError::WorkTreeBusy { busy: busy.id, state, top_level: top_level.to_owned() })
        }
        None => Ok(()),
    }
}
