//! The program as an MCP server, talked to as hosts talk to it: raw messages over its stdio and its HTTP face, in both
//! eras of the protocol; rude peers; the official conformance suite; the SDKs' own clients.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

mod blocking_calls;
mod client;
mod codex_compat;
mod confirmation;
mod conformance_suite;
mod failed_runs;
mod hostile_clients;
mod http;
mod http_client;
mod http_hostile_clients;
mod http_waits;
mod idempotency;
mod markdown;
mod paths;
mod resources_and_prompts;
mod sdks;
mod shutdown;
mod size_limits;
mod task_handles;
mod tools;
mod validation;
mod workflow;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
