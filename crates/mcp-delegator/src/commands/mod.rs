//! The commands: one file per command, with its inputs, spec, handler and document.

pub mod blocking;
pub mod cancel;
pub mod cleanup_registry;
pub mod cloud;
pub mod completions;
pub mod config_show;
pub mod context;
pub mod declared;
pub mod demo;
pub mod doctor;
pub mod env;
pub mod events;
pub mod help;
pub mod import;
pub mod inputs;
pub mod local;
pub mod logs;
pub mod man;
pub mod manifest;
pub mod queue;
pub mod restore;
pub mod retry;
pub mod schema;
pub mod setup;
pub mod version;
