//! What a user does with the changes of a task: show, apply, discard or revert them. Nothing is written where
//! another task may write.

pub(crate) mod apply;
mod compare;
pub(crate) mod list_worktrees;
pub(crate) mod restore;
mod restore_settings;
pub(crate) mod worktrees;
