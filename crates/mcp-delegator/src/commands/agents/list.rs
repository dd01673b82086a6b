//! `agents`: which agents there are, and what each can do.
//!
//! It knows what `doctor` knows, without the checks.

use crate::commands::doctor::agent_table::AgentRow;
use crate::commands::doctor::agents::examine;
use crate::commands::prelude::*;
use crate::spec::NoInputs;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Agents {
    pub agents: Vec<AgentRow>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "The default agent runs tasks that name none. 'doctor' says what is wrong with an agent.",
    shape: Shape::List("agents"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    examples: &[example("mcp-delegator agents", "which agents are installed and signed in")],
    ..CommandSpec::read_only::<NoInputs, Agents>(&["agents"], "List the agents that tasks can name")
};

pub fn run(context: &Context<'_>, _: NoInputs) -> Result<CommandOutput, AppError> {
    Ok(CommandOutput::done(Agents { agents: examine(context).agents }))
}

impl CommandData for Agents {
    fn document(&self) -> Document {
        let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
        let row = |agent: &AgentRow| {
            let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            vec![
                agent.name.clone(),
                yes(agent.is_installed),
                known(agent.version.clone()),
                known(agent.is_signed_in.map(yes)),
                agent.abilities.sandbox.to_owned(),
                agent.abilities.messages.to_owned(),
                yes(agent.abilities.is_resumable),
                if agent.is_default { "default" } else { "" }.to_owned(),
            ]
        };
        let columns =
            vec!["agent", "installed", "version", "signed in", "sandbox", "messages", "threads", ""];
        Document::default()
            .block(Block::Table { columns, rows: self.agents.iter().map(row).collect() })
            .text("Choose the default agent: mcp-delegator agents use NAME")
    }
}
