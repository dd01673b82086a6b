//! The MCP server: the same commands as tools.
//!
//! ```text
//! stdio ─┐             ┌ toolbox       which tools are served, under which names
//!        ├─ server ────┤ call_handler  admit ▸ confirm ▸ run (or begin ▸ wait ▸ end) ▸ server_state: render ▸ redact
//! http ──┘  (rmcp)     ├ waiting       all waits on one thread, progress notifications
//!                      ├ handles       the tasks extension; handle_status: the registry's state of a handle
//!                      ├ codex_compat  the two tools of Codex's former server
//!                      └ resources, prompts, confirmation
//! decode: parses a line of stdin; recover: finds the id in a line that is not valid JSON
//! listeners: whether a client is connected to receive a response
//! ```
//!
//! Handlers are synchronous and short; they run on the runtime's blocking threads and never wait there: one thread
//! watches all tasks for all calls. An error in a call, a panic included, becomes the response of that call, and the
//! server keeps running. Only the transport writes to stdout. `fixtures` serves the official conformance suite and is
//! never part of a release.

pub mod codex_compat;
#[cfg(feature = "conformance-fixtures")]
pub mod fixtures;
pub mod instructions;
pub mod prompts;
pub mod resources;
pub mod serve;
pub mod server;
pub mod tasks_extension;
pub mod tools;
pub mod transport;

use crate::error::{AppError, io_error};

/// Calls that execute at the same time. Waiting calls do not count: one thread serves all of them.
const MAX_BLOCKING_THREADS: usize = 32;

/// One thread for the protocol; blocking work runs on the blocking threads.
fn runtime() -> Result<tokio::runtime::Runtime, AppError> {
    tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| io_error("Starting the server", &error))
}
