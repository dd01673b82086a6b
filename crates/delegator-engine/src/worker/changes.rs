//! What the agent of an attempt changed: the diff, and the branch to which it is pushed.

use delegator_fleet::{Claim, TaskSpec};
use delegator_git::{DiffText, GitError, PushedCommit, RemoteError, RemoteUrl, WorkTreeDiff};

use super::attempt_control::AttemptControl;
use super::attempt_files::{AttemptFiles, PreparedAttempt};
use super::preparation::{git, mirror, remote_access};
use super::shared::Shared;
use super::workspace::file_name;
use crate::error::EngineError;

#[derive(Debug, thiserror::Error)]
pub(super) enum ChangesError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("{0}")]
    Files(String),
}

/// A stop does not end it: the changes of a cancelled task are part of its result.
pub(super) fn find_changes(
    shared: &Shared<'_>,
    spec: &TaskSpec,
    files: &AttemptFiles,
    base: &PreparedAttempt,
) -> Result<WorkTreeDiff, ChangesError> {
    let git = git(shared, files)?;
    let mirror = mirror(shared, &git, spec)?;
    let before = files.files_before().map_err(ChangesError::Files)?;
    let dir = files.work();
    Ok(WorkTreeDiff::take(&git, (&dir, &base.base_commit, &mirror), &before, &files.temp())?)
}

/// What is missing in the diff.
pub(super) fn omissions(found: &WorkTreeDiff) -> Vec<String> {
    let left_out = found.left_out.iter();
    let mut omissions: Vec<String> = left_out
        .map(|path| format!("{path} is too large or unreadable and is not part of the diff"))
        .collect();
    if let DiffText::TooLarge(limit) = found.diff {
        omissions.push(format!("The diff is not stored: it is larger than {} MiB", limit >> 20));
    }
    omissions
}

/// Pushes the changes and returns the branch. A stop of the attempt ends the push.
pub(super) fn push_changes(
    shared: &Shared<'_>,
    control: &AttemptControl,
    spec: &TaskSpec,
    files: &AttemptFiles,
    (base, found): (&PreparedAttempt, &WorkTreeDiff),
) -> Result<String, ChangesError> {
    let git = git(shared, files)?.with_cancel(control.interrupt());
    let access = remote_access(shared, &git);
    let branch = branch_of(&control.claim);
    let commit = PushedCommit { branch: &branch, message: &spec.title, time_sec: files.prepared_at_sec()? };
    found.push(&access, &RemoteUrl::parse(&spec.repo_url)?, &base.base_commit, commit)?;
    Ok(branch)
}

/// Each attempt has a branch of its own, so none replaces that of another.
fn branch_of(claim: &Claim) -> String {
    format!("mcp-delegator/{}-{}", file_name(&claim.task), claim.attempt)
}
