//! The agents: the protocols that exist, the built-in agent, and an agent as the user's configuration defines it.
//!
//! A protocol decides how a program is started, fed and understood; `delegator-supervisor` implements each. To add one, begin
//! with a variant here: see `docs/adding-an-agent.md`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

/// The built-in agent. A task that names no agent runs it.
pub const BUILT_IN_AGENT: &str = "codex";

/// The protocol of the built-in agent.
pub const BUILT_IN_PROTOCOL: AgentProtocol = AgentProtocol::CodexExec;

named_enum! {
    /// How an agent is started and what it reads and prints.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AgentProtocol {
        /// `codex exec --json`: the task on stdin, Codex exec events on stdout.
        CodexExec = "codex-exec",
        /// Any program: the task on stdin, lines of text on stdout, the exit code decides.
        Plain = "plain",
    }
}

/// An agent of the user's configuration, or the built-in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredAgent {
    pub name: String,
    pub protocol: AgentProtocol,
    /// A bare name or an absolute path.
    pub program: PathBuf,
    /// Arguments before those of the protocol.
    pub args: Vec<String>,
    /// Variables passed to the agent in addition to the built-in list.
    pub variables: Vec<String>,
    /// The user accepts that no sandbox enforces the mode of its tasks.
    pub unsandboxed: bool,
    /// Directories in which it may write in every mode.
    pub state_dirs: Vec<PathBuf>,
}
