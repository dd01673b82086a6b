//! Repositories elsewhere: a cached mirror of each, checkouts of their commits, and pushes.
//!
//! ```text
//! RemoteUrl ─▶ Mirror (bare, locked) ─ resolve ─▶ BaseCommit ─ check_out ─▶ a work tree with a git directory of its own
//! ```
//!
//! Only these calls reach the network. They use the user's own git configuration for credentials, proxies and
//! ssh, but nothing that a repository configures, and they never wait for input: without a terminal prompt
//! and with ssh in batch mode a missing credential is an error. The URL reaches git through its environment,
//! so that credentials in it are neither in a file nor in the list of processes.

mod access;
mod checkout;
mod mirror;
mod refs;
mod url;

pub use access::RemoteAccess;
pub use checkout::BaseCommit;
pub use mirror::{Mirror, delete_unused_mirrors};
pub use url::{RemoteError, RemoteUrl};
