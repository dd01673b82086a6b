//! The user's repository: where it is, its HEAD, refs, configuration and author, and our store inside it.
//!
//! Only refs and HEAD are read and changed here, with plumbing commands that run nothing that the repository configures.

mod author;
mod config;
mod git_settings;
mod locate;
mod open;
mod store;

pub(crate) use author::author;
pub(crate) use config::{Settings, read_settings};
pub use git_settings::{GitSettings, protected_settings};
pub use locate::{Head, Repository, find_repository};
pub(crate) use locate::{git_config, operations_in_progress};
pub(crate) use open::{ConfigurationStamps, Opened, open};
pub(crate) use store::{
    MERGED, MergedPoint, MergedPoints, PackFile, Store, UNREADABLE, add, end_name, safe_name,
};
