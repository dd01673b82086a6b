//! `agents use`: choose the agent of tasks that name none.

use delegator_config::{Source, user_edit};
use delegator_engine::find_agent;

use crate::commands::config::{ChangedSetting, finish};
use crate::commands::prelude::*;
use crate::input::agent_selection::select_agent;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ChooseAgent {
    /// Agent
    #[schemars(length(min = 1, max = 64), extend("x-markers" = [Marker::Positional]))]
    pub agent: String,
    /// Change nothing
    #[serde(default)]
    pub dry_run: bool,
}

const KEY: &str = "default_agent";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Sets default_agent in your configuration file, as 'config set' does.",
    shape: Shape::Action("default_agent_set"),
    idempotent: true,
    toolset: Toolset::Hidden,
    config: ConfigUse::Reported,
    examples: &[example("mcp-delegator agents use claude", "the new default agent")],
    ..CommandSpec::new::<ChooseAgent, ChangedSetting>(
        &["agents", "use"],
        "Choose the agent of tasks that name none",
    )
};

pub fn run(context: &Context<'_>, input: ChooseAgent) -> Result<CommandOutput, AppError> {
    let agent = select_agent(context.config, &input.agent)?;
    let found = find_agent(&agent, &[&context.process.current_dir], &variables(context));
    let edit = user_edit::set(&sources(context.process), KEY, &agent.name);
    let output = finish(KEY, edit, Some(Source::UserConfig), input.dry_run)?;
    Ok(output.warn(found.err().map(|error| {
        Warning::new(WarningCode::AgentNotice, format!("{} cannot run yet: {error}", agent.name))
    })))
}
