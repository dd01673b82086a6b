//! Vocabulary and law: what a task, an error and a secret are, and the pure decisions about them.
//!
//! This room touches nothing: no files, no clock, no environment, no processes.

pub mod crash;
pub mod history_rewriting;
pub mod loader_variables;
pub mod redact;
pub mod similar_names;
pub mod task;
pub mod terminal;
