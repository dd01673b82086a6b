//! What is known of each agent: whether it is installed and signed in, and what it can do.

use crate::commands::prelude::*;

use delegator_domain::agents::{AgentKind, AgentProtocol, BUILT_IN_AGENTS, ConfiguredAgent};
use delegator_engine::{Capabilities, MessageSupport, UsageScope};

/// One agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentRow {
    pub name: String,
    pub protocol: &'static str,
    pub is_installed: bool,
    /// Absent if it is not installed or does not report it.
    pub version: Option<String>,
    /// Absent if that cannot be known without the network.
    pub is_signed_in: Option<bool>,
    /// Whether a task can run on it, as far as that is known.
    #[serde(skip)]
    pub is_usable: bool,
    #[serde(flatten)]
    pub abilities: Abilities,
}

/// What an agent can do.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Abilities {
    /// What enforces the mode of its tasks: `agent`, `enforced` (by us) or `none`.
    pub sandbox: &'static str,
    /// Whether a later task can continue its thread.
    pub is_resumable: bool,
    /// When it takes messages: `never`, `next_turn` or `running_turn`.
    pub messages: &'static str,
    /// What its token counts cover: `none`, `turn`, `last_call` or `thread`.
    pub usage: &'static str,
    pub has_cost: bool,
    pub has_plan: bool,
    pub has_exit_codes: bool,
}

impl Abilities {
    pub fn of(agent: AgentKind<'_>, unsandboxed: bool) -> Abilities {
        let capabilities = Capabilities::of(agent);
        Abilities {
            sandbox: capabilities.sandbox_of(Mode::default(), unsandboxed).name(),
            is_resumable: capabilities.threads,
            messages: match capabilities.messages {
                MessageSupport::None => "never",
                MessageSupport::NextTurn => "next_turn",
                MessageSupport::RunningTurn => "running_turn",
            },
            usage: match capabilities.usage {
                UsageScope::None => "none",
                UsageScope::Turn => "turn",
                UsageScope::LastCall => "last_call",
                UsageScope::Thread => "thread",
            },
            has_cost: capabilities.cost,
            has_plan: capabilities.plan,
            has_exit_codes: capabilities.exit_codes,
        }
    }
}

impl AgentRow {
    pub fn missing(agent: &ConfiguredAgent) -> AgentRow {
        AgentRow {
            name: agent.name.clone(),
            protocol: agent.protocol.name(),
            is_installed: false,
            version: None,
            is_signed_in: None,
            is_usable: false,
            abilities: Abilities::of(agent.kind(), agent.unsandboxed),
        }
    }
}

/// `docs/agents.md`.
pub fn page() -> String {
    let built_in = BUILT_IN_AGENTS.iter().map(|agent| {
        let kind = AgentKind { name: agent.name, protocol: agent.protocol };
        format!("| `{}` | `{}` {}", agent.name, agent.protocol.name(), cells(&Abilities::of(kind, false)))
    });
    let own = [AgentProtocol::Plain, AgentProtocol::IdleJsonl, AgentProtocol::Acp].map(|protocol| {
        let abilities = Abilities::of(AgentKind { name: "", protocol }, false);
        format!("| your own | `{}` {}", protocol.name(), cells(&abilities))
    });
    let rows: String = built_in.chain(own).map(|row| format!("{row}\n")).collect();
    format!("{BEFORE_TABLE}{rows}{AFTER_TABLE}")
}

fn cells(abilities: &Abilities) -> String {
    let yes_or_no = |value: bool| if value { "yes" } else { "no" };
    let Abilities { sandbox, is_resumable, messages, usage, .. } = abilities;
    format!(
        "| {sandbox} | {} | {messages} | {usage} | {} | {} | {} |",
        yes_or_no(*is_resumable),
        yes_or_no(abilities.has_cost),
        yes_or_no(abilities.has_plan),
        yes_or_no(abilities.has_exit_codes)
    )
}

const BEFORE_TABLE: &str = "# Agents

The table is generated from the capabilities in `crates/delegator-supervisor/src/agent/`; do not edit.

A task runs on `codex` unless it names another agent: `--agent claude`. If Codex is not installed, it runs on the first installed agent of the table
that is not known to be signed out. A list is an order of preference: `--agent codex --agent claude` runs Claude
Code if Codex cannot be started, is not signed in or is out of usage, and only if Codex has done nothing yet. `mcp-delegator doctor` lists
which agents are installed, their versions and whether they are signed in.

| agent | protocol | sandbox | resume | messages | usage | cost | plan | exit codes |
|---|---|---|---|---|---|---|---|---|
";

const AFTER_TABLE: &str = "
- **sandbox**: `agent`: it enforces the mode of a task with its own sandbox. `enforced`: we do, with Landlock or bubblewrap: only the working
  directory, additional directories, a temporary directory and the agent's own files are writable, and in read-only mode only the last two. See [security](../SECURITY.md).
- **resume**: a later task can continue its thread.
- **messages**: when messages (`send`) reach it. `never`: it reads only the task. `next_turn`: when its turn has ended. `running_turn`: also
  with `--now`, into the running turn.
- **usage**: what its token counts cover. `last_call`: only the last call of the model in a turn, which is less than the turn took. `thread`:
  the thread, from which we subtract earlier tasks. Most agents report tokens when a turn ends, so a budget can be exceeded by one turn.
- **cost**, **plan**, **exit codes**: whether it reports them. Changed files are observed by us, whatever an agent reports.

What to know about single agents:

- `gemini` reports the output of commands only with `\"tools\": {\"shell\": {\"enableInteractiveShell\": false}}` in `~/.gemini/settings.json`. A thread that is resumed
  within the clock minute in which it began has lost its history.
- `codex-acp` ends its turn when an edit is refused: a read-only task in which it tries one fails. `copilot`, `qwen` and `opencode` end their turn when you
  refuse something with `--ask`.
- `goose` needs a provider: `goose configure`, or the variables `GOOSE_PROVIDER` and `GOOSE_MODEL` and the provider's key.
- `kimi` needs Node.js 22 or newer.
- `claude-acp` is Claude Code behind an adapter, `codex-acp` is Codex behind one; install `@agentclientprotocol/claude-agent-acp` and `@agentclientprotocol/codex-acp`.

Tool calls of an `idle-jsonl` agent are answered by its `tool_command`, or by you: `answer TASK TEXT`, or in your MCP client.

Agents of your own and changes to built-in ones: [adding an agent](adding-an-agent.md). All keys: [configuration](configuration.md).
";
