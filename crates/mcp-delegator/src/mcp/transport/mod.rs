//! How messages arrive and leave: newline-delimited JSON on stdio, streamable HTTP, and the limits of both.

pub mod backlog;
pub mod decode;
pub mod http;
pub mod listeners;
mod recover;
pub mod stdio;
