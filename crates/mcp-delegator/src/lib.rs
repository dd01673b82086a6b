//! mcp-delegator: delegate coding tasks to coding agents and verify the result.
//!
//! The modules depend on each other in one direction only, from left to right:
//!
//! ```text
//! app → mcp → commands → input, output → spec → error
//! ```
//!
//! A request is parsed and validated by `input`, handled by one file of `commands`, ends in an outcome, and is rendered and
//! written by `output`. `mcp` offers the same commands as tools; `app` wires everything together.

pub mod app;
pub mod commands;
pub mod error;
pub mod input;
pub mod mcp;
pub mod output;
pub mod spec;
