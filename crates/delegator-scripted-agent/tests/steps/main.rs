//! Every step, played by the real program.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod agent;
mod demo;
mod invocation;
mod noise;
mod processes;
mod speech;
mod streams;
