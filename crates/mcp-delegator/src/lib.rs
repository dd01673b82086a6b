//! mcp-delegator: hand coding tasks to coding agents and rely on what comes back.
//!
//! This crate holds the front doors and the faces. A call comes in as words or JSON (`cli`, `requests`), is checked
//! against its one definition (`registry`, `commands`), ends in one `Outcome`, and leaves through pure renderers
//! (`views`) and the one printer (`stdout`). `run` wires them together.

pub mod cli;
pub mod commands;
#[cfg(debug_assertions)]
pub mod crash;
pub mod environment_template;
pub mod fault;
pub mod fitting;
pub mod hosts;
pub mod interrupt;
pub mod logging;
pub mod mcp;
pub mod other_lives;
pub mod outcome;
pub mod payload;
pub mod presentation;
pub mod process;
pub mod registry;
pub mod requests;
pub mod run;
pub mod screen;
pub mod stdout;
pub mod tail;
pub mod transcript_source;
pub mod views;
