//! The command line as people and scripts use it: arguments, configuration, answers in every envelope, errors and their
//! remedies, help, completions and screens.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod agents;
mod agents_page;
mod broken_config;
mod command_line;
mod command_specs;
mod completions;
mod config;
mod config_edit;
mod contract;
mod doctor;
mod edge_cases;
mod environments;
mod error_codes;
mod error_context;
mod field_names;
mod import;
mod init;
mod last_task;
mod reference;
mod remedies;
mod screens;
mod setup;
mod status_sections;
mod watch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
