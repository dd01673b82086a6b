//! `env remove`: remove an environment from the environments file.

use delegator_config::{environments, environments_file};

use crate::commands::env::edit_output;
use crate::commands::inputs::unconfirmed_removal;
use crate::commands::prelude::*;
use crate::output::data::registry::ChangedEnvironment;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct EnvRemove {
    /// Environment id
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub env_id: String,
    /// Confirm the removal
    #[serde(default)]
    pub confirm_destructive: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Removes only the entry in the file; nothing at the provider is deleted.",
    shape: Shape::Action("environment_removed"),
    danger: Danger::Destructive,
    idempotent: true,
    failures: &[ErrorCode::NotFound],
    input: InputType::with_rules::<EnvRemove>(),
    ..CommandSpec::new::<EnvRemove, ChangedEnvironment>(&["env", "remove"], "Remove an environment")
};

impl InputRules for EnvRemove {
    fn problems(&self) -> Vec<Problem> {
        let advice = "Check the environment first (env check), then {set:confirm_destructive}.";
        unconfirmed_removal(self.confirm_destructive, "the environment's entry is deleted", advice)
    }
}

pub fn run(context: &Context<'_>, input: EnvRemove) -> Result<CommandOutput, AppError> {
    let sources = sources(context.process);
    let removed = environments::remove(&sources, &input.env_id)?;
    let message = format!("{} was removed", removed.id);
    Ok(edit_output(&removed, &environments_file(&sources)?, message))
}
