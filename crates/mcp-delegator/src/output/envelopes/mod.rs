//! The JSON around a response: one renderer per envelope, and the published schemas they are checked against.

pub mod cli;
pub mod schema;
pub mod standard;
pub mod tool;
