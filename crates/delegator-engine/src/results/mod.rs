//! Queries about tasks, and import of sessions that no task ran. Most queries first make an upkeep
//! pass, so that a task whose supervisor died is not reported as running.

pub(crate) mod attention;
pub(crate) mod event_range;
pub(crate) mod groups;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod overview;
pub(crate) mod task_queries;
