//! mcp-delegator: delegates coding tasks to coding agents, over a command line and an MCP server.
//!
//! This crate contains input and output; the engine decides. A call arrives as arguments or JSON (`cli`, `requests`), is
//! validated against its command spec (`spec`, `commands`), produces one `Outcome`, and is printed by pure renderers
//! (`views`) and the one printer (`stdout`). `run` connects these steps.

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
