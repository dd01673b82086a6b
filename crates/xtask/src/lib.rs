//! Load tiers and the kill loop: the real program, many times, in a world of its own.
//!
//! ```text
//! cargo xtask load TIER ─▶ programs (built) ─▶ stage (a state directory, agents, a clean environment)
//!                            ├─ servers: processes that embed the engine, driven over pipes
//!                            ├─ cold command-line calls
//!                            └─▶ figures: value, bound, verdict; median of the runs
//! cargo xtask kills      ─▶ the same, with SIGKILL at seeded moments ─▶ what was lost, doubled or left
//! ```
//!
//! Nothing is believed that was not read afterwards: from the registry, from the tasks' own files, from `/proc`. Every
//! loop has an end in count and in time. Whatever happens, a stage ends every process that carries its home directory.

mod cli;
mod clock;
mod deadline;
mod engine_calls;
mod error;
mod event_numbers;
mod figures;
pub mod kills;
mod machine;
mod processes;
mod programs;
mod server;
mod testbed;
mod tiers;

pub use cli::run;
pub use deadline::Deadline;
pub use error::LoadError;
pub use figures::{Bound, Figure, Report};
pub use programs::Programs;
pub use server::process::{SERVE, serve};
