//! The user's repository: where it is, its HEAD, refs, configuration and author, and our store inside it.
//!
//! Only refs and HEAD are read and changed here, with plumbing commands that run nothing that the repository
//! configures.

mod config;
mod git_settings;
mod locate;
mod store;

pub(crate) use config::{GitConfig, author};
pub use git_settings::{GitSettings, protected_settings};
pub(crate) use locate::{ConfigurationStamps, Opened, git_config, open};
pub use locate::{Head, Repository, find_repository};
pub(crate) use store::{
    MERGED, MergedPoint, MergedPoints, PackFile, Store, UNREADABLE, add, end_name, point_name,
};
