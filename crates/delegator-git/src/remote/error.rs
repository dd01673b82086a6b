//! Why a repository elsewhere could not be used.

use crate::error::GitError;

/// Why a repository elsewhere could not be used. Messages never contain credentials.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("'{url}' cannot be used as a repository: {problem}")]
    InvalidUrl { url: String, problem: &'static str },
    #[error("could not {doing} {url}: {message}")]
    Failed { doing: &'static str, url: String, message: String },
    #[error("{url} has no branch, tag or commit '{revision}'")]
    NoRevision { url: String, revision: String },
    #[error("{url} has no default branch; name a branch in the environment")]
    NoDefaultBranch { url: String },
    #[error("{url} has no commits")]
    Empty { url: String },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RemoteError {
    pub fn is_cancelled(&self) -> bool {
        matches!(self, RemoteError::Git(GitError::Cancelled { .. }))
    }
}
