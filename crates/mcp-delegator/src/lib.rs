//! mcp-delegator: delegate coding tasks to coding agents and verify the result.
//!
//! The modules depend on each other in one direction only, from left to right:
//!
//! ```text
//! app → mcp, watch → commands → input, output → spec → error
//! ```

pub mod app;
pub mod commands;
pub mod error;
pub mod input;
pub mod mcp;
pub mod output;
pub mod spec;
pub mod watch;
