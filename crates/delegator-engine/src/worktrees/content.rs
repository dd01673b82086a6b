//! What is in a worktree beyond the user's repository. It decides which worktrees are removed without a request
//! for that one: only those of which nothing would be lost.

use delegator_domain::named_enum;
use delegator_domain::task::TaskId;
use delegator_git::LeftOutReason;
use delegator_registry::{ClaimKind, Registry, TaskFile};
use delegator_supervisor::agent::Variables;

use super::recorded::{ClaimedWorktree, PresentWorktree, WorktreeChanges, worktree_changes};
use crate::Engine;
use crate::error::Result;

named_enum! {
    pub enum WorktreeContent {
        /// It was never complete: no agent worked in it.
        Incomplete = "incomplete",
        /// Another program deleted its files.
        Missing = "missing",
        Unchanged = "unchanged",
        /// Its changes were applied, and nothing has changed since.
        Applied = "applied",
        /// It has changes that were not applied.
        Changed = "changed",
        /// It changed after its changes were applied.
        ChangedAfterApply = "changed_after_apply",
        /// Besides what was applied it has commits, or ignored or large files, that are nowhere else.
        OnlyCopies = "only_copies",
    }
}

impl WorktreeContent {
    /// Whether nothing is lost with it.
    pub fn is_removable(self) -> bool {
        matches!(
            self,
            WorktreeContent::Incomplete
                | WorktreeContent::Missing
                | WorktreeContent::Unchanged
                | WorktreeContent::Applied
        )
    }

    /// `applied` is the diff that was applied last.
    fn of(
        changes: &WorktreeChanges,
        applied: Option<&[u8]>,
        has_unique_commits: impl Fn() -> Result<bool>,
    ) -> Result<WorktreeContent> {
        let has_only_copies = changes.left_out.iter().any(|file| file.reason != LeftOutReason::Commits);
        Ok(match applied {
            _ if changes.is_removed && !has_unique_commits()? => WorktreeContent::Missing,
            Some(applied) if applied != changes.diff || changes.too_large.is_some() => {
                WorktreeContent::ChangedAfterApply
            }
            None if !changes.diff.is_empty() || changes.too_large.is_some() => WorktreeContent::Changed,
            _ if has_only_copies || has_unique_commits()? => WorktreeContent::OnlyCopies,
            Some(_) => WorktreeContent::Applied,
            None => WorktreeContent::Unchanged,
        })
    }
}

/// Compares a worktree, which may take seconds.
pub(crate) fn examine(
    registry: &Registry,
    owner: &TaskId,
    environment: &Variables,
) -> Result<(WorktreeContent, WorktreeChanges)> {
    let found = PresentWorktree::find(registry, owner, environment)?;
    let Some(found) = found else { return Ok((WorktreeContent::Incomplete, WorktreeChanges::default())) };
    let changes = worktree_changes(registry, owner, environment)?;
    let is_applied = registry.worktree(owner)?.is_some_and(|stored| stored.applied_at_ms.is_some());
    // An older version stored no diff when it applied one: then any change counts as a later one.
    let applied = if is_applied {
        Some(registry.dir().task(owner).read(TaskFile::Diff)?.unwrap_or_default())
    } else {
        None
    };
    let has_unique_commits = || found.has_unique_commits();
    Ok((WorktreeContent::of(&changes, applied.as_deref(), has_unique_commits)?, changes))
}

/// Removes a worktree that no task uses and that has content which may go. Returns whether it did.
pub(crate) fn remove_if(
    engine: &Engine,
    registry: &mut Registry,
    owner: &TaskId,
    environment: &Variables,
    may_go: impl FnOnce(WorktreeContent) -> bool,
) -> Result<bool> {
    let claim = registry.dir().task(owner).try_claim_worktree(ClaimKind::Removal)?;
    let is_unused = registry.live_tasks_in_worktree(owner).is_ok_and(|tasks| tasks.is_empty());
    let Some(_claim) = claim.filter(|_| is_unused) else { return Ok(false) };
    let (content, changes) = examine(registry, owner, environment)?;
    let mut worktree = ClaimedWorktree { engine, registry, owner, environment, _claim };
    Ok(may_go(content) && worktree.remove(&changes)?)
}

#[cfg(test)]
mod tests {
    use delegator_git::LeftOut;

    use super::*;

    fn content(diff: &[u8], left_out: Option<LeftOutReason>, applied: Option<&[u8]>) -> WorktreeContent {
        let left_out = left_out.map(|reason| LeftOut { path: "x".to_owned(), reason, bytes: 1 });
        let left_out = left_out.into_iter().collect();
        let changes = WorktreeChanges { diff: diff.to_vec(), left_out, ..WorktreeChanges::default() };
        WorktreeContent::of(&changes, applied, || Ok(false)).unwrap()
    }

    #[test]
    fn only_content_of_which_nothing_is_lost_is_removable() {
        let large = Some(LeftOutReason::TooLarge);
        for (found, expected, is_removable) in [
            (content(b"", None, None), WorktreeContent::Unchanged, true),
            (content(b"a", None, Some(b"a")), WorktreeContent::Applied, true),
            (content(b"a", None, None), WorktreeContent::Changed, false),
            (content(b"b", None, Some(b"a")), WorktreeContent::ChangedAfterApply, false),
            (content(b"", None, Some(b"a")), WorktreeContent::ChangedAfterApply, false),
            (content(b"", large, None), WorktreeContent::OnlyCopies, false),
            (content(b"a", large, Some(b"a")), WorktreeContent::OnlyCopies, false),
            // Its commits are in the repository of the user.
            (content(b"", Some(LeftOutReason::Commits), None), WorktreeContent::Unchanged, true),
        ] {
            assert_eq!((found, found.is_removable()), (expected, is_removable));
        }
        let unchanged = WorktreeChanges::default();
        let with_commits = WorktreeContent::of(&unchanged, Some(b""), || Ok(true)).unwrap();
        assert_eq!(with_commits, WorktreeContent::OnlyCopies);
        let too_large = WorktreeChanges { too_large: Some(1), ..WorktreeChanges::default() };
        assert_eq!(WorktreeContent::of(&too_large, None, || Ok(false)).unwrap(), WorktreeContent::Changed);
    }
}
