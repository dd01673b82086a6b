//! A server: a long-lived process that embeds the engine and handles many requests at once.
//!
//! It reads its [`ServerConfig`] and then requests from stdin, one JSON line each, and writes responses to stdout in
//! the order of completion. It stands for any front end that embeds the engine.

pub(crate) mod handle;
pub(crate) mod process;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first line a server reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerConfig {
    pub(crate) state_dir: PathBuf,
    /// The program that supervisors are started from.
    pub(crate) program: PathBuf,
    pub(crate) slots: usize,
    pub(crate) project: PathBuf,
    /// Seconds after SIGINT, and after SIGTERM.
    pub(crate) graces: (u64, u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    id: u64,
    action: Action,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Submit { agent: PathBuf, text: String, key: Option<String> },
    Wait { task: String, limit_ms: u64 },
    Cancel { task: String, limit_ms: u64 },
    Status,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Response {
    id: u64,
    reply: Reply,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Submitted { task: String, queue_position: u64 },
    State(String),
    Status { running: u64, queued: u64 },
    Failed(String),
}
