//! Real agents against fake models on a loopback port. Covers what the scripted agent cannot: the behaviour of the agents
//! themselves.
//!
//! `scripts/install-codex`, `scripts/install-hosts` and `scripts/install-agents` install them into `.tools/`. Without them these
//! tests fail; they do not skip.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod agent_kinds;
mod app_server_tasks;
mod claude_tasks;
#[path = "../mcp/client.rs"]
#[expect(dead_code, reason = "the tests need only a part of the client")]
mod client;
mod codex_hidden_state;
mod codex_tasks;
mod endings;
mod every_agent;
mod live_world;
mod sandboxes;
mod worktrees;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
