//! Repositories elsewhere: a cached mirror of each, checkouts of their commits, and pushes.
//!
//! ```text
//! RemoteUrl ─▶ Mirror (bare, locked) ─ resolve ─▶ BaseCommit ─ check_out ─▶ a work tree with a git directory of its own
//! ```
//!
//! Only these calls reach the network. They use the user's own git configuration for credentials, proxies and ssh, but
//! nothing that a repository configures, and they never wait for input: without a terminal prompt and with ssh in batch
//! mode a missing credential is an error. The URL reaches git through its environment, so that credentials in it are
//! neither in a file nor in the list of processes.

mod access;
mod checkout;
mod lock;
mod mirror;
mod refs;
mod url;

pub use access::RemoteAccess;
pub use mirror::{BaseCommit, Mirror, delete_unused_mirrors};
pub(crate) use refs::is_object_id;
pub use url::RemoteUrl;

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
