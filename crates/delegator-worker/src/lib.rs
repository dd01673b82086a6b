//! The fleet of our own machines: the worker, which claims tasks and runs them on this machine, and the
//! provider through which the engine submits tasks to it. The database is in `delegator-fleet`.
//!
//! ```text
//! session: wait for the database ─▶ open ─▶ heartbeat, claim ─▶ … ─▶ drain ─▶ close
//! attempt: claim ─▶ checkout ─▶ start ─▶ setup ─▶ submit here ─▶ events ─▶ diff, result ─▶ finish
//! ```
//!
//! One thread runs the session (`session`), one watches the cutoff, and each attempt has a thread. The task
//! itself runs through the registry and supervisor of this machine, so it survives this process: a restarted
//! worker submits the same idempotency key and finds it again. What a worker does with a heartbeat is decided
//! in `decisions`, without I/O.

mod attempt;
mod attempt_control;
mod decisions;
mod finish;
mod fleet_result;
mod following;
mod local_tasks;
mod port;
mod preparation;
mod provider;
mod pruning;
mod run_attempt;
mod run_worker;
mod session;
mod setup;
#[cfg(test)]
mod tests;
mod worker_state;
mod workspace;

pub use fleet_result::FleetResult;
pub use port::{LocalRequest, StopSignals, WorkerError, WorkerEvent, WorkerPort, WorkerSettings};
pub use provider::FleetProvider;
pub use run_worker::run_worker;
pub use workspace::{Workspace, WorkspaceError};
