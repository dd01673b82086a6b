//! Runs agents: the only crate that spawns them. One supervisor process owns one run.
//!
//! It starts the agent, reads its output, enforces its limits, ends it and sweeps every process it left
//! behind.
//!
//! ```text
//! request ─ Agent::plan ─▶ LaunchPlan ────┐                 ┌─▶ events, stderr (redacted, bounded)
//! variables ─ agent::environment ─▶ env ──┴─ run::supervise ┼─▶ snapshots, thread id, warnings (Ports)
//!                                                           └─▶ RunResult ◀─ verdict
//! ```
//!
//! [`run::supervise`] takes over the whole process: it becomes a child subreaper, changes its umask and reaps
//! every child. Call it only from a process of its own with a single thread. (A second thread lives briefly,
//! see `process::cgroup`.) The supervision loop has one `poll` and no timers.

pub mod agent;
pub mod conversation;
pub mod enclosure;
mod ending;
mod poll_fds;
pub mod process;
mod program;
pub mod run;
pub mod setup_script;
mod variables;
pub mod verdict;
