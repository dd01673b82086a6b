//! The program as an MCP server, talked to as hosts talk to it: raw messages over its stdio and its HTTP face, in both
//! eras of the protocol; rude peers; the official conformance suite; the SDKs' own clients.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

mod codex_compat;
mod confirmation;
mod conformance_suite;
mod endings;
mod failures;
mod handles;
mod host;
mod http;
mod http_host;
mod http_rude;
mod http_waits;
mod paths;
mod reading;
mod refusals;
mod repeats;
mod rude;
mod sdks;
mod sizes;
mod staying;
mod telling;
mod tools;
mod workflow;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
