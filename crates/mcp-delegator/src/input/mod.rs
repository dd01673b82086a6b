//! From raw input to a validated request.
//!
//! The command line and MCP tool calls both become one JSON object (`argv`, `stdin`). `validation` checks it
//! against the command's input schema, parses it into the command's input type, applies the rules of that
//! type and reports all problems at once. Nothing here runs a command or prints.

pub mod agent_selection;
pub mod argv;
pub mod globals;
pub mod guess;
pub mod help;
pub mod path;
pub mod stdin;
pub mod tree;
pub mod unknown_command;
pub mod validation;
pub mod value_flags;
