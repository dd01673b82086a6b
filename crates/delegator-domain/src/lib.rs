//! Domain types and rules: tasks and their lifecycle, the attention they need, agents, their messages and questions, environments,
//! notifications, queue conflicts, redaction of secrets, name suggestions, text sanitising.
//!
//! Everything here is pure: no files, no clock, no environment, no processes.

pub mod agents;
pub mod attention;
pub mod budget;
pub mod crash;
pub mod environment;
pub mod event_page;
pub mod history_rewriting;
pub mod loader_variables;
pub mod message;
mod named_enum;
pub mod notification;
pub mod question;
pub mod redact;
pub mod similar_names;
pub mod task;
pub mod terminal;
pub mod text;
pub mod warning_code;
