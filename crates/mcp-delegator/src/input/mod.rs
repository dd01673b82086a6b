//! From raw input to a validated request.
//!
//! The command line and MCP tool calls both become one JSON object (`argv`, `stdin`). `validation` checks it against the
//! command's input schema and reports all problems at once; `preflight` checks it against the configuration and the file
//! system. Nothing here runs a command or prints.

pub mod agent_selection;
pub mod argv;
pub mod attempts;
pub mod chain;
pub mod globals;
pub mod guess;
pub mod help;
pub mod path;
pub mod preflight;
pub mod stdin;
pub mod tree;
pub mod unknown_command;
pub mod validation;
