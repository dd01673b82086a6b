//! Parses the command line into a call. It validates nothing and runs nothing.

pub mod argv;
pub mod globals;
pub mod help;
pub mod path;
pub mod tree;
pub mod unknown_command;
