//! The command line: words in, a call out. It decides nothing; it only reads.

pub mod argv;
pub mod globals;
pub mod help;
pub mod path;
pub mod tree;
pub mod unknown_command;
