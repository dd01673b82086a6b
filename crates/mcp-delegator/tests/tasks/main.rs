//! Tasks of scripted agents: from submission to result, in queues and batches, with several programs at once, and when a
//! program dies.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod agent_environment;
mod agent_fallback;
mod attempts;
mod batches;
mod budgets;
mod chains;
mod concurrent_servers;
mod crashes;
mod enclosure;
mod events;
mod evidence;
mod history;
mod idle_agents;
mod interrupted_writes;
mod lifecycle;
mod live_notifications;
mod lost_supervisors;
mod nesting;
mod notifications;
mod plain_agents;
mod project_limits;
mod questions;
mod queue;
mod salvage;
mod scripted;
mod secrets;
mod several_directories;
mod shared_waits;
mod signals;
mod supervisors;
mod test_results;
mod usage_and_estimates;
mod verify;
mod wait_progress;
mod worktrees;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
