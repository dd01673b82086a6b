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
//! * `variables`, `program`: environment variables; how a program is found and what it is asked before a run.
//! * `agent`: what is specific to an agent: arguments, environment, program path, files it leaves behind.
//!   Pure, except for the small parts that read the disk.
//! * `conversation`: what is written to the agent's standard input, and when. Pure.
//! * `enclosure`: the sandbox of agents that have none of their own.
//! * `process`: process identities that survive pid reuse, the process tree below us, signals that cannot hit
//!   the wrong process.
//! * `run`: the supervision loop. One thread, one `poll`, no timers. A verification command is a second run
//!   after the agent's.
//! * `setup_script`: the script that prepares a checkout for a task of the fleet.
//! * `verdict`: derives how a run ended from recorded facts. Pure.
//!
//! [`run::supervise`] takes over the whole process: it becomes a child subreaper, changes its umask and reaps
//! every child. Call it only from a process of its own with a single thread. (A second thread lives briefly,
//! see `process::cgroup`.)

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
