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
pub mod error;
pub mod hosts;
pub mod internal_modes;
pub mod interrupt;
pub mod logging;
pub mod mcp;
pub mod outcome;
pub mod payload;
pub mod presentation;
pub mod process;
pub mod requests;
pub mod run;
pub mod screen;
pub mod spec;
pub mod stdout;
pub mod tail;
pub mod transcript_source;
pub mod truncate;
pub mod views;
