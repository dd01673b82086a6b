//! A server: a process that lives long, embeds the engine and is asked many things at once.
//!
//! It reads its [`Setting`] and then requests from stdin, one JSON line each, and answers on stdout in the order in which
//! it is done. It stands for whatever front door embeds the engine.

pub(crate) mod handle;
pub(crate) mod process;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerConfig {
    pub(crate) state_dir: PathBuf,
    /// What supervisors are started from.
    pub(crate) program: PathBuf,
    pub(crate) slots: usize,
    pub(crate) project: PathBuf,
    /// Seconds after SIGINT, and after SIGTERM.
    pub(crate) graces: (u64, u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    n: u64,
    act: Action,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Submit { agent: PathBuf, text: String, key: Option<String> },
    Wait { task: String, at_most_ms: u64 },
    Cancel { task: String, at_most_ms: u64 },
    Status,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Response {
    n: u64,
    said: Reply,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Submitted { task: String, queue_position: u64 },
    State(String),
    Status { running: u64, queued: u64 },
    Failed(String),
}
