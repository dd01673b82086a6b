//! The operations on the registry: one file per operation, one transaction per change.
//!
//! A change is applied only if the task is in the expected state; otherwise the result reports the actual
//! state.

pub(crate) mod agent_pauses;
pub(crate) mod attempt;
pub(crate) mod chain;
pub(crate) mod claim;
pub(crate) mod end;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod leftovers;
pub(crate) mod list;
pub(crate) mod messages;
pub(crate) mod notes;
pub(crate) mod notifications;
pub(crate) mod prune;
pub(crate) mod queries;
#[cfg(test)]
mod query_plan_tests;
pub(crate) mod questions;
pub(crate) mod remote;
pub(crate) mod restore_points;
pub(crate) mod submit;
pub(crate) mod usage;
pub(crate) mod worktrees;
