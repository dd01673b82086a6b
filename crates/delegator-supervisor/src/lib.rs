//! The only room that spawns.
//!
//! One supervisor process owns one agent: it starts it, reads it, times it, ends it and sweeps what it left.
//!
//! ```text
//! request ─ agent::codex::plan ─▶ LaunchPlan ┐                 ┌─▶ events, stderr (redacted, bounded)
//! variables ─ agent::environment ─▶ env ─────┼─ run::supervise ┼─▶ snapshots, thread id, warnings (Ports)
//! name ─ agent::locate ─▶ program ───────────┘                 └─▶ Ended ◀─ verdict
//! ```
//!
//! * `agent` knows what is special about an agent: its arguments, its environment, where its program is, what it
//!   leaves behind. Pure but for the thin parts that look at the disk.
//! * `process` knows pids: identities that survive their reuse, the tree below us, checked signals.
//! * `run` is the loop: one thread, one `poll`, no timers of its own; every wait has something to wait for. A command
//!   that checks the agent's work is a second run after the first.
//! * `verdict` says how it ended, from facts alone.
//!
//! [`run::supervise`] takes the whole process: it becomes a child subreaper, changes its umask and reaps every child.
//! It belongs into a process of its own, with one thread. (A second one lives for a moment, see `process::cgroup`.)

pub mod agent;
pub mod process;
pub mod run;
pub mod verdict;
