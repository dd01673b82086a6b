//! Tasks that a provider runs elsewhere.
//!
//! ```text
//! submit_remote ─▶ row ─▶ provider accepts ─▶ row has the provider's id
//! wait, status, results ─▶ refresh ─▶ provider reports ─▶ row, report.json, diff
//! logs, follow, progress ─▶ event_mirror ─▶ events file, snapshot
//! ```
//!
//! The registry has a row for each of them, which records what the provider last reported, and a task
//! directory for the report, the diff and the events. So every query reads local and remote tasks with the
//! same code. Nothing runs in the background: a query first asks the provider, unless it did so a short time
//! ago.
//!
//! [`provider`] is the port to the providers, [`codex_cloud`] implements it for hosted Codex.
//! `delegator-worker` implements it for our own workers.

pub(crate) mod codex_cloud;
pub(crate) mod event_fold;
pub(crate) mod event_mirror;
pub(crate) mod follow;
pub(crate) mod provider;
pub(crate) mod refresh;
pub(crate) mod submit_remote;
