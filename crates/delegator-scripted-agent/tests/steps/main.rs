//! Runs every step in the real program.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod agent;
mod bulk_output;
mod codex_events;
mod demo;
mod invocation;
mod processes;
mod streams;
