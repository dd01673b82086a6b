//! Where a worktree starts: the repository and the commit. Everything that cannot become a worktree is
//! refused here, before anything is created.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{GitError, Result, WriteError};
use crate::records::output_text;
use crate::repository::{Repository, find_repository};
use crate::run::Git;

/// The work tree of the user from which a worktree is created, and the commit that it starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeSource {
    #[serde(flatten)]
    pub repository: Repository,
    pub commit: String,
}

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{} is not in a git work tree", dir.display())]
    NoRepository { dir: PathBuf },
    #[error("the repository {} has no commit yet", top_level.display())]
    NoCommit { top_level: PathBuf },
    #[error("the repository {} has no commit '{base}'", top_level.display())]
    UnknownBase { top_level: PathBuf, base: String },
    #[error("the repository {} has a branch named '{name}', so there can be no branches below that name", top_level.display())]
    BranchInTheWay { top_level: PathBuf, name: String },
    #[error("{} is a partial clone, and {missing} objects of the commit are not in it", top_level.display())]
    MissingObjects { top_level: PathBuf, missing: usize },
    #[error("there is a branch '{branch}' already")]
    BranchExists { branch: String },
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Finds the repository that contains `dir` and the commit that `base` names, by default HEAD.
/// `branch_folder` is the first part of the names of the branches to come.
pub fn find_source(
    git: &Git,
    dir: &Path,
    base: Option<&str>,
    branch_folder: &str,
) -> Result<WorktreeSource, WorktreeError> {
    let Some(repository) = find_repository(git, dir)? else {
        return Err(WorktreeError::NoRepository { dir: dir.to_owned() });
    };
    let top_level = || repository.top_level.clone();
    let name = base.unwrap_or("HEAD");
    // A name that begins with a dash would be an option.
    let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains(char::is_control);
    let commit = if is_name { repository.resolve_ref(git, &format!("{name}^{{commit}}"))? } else { None };
    let commit = commit.ok_or_else(|| match base {
        None => WorktreeError::NoCommit { top_level: top_level() },
        Some(base) => WorktreeError::UnknownBase { top_level: top_level(), base: base.to_owned() },
    })?;
    if repository.resolve_ref(git, &format!("refs/heads/{branch_folder}"))?.is_some() {
        return Err(WorktreeError::BranchInTheWay { top_level: top_level(), name: branch_folder.to_owned() });
    }
    match missing_objects(git, &repository, &commit)? {
        0 => Ok(WorktreeSource { repository, commit }),
        missing => Err(WorktreeError::MissingObjects { top_level: top_level(), missing }),
    }
}

/// How many objects of the commit are not in a partial clone. They are not fetched: that may run a command
/// which the repository configures.
fn missing_objects(git: &Git, repository: &Repository, commit: &str) -> Result<usize> {
    let promisor = ["config", "--get-regexp", "^(extensions\\.partialclone|remote\\..*\\.promisor)$"];
    if repository.run_optional(git, promisor)?.is_none() {
        return Ok(0);
    }
    let args = ["rev-list", "--objects", "--no-walk", "--missing=print", "--quiet", commit];
    let listed = output_text(&repository.run(git, args)?);
    Ok(listed.lines().filter(|line| line.starts_with('?')).count())
}
