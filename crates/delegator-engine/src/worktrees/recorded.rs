//! The worktrees of tasks: what is recorded about one, what changed in it, and its removal, before which its
//! diff is stored with its task.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::named_enum;
use delegator_domain::task::TaskId;
use delegator_git::{LeftOut, LeftOutReason, WorkTreeDiff};
use delegator_registry::{ClaimKind, Registry, StoredWorktree, Task, TaskFile, WorktreeClaim, WorktreeEvent};
use delegator_supervisor::agent::Variables;
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, IsolationError, NoDiff, Result};
use crate::shared::directories::remove_directory;
use crate::shared::format_version::read_record;
use crate::shared::git_program::git;
use crate::worktrees::plan::WorktreePlan;
use crate::{Engine, Worktrees};

/// Long, because all files of a large worktree are compared.
const DIFF_TIMEOUT: Duration = Duration::from_secs(300);

/// For deleting a branch.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often, and after which pause, the files are removed again if something still writes to them.
const MAX_TRIES: usize = 20;
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// How often, and after which pause, a worktree is claimed again that another command has claimed.
const MAX_CLAIM_TRIES: usize = 20;
const CLAIM_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWorktree {
    /// The task for which it was created.
    pub owner: TaskId,
    pub path: PathBuf,
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    pub state: WorktreeState,
}

impl RecordedWorktree {
    pub(crate) fn read(registry: &Registry, owner: &TaskId) -> Result<Option<RecordedWorktree>> {
        let Some(stored) = registry.worktree(owner)? else { return Ok(None) };
        let plan = WorktreePlan::of_stored(&stored)?;
        Ok(Some(RecordedWorktree {
            owner: owner.clone(),
            path: plan.worktree.path,
            branch: plan.worktree.branch,
            base: plan.worktree.source.commit,
            state: WorktreeState::of(registry, &stored)?,
        }))
    }
}

named_enum! {
    pub enum WorktreeState {
        /// Its task has not started.
        Planned = "planned",
        Present = "present",
        /// Its changes were applied, and it was removed.
        Applied = "applied",
        Discarded = "discarded",
        /// It was removed because nothing had changed in it. A task that continues there gets it again.
        Unchanged = "unchanged",
    }
}

impl WorktreeState {
    fn of(registry: &Registry, stored: &StoredWorktree) -> Result<WorktreeState> {
        Ok(match (stored.removed_at_ms, stored.applied_at_ms, stored.created_at_ms) {
            (None, _, None) => WorktreeState::Planned,
            (None, _, Some(_)) => WorktreeState::Present,
            (Some(_), Some(_), _) => WorktreeState::Applied,
            (Some(_), None, None) => WorktreeState::Discarded,
            (Some(_), None, Some(_)) => {
                let changes = WorktreeChanges::stored(registry, &stored.owner)?;
                let is_unchanged = !changes.is_lost && changes.diff.is_empty() && changes.is_complete();
                if is_unchanged { WorktreeState::Unchanged } else { WorktreeState::Discarded }
            }
        })
    }
}

#[derive(Debug, Default)]
pub struct WorktreeChanges {
    /// A unified diff; empty if nothing changed.
    pub diff: Vec<u8>,
    /// The diff is larger than this many bytes and not here.
    pub too_large: Option<usize>,
    pub left_out: Vec<LeftOut>,
    /// Changed files in which the diff also has what the setup had changed.
    pub with_setup_edits: Vec<String>,
    /// The worktree is gone; these are the changes that were stored before.
    pub is_removed: bool,
    /// There were changes, and nothing of them is stored or was applied.
    pub is_lost: bool,
}

impl WorktreeChanges {
    pub(crate) fn of(found: &WorkTreeDiff) -> WorktreeChanges {
        WorktreeChanges {
            diff: found.diff.bytes().to_vec(),
            too_large: match found.diff {
                delegator_git::DiffText::TooLarge(limit) => Some(limit),
                delegator_git::DiffText::Complete(_) => None,
            },
            left_out: found.left_out.clone(),
            with_setup_edits: found.with_setup_edits.clone(),
            ..WorktreeChanges::default()
        }
    }

