//! The MCP face: the same commands as tools.
//!
//! ```text
//! stdio ─┐             ┌ toolbox   which tools, under which names
//!        ├─ server ────┤ answering admit ▸ confirm ▸ run (or begin ▸ wait ▸ end) ▸ call: render ▸ redact
//! http ──┘  (rmcp)     ├ staying   many waits, one thread, progress
//!                      ├ handles   the tasks extension; projection: what the registry says of a handle
//!                      ├ codex_compat  the two tools of Codex's own former server
//!                      └ resources, prompts, confirmation
//! hearing: what a line on stdin means; salvage: what is left of one that means nothing
//! audience: whether anybody listens to an answer
//! ```
//!
//! Handlers are synchronous and short; they run on the runtime's blocking threads. Waiting is never done there: one
//! resident thread watches all tasks for all calls. Whatever goes wrong in a call, a panic included, is an answer of
//! that call, and the server lives on. Nothing here writes to stdout but the transport. `fixtures` is for the official
//! conformance suite and in no release.

pub mod advice;
pub mod backlog;
pub mod call_handler;
pub mod codex_compat;
pub mod confirmation;
mod confirmation_text;
pub mod decode;
#[cfg(feature = "conformance-fixtures")]
pub mod fixtures;
pub mod handle_requests;
pub mod handle_status;
pub mod handles;
pub mod http;
pub mod instructions;
pub mod listeners;
pub mod params_check;
pub mod prompts;
mod recover;
pub mod resources;
pub mod server;
pub mod server_state;
pub mod stdio;
pub mod token;
pub mod toolbox;
pub mod waiting;

use crate::error::{AppError, io_error};

/// Calls that work at once. Waits are none of them: those stay with one thread.
const MAX_BLOCKING_THREADS: usize = 32;

/// One thread for the protocol; whatever may block is done beside it.
fn runtime() -> Result<tokio::runtime::Runtime, AppError> {
    tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| io_error("Starting the server", &error))
}
