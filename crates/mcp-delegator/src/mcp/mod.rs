//! The server: the same commands as MCP tools, and over HTTP also behind paths.
//!
//! ```text
//! transport/stdio ─┐             ┌ tools            admit ▸ confirm ▸ run (▸ wait) ▸ render ▸ redact
//!                  ├─ server ────┤ tasks_extension  handles for runs and waits that outlive the server
//! transport/http ──┘  (rmcp)     ├ codex_compat     the two tools of Codex's former server
//!                                └ resources, prompts, instructions
//!                         api    the commands behind paths, for pages and scripts
//!                         pages  the dashboard; dashboard serves and opens it, sign_in has its sessions
//! ```
//!
//! Handlers are synchronous and short; they run on the runtime's blocking threads and never wait there: one
//! thread watches all tasks for all calls. An error in a call, a panic included, becomes the response of that
//! call, and the server keeps running. Only the transport writes to stdout.

pub mod api;
pub mod codex_compat;
pub mod dashboard;
pub mod instructions;
pub mod pages;
pub mod prompts;
pub mod resources;
pub mod serve;
pub mod server;
pub mod sign_in;
pub mod tasks_extension;
pub mod tools;
pub mod transport;

use crate::error::{AppError, io_error};

/// A request of a client, and the connection that it came from.
pub type RequestContext = rmcp::service::RequestContext<rmcp::RoleServer>;

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