    fn stored(registry: &Registry, owner: &TaskId) -> Result<WorktreeChanges> {
        let dir = registry.dir().task(owner);
        let diff = dir.read(TaskFile::Diff)?;
        let omissions: DiffOmissions = read_record(&dir, TaskFile::DiffOmissions)?.unwrap_or_default();
        let is_unapplied =
            |stored: StoredWorktree| stored.created_at_ms.is_some() && stored.applied_at_ms.is_none();
        let is_unapplied = registry.worktree(owner)?.is_some_and(is_unapplied);
        let is_stored = diff.as_ref().is_some_and(|diff| !diff.is_empty() || omissions.is_empty());
        Ok(WorktreeChanges {
            diff: diff.unwrap_or_default(),
            too_large: omissions.size_limit,
            left_out: omissions.left_out,
            is_removed: true,
            is_lost: is_unapplied && !is_stored,
            ..WorktreeChanges::default()
        })
    }

    /// Those of a worktree that cannot be compared.
    pub(crate) fn unknown() -> WorktreeChanges {
        let left_out = vec![LeftOut { path: ".".to_owned(), reason: LeftOutReason::Unreadable, bytes: 0 }];
        WorktreeChanges { left_out, ..WorktreeChanges::default() }
    }

    pub(crate) fn refuse_lost(self, task: &TaskId) -> Result<WorktreeChanges> {
        if self.is_lost {
            let reason = NoDiff::WorktreeGone { names: self.omissions().names() };
            Err(EngineError::NoDiff { task: task.clone(), reason })
        } else {
            Ok(self)
        }
    }

    pub fn omissions(&self) -> DiffOmissions {
        DiffOmissions {
            left_out: self.left_out.clone(),
            left_out_count: self.left_out.len(),
            size_limit: self.too_large,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.too_large.is_none() && self.left_out.is_empty()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffOmissions {
    /// Changed files that are not in it, up to a limit.
    pub left_out: Vec<LeftOut>,
    pub left_out_count: usize,
    /// There are changes, but no diff is stored, because it is larger than this many bytes.
    pub size_limit: Option<usize>,
}

const MAX_NAMED_FILES: usize = 5;

impl DiffOmissions {
    pub(crate) fn is_empty(&self) -> bool {
        self.left_out_count == 0 && self.size_limit.is_none()
    }

    pub(crate) fn names(&self) -> String {
        let name = |file: &LeftOut| match file.bytes >> 20 {
            0 => file.path.clone(),
            size => format!("{} ({size} MiB)", file.path),
        };
        let mut names: Vec<String> = self.left_out.iter().take(MAX_NAMED_FILES).map(name).collect();
        match self.left_out_count.saturating_sub(names.len()) {
            0 => {}
            more => names.push(format!("{more} more")),
        }
        names.extend(self.size_limit.map(|limit| format!("a diff of over {} MiB", limit >> 20)));
        names.join(", ")
    }
}

impl Worktrees<'_> {
    pub fn of(&self, task: &Task) -> Result<Option<RecordedWorktree>> {
        let Some(owner) = &task.worktree else { return Ok(None) };
        let Some(registry) = self.engine.find_registry()? else { return Ok(None) };
        RecordedWorktree::read(&registry, owner)
    }
}

/// Claims a worktree. The claim of a process that was killed ends with it.
pub(crate) fn claim_worktree(
    engine: &Engine,
    registry: &Registry,
    owner: &TaskId,
    kind: ClaimKind,
) -> Result<WorktreeClaim> {
    let dir = registry.dir().task(owner);
    for _ in 0..MAX_CLAIM_TRIES {
        if let Some(claim) = dir.try_claim_worktree(kind)? {
            return Ok(claim);
        }
        engine.system.sleep(CLAIM_PAUSE);
    }
    Err(IsolationError::Claimed { task: owner.clone() }.into())
}

/// Removes what there is of a worktree that was never complete, because its task was cancelled before or
/// its supervisor was killed: nothing that an agent did is in it.
pub(crate) fn remove_incomplete_worktree(
    engine: &Engine,
    registry: &mut Registry,
    owner: &TaskId,
    environment: &Variables,
) -> Result<()> {
    if registry.worktree(owner)?.is_some_and(|stored| stored.created_at_ms.is_none()) {
        let _claim = claim_worktree(engine, registry, owner, ClaimKind::Removal)?;
        let mut worktree = ClaimedWorktree { engine, registry, owner, environment, _claim };
        worktree.remove(&WorktreeChanges::default())?;
    }
    Ok(())
}

/// Everything that changed in a worktree since it was created; of a removed one, what was stored before.
pub(crate) fn worktree_changes(
    registry: &Registry,
    owner: &TaskId,
    environment: &Variables,
) -> Result<WorktreeChanges> {
    let found = PresentWorktree::find(registry, owner, environment)?;
    // A crash may have left the record of a worktree whose files are gone.
    match found.filter(|found| found.plan.worktree.path.exists()) {
        Some(found) => {
            found.compare(registry.dir().task(owner).path()).map(|diff| WorktreeChanges::of(&diff))
        }
        None => WorktreeChanges::stored(registry, owner),
    }
}

/// A worktree that this process alone applies or removes.
pub(crate) struct ClaimedWorktree<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) registry: &'a mut Registry,
    pub(crate) owner: &'a TaskId,
    pub(crate) environment: &'a Variables,
    pub(crate) _claim: WorktreeClaim,
}

