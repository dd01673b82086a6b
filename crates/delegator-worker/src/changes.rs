//! What the agent of an attempt changed: the diff, and the branch to which it is pushed.

use delegator_domain::redact::Redactor;
use delegator_engine::{DiffOmissions, EngineError};
use delegator_fleet::Claim;
use delegator_git::{
    DiffText, GitError, LeftOut, NewCommit, RemoteError, RemoteUrl, TaskCheckout, WorkTreeDiff,
};

use crate::attempt::Attempt;
use crate::attempt_files::PreparedAttempt;
use crate::workspace::file_name;

/// Files that are named although they are not in the diff; the others are counted.
const MAX_LISTED: usize = 100;
/// Files that a warning names.
const NAMED_FILES: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangesError {
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
pub(crate) fn find_changes(
    attempt: &Attempt<'_>,
    base: &PreparedAttempt,
) -> Result<WorkTreeDiff, ChangesError> {
    let (git, files) = (attempt.git()?, &attempt.files);
    let mirror = attempt.mirror(&git)?;
    let before = files.files_before().map_err(ChangesError::Files)?;
    let (dir, store) = (files.work(), files.before());
    let checkout = TaskCheckout { dir: &dir, base: &base.base_commit, store: &store };
    Ok(WorkTreeDiff::take(&git, &checkout, &mirror, &before, &files.temp())?)
}

/// What is missing in the diff. File names may contain secrets of this machine.
pub(crate) fn omissions(found: &WorkTreeDiff, redactor: &Redactor) -> DiffOmissions {
    let redacted =
        |file: &LeftOut| LeftOut { path: redactor.redact_str(&file.path).into_owned(), ..file.clone() };
    DiffOmissions {
        left_out: found.left_out.iter().take(MAX_LISTED).map(redacted).collect(),
        left_out_count: found.left_out.len(),
        size_limit: match found.diff {
            DiffText::TooLarge(limit) => Some(limit),
            DiffText::Complete(_) => None,
        },
    }
}

/// Names the files in which the diff has edits of the setup script.
pub(crate) fn setup_warning(found: &WorkTreeDiff) -> Option<String> {
    let files = &found.with_setup_edits;
    let more = match files.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let named = files.iter().take(NAMED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!files.is_empty()).then(|| {
        format!("The diff also has what the setup script changed in {named}{more}: the agent changed the same lines")
    })
}

/// Pushes the changes and returns the branch. A stop of the attempt ends the push.
pub(crate) fn push_changes(
    attempt: &Attempt<'_>,
    base: &PreparedAttempt,
    found: &WorkTreeDiff,
) -> Result<String, ChangesError> {
    let Attempt { control, spec, files, .. } = attempt;
    let git = attempt.git()?.with_cancel(control.interrupt());
    let branch = branch_of(&control.claim);
    let commit = NewCommit { branch: &branch, message: &spec.title, time_sec: files.prepared_at_sec()? };
    let url = RemoteUrl::parse(&spec.repo_url)?;
    found.push(&attempt.remote_access(&git), &url, &base.base_commit, commit)?;
    Ok(branch)
}

/// Each attempt has a branch of its own, so none replaces that of another.
fn branch_of(claim: &Claim) -> String {
    format!("mcp-delegator/{}-{}", file_name(&claim.task), claim.attempt)
}
