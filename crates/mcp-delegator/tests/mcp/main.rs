//! The program as an MCP server: raw messages over stdio and HTTP in all protocol versions, hostile clients, the official
//! conformance suite, and the clients of the official SDKs.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod api;
mod api_schema;
mod api_stream;
mod attempts;
mod batches;
mod blocking_calls;
mod browsers;
mod client;
mod codex_compat;
mod confirmation;
mod conformance_suite;
mod failed_runs;
mod hostile_clients;
mod http;
mod http_client;
mod http_hostile_clients;
mod http_tasks;
mod http_waits;
mod idempotency;
mod long_queues;
mod markdown;
mod messages;
mod paths;
mod plain_agents;
mod questions;
mod reflection;
mod resources_and_prompts;
mod sdks;
mod shutdown;
mod size_limits;
mod task_handles;
mod tools;
mod validation;
mod workflow;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
