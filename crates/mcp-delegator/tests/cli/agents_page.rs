//! `docs/agents.md`, generated from the capabilities of the agents.

use delegator_domain::agents::{AgentKind, AgentProtocol, BUILT_IN_AGENTS};
use delegator_testkit::generated::assert_up_to_date;
use mcp_delegator::commands::doctor::agent_table::Abilities;

#[test]
fn the_page_of_agents_is_up_to_date() {
    assert_up_to_date("docs/agents.md", &page());
}

fn page() -> String {
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

`mcp-delegator agents` lists which agents are installed, their versions and whether they are signed in. A task runs on the agent that it names
(`--agent claude`), or else on your default agent, which `mcp-delegator agents use claude` chooses (`default_agent`). Without a choice that is Codex or, if it
is not installed, the first installed agent of the table that is not known to be signed out. A list is an order of preference: `--agent codex --agent
claude` runs Claude Code if Codex cannot be started, is not signed in or is out of usage, and only if Codex has done nothing yet.

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
