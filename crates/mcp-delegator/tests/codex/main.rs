//! The real Codex against a fake model on a loopback port. Covers what the scripted agent cannot: the behaviour of Codex
//! itself.
//!
//! `scripts/install-codex` installs Codex into `.tools/`. Without it these tests fail; they do not skip.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod hidden_state;
mod tasks;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
