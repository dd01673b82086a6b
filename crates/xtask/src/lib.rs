//! Load tests, the kill loop and the race, run against the real program in a test bed of its own; its weight, site and
//! packages.
//!
//! ```text
//! cargo xtask load TIER ─▶ programs (built) ─▶ testbed (a state directory, agents, a clean environment)
//!                            ├─ servers: processes that embed the engine, driven over pipes
//!                            ├─ cold command-line calls
//!                            └─▶ figures: value, bound, verdict; median of the runs
//! cargo xtask kills      ─▶ the same, with SIGKILL at seeded moments ─▶ what was lost, duplicated or left behind
//! cargo xtask race       ─▶ this program and its peers from package registries ─▶ docs/reports/performance.md
//! cargo xtask weight     ─▶ lines, files and public items of each crate ─▶ docs/reports/benchmarks.md
//! mdBook ─▶ cargo xtask book-pages ─▶ pages with the links of the site
//! cargo xtask dist       ─▶ archives, packages, catalogues and checksums ─▶ target/dist-out
//! ```
//!
//! Every figure is read afterwards from the registry, the tasks' files or `/proc`, never from the program's own claims.
//! Every loop is bounded in count and in time. A test bed always kills every process that carries its home directory.

mod book_pages;
mod cli;
mod clock;
mod deadline;
pub mod dist;
mod dist_cli;
mod engine_calls;
mod error;
mod event_numbers;
mod figures;
pub mod kills;
mod machine;
mod processes;
mod programs;
mod race;
mod race_cli;
mod server;
mod testbed;
mod tiers;
mod weight;

pub use cli::run;
pub use deadline::Deadline;
pub use error::LoadError;
pub use figures::{Bound, Figure, Report};
pub use programs::Programs;
pub use server::process::{SERVE, serve};
