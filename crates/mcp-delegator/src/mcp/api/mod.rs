//! The HTTP API: the commands behind paths, on the server that also serves MCP.
//!
//! ```text
//! gate, authorise ▸ routes (method and path ▸ command, query and body ▸ input) ▸ scope ▸ admit ▸ run ▸ envelope
//!                                                                    └ stream: live view ▸ server-sent events
//! ```
//!
//! A request is validated, run and answered like a call of the same command on the command line: its body is the
//! CLI envelope. An error is a problem document. What changes something leaves a line in the audit file.

mod audit;
mod handler;
mod openapi;
mod problem;
pub mod queries;
pub mod routes;
mod session;
mod stream;

pub use audit::{Audit, AuditLine};
pub use handler::{Api, refusal, too_many};
