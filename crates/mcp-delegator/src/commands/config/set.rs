//! `config set`: set a value in the user's configuration file.

use delegator_config::{Source, user_edit};

use crate::commands::config::{ChangedSetting, finish};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ConfigSet {
    /// Setting
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Positional]))]
    pub key: String,
    /// Value, written as in a variable: items of a list separated by commas, agents as JSON
    #[schemars(length(max = 100_000), extend("x-markers" = [Marker::Positional, Marker::Stdin]))]
    pub value: String,
    /// Check the value; change nothing
    #[serde(default)]
    pub dry_run: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Checks the whole file as at its use, and refuses what it would not accept. Comments and all other lines stay. \
              A secret is better given on standard input, with -.",
    shape: Shape::Action("setting_set"),
    idempotent: true,
    toolset: Toolset::Hidden,
    config: ConfigUse::Reported,
    failures: &[ErrorCode::NotFound],
    examples: &[
        example("mcp-delegator config set max_concurrent 4", "the value that is then in force"),
        example("mcp-delegator config set notify.on failed,timeout --dry-run", "whether the value is valid"),
    ],
    ..CommandSpec::new::<ConfigSet, ChangedSetting>(
        &["config", "set"],
        "Set a value in your configuration file",
    )
};

pub fn run(context: &Context<'_>, input: ConfigSet) -> Result<CommandOutput, AppError> {
    // A line from a pipe ends with a line break, which belongs to no value.
    let value = input.value.strip_suffix('\n').unwrap_or(&input.value);
    let edit = user_edit::set(&sources(context.process), &input.key, value);
    finish(&input.key, edit, Some(Source::UserConfig), input.dry_run)
}