impl ClaimedWorktree<'_> {
    pub(crate) fn changes(&self) -> Result<WorktreeChanges> {
        worktree_changes(self.registry, self.owner, self.environment)
    }

    /// False if there is nothing to remove, or a task works there.
    pub(crate) fn remove(&mut self, changes: &WorktreeChanges) -> Result<bool> {
        let (registry, owner) = (&mut *self.registry, self.owner);
        let stored = registry.worktree(owner)?.filter(|stored| stored.removed_at_ms.is_none());
        let Some(stored) = stored else { return Ok(false) };
        // The last look before files are deleted: a process of an older version claims nothing.
        if !registry.live_tasks_in_worktree(owner)?.is_empty() {
            return Ok(false);
        }
        let worktree = WorktreePlan::of_stored(&stored)?.worktree;
        // The uncommitted changes for a worktree that was never created may still be there.
        if stored.is_present() && !changes.is_removed {
            let (dir, omissions) = (registry.dir().task(owner), changes.omissions());
            let omissions = serde_json::to_vec(&omissions).unwrap_or_default();
            dir.write_durably(TaskFile::DiffOmissions, &omissions)?;
            if changes.too_large.is_none() {
                dir.write_durably(TaskFile::Diff, &changes.diff)?;
            }
            crash_point(CrashPoint::WorktreeDiffStored);
        }
        remove_files(self.engine, &worktree.path).map_err(EngineError::io("remove the worktree"))?;
        remove_directory(&worktree.own_dir()).map_err(EngineError::io("remove the worktree"))?;
        let git = git(self.environment, &worktree.source.repository.top_level, REMOVE_TIMEOUT)?;
        worktree.remove(&git).map_err(delegator_git::WorktreeError::from)?;
        remove_directory(&worktree.store).map_err(EngineError::io("remove the worktree"))?;
        registry.record_worktree(owner, WorktreeEvent::Removed, self.engine.now_ms())?;
        Ok(true)
    }
}

/// Removes the files of a worktree. It is renamed first: a half deleted one must not look like one whose
/// files the agent deleted. A git process that created it for a killed supervisor may still write to it, so
/// this is repeated for a moment.
fn remove_files(engine: &Engine, path: &Path) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".removed");
    let removed = path.with_file_name(name);
    let mut tries = 0;
    loop {
        let outcome = remove_directory(&removed).and_then(|()| match std::fs::rename(path, &removed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => {
                renamed?;
                crash_point(CrashPoint::WorktreeFilesRemoved);
                remove_directory(&removed)
            }
        });
        tries += 1;
        match outcome {
            Ok(()) if !path.exists() => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty || tries == MAX_TRIES => {
                return Err(error);
            }
            Ok(()) if tries == MAX_TRIES => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
            _ => engine.sleep(RETRY_PAUSE),
        }
    }
}

pub(crate) struct PresentWorktree {
    pub(crate) plan: WorktreePlan,
    pub(crate) git: delegator_git::Git,
}

impl PresentWorktree {
    pub(crate) fn find(
        registry: &Registry,
        owner: &TaskId,
        environment: &Variables,
    ) -> Result<Option<PresentWorktree>> {
        let stored = registry.worktree(owner)?;
        let stored = stored.filter(StoredWorktree::is_present);
        let Some(stored) = stored else { return Ok(None) };
        let plan = WorktreePlan::of_stored(&stored)?;
        let git = git(environment, &plan.worktree.source.repository.top_level, DIFF_TIMEOUT)?;
        Ok(Some(PresentWorktree { plan, git }))
    }

    pub(crate) fn compare(&self, temp_dir: &Path) -> Result<WorkTreeDiff> {
        let found = self.plan.worktree.diff(&self.git, temp_dir);
        Ok(found.map_err(delegator_git::WorktreeError::from)?)
    }

    pub(crate) fn has_unique_commits(&self) -> Result<bool> {
        let found = self.plan.worktree.has_unique_commits(&self.git);
        Ok(found.map_err(delegator_git::WorktreeError::from)?)
    }
}
