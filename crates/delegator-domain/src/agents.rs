//! The agents: the protocols that exist, the built-in agents, and an agent as the user's configuration
//! defines it.
//!
//! A protocol decides how a program is started, fed and understood; `delegator-supervisor` implements each.
//! To add one, begin with a variant here: see `docs/adding-an-agent.md`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

/// A task that names no agent runs this one.
pub const DEFAULT_AGENT: &str = "codex";

/// The default agent's program as a server that takes messages.
pub const LIVE_AGENT: &str = "codex-app-server";

pub const DEFAULT_PROTOCOL: AgentProtocol = AgentProtocol::CodexExec;

/// An agent that needs no configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltInAgent {
    pub name: &'static str,
    pub protocol: AgentProtocol,
    /// Looked up on PATH. The program of the default agent is configured by a key of its own.
    pub program: &'static str,
}

/// The default agent first.
pub const BUILT_IN_AGENTS: &[BuiltInAgent] = &[
    BuiltInAgent { name: DEFAULT_AGENT, protocol: DEFAULT_PROTOCOL, program: "codex" },
    BuiltInAgent { name: LIVE_AGENT, protocol: AgentProtocol::CodexAppServer, program: "codex" },
    BuiltInAgent { name: "claude", protocol: AgentProtocol::ClaudeStream, program: "claude" },
    BuiltInAgent { name: "gemini", protocol: AgentProtocol::Acp, program: "gemini" },
    BuiltInAgent { name: "opencode", protocol: AgentProtocol::Acp, program: "opencode" },
    BuiltInAgent { name: "goose", protocol: AgentProtocol::Acp, program: "goose" },
    BuiltInAgent { name: "qwen", protocol: AgentProtocol::Acp, program: "qwen" },
    BuiltInAgent { name: "copilot", protocol: AgentProtocol::Acp, program: "copilot" },
    BuiltInAgent { name: "kimi", protocol: AgentProtocol::Acp, program: "kimi" },
    BuiltInAgent { name: "cline", protocol: AgentProtocol::Acp, program: "cline" },
    BuiltInAgent { name: "claude-acp", protocol: AgentProtocol::Acp, program: "claude-agent-acp" },
    BuiltInAgent { name: "codex-acp", protocol: AgentProtocol::Acp, program: "codex-acp" },
];

pub fn built_in_agent(name: &str) -> Option<&'static BuiltInAgent> {
    BUILT_IN_AGENTS.iter().find(|agent| agent.name == name)
}

named_enum! {
    /// How an agent is started and what it reads and prints.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AgentProtocol {
        /// `codex exec --json`: the task on stdin, Codex exec events on stdout.
        CodexExec = "codex-exec",
        /// `codex app-server`: JSON-RPC over stdin and stdout.
        CodexAppServer = "codex-app-server",
        /// Any program: the task on stdin, lines of text on stdout, the exit code decides.
        Plain = "plain",
        /// A program that reads messages and prints events as JSON lines, and reports when it is idle.
        IdleJsonl = "idle-jsonl",
        /// Claude Code with `stream-json` in both directions.
        ClaudeStream = "claude-stream",
        /// The Agent Client Protocol: JSON-RPC over stdin and stdout.
        Acp = "acp",
    }
}

/// What decides how an agent is run: its protocol and, among the agents of one protocol, its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentKind<'a> {
    pub name: &'a str,
    pub protocol: AgentProtocol,
}

/// An agent of the user's configuration, or a built-in one.
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
    /// How long it may wait for another message after its last turn.
    pub linger: Duration,
    /// Answers its tool calls: a bare name or an absolute path, and arguments. Empty: the user does.
    pub tool_command: Vec<String>,
}

impl ConfiguredAgent {
    pub fn kind(&self) -> AgentKind<'_> {
        AgentKind { name: &self.name, protocol: self.protocol }
    }
}
