//! `config unset`: remove a value from the user's configuration file.

use delegator_config::user_edit;

use crate::commands::config::{ChangedSetting, finish};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ConfigUnset {
    /// Setting
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Positional]))]
    pub key: String,
    /// Change nothing
    #[serde(default)]
    pub dry_run: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Its default applies from then on. Also removes a name that is no setting, such as a misspelled one.",
    shape: Shape::Action("setting_unset"),
    idempotent: true,
    toolset: Toolset::Hidden,
    config: ConfigUse::Reported,
    failures: &[ErrorCode::NotFound],
    ..CommandSpec::new::<ConfigUnset, ChangedSetting>(
        &["config", "unset"],
        "Remove a value from your configuration file",
    )
};

pub fn run(context: &Context<'_>, input: ConfigUnset) -> Result<CommandOutput, AppError> {
    finish(&input.key, user_edit::unset(&sources(context.process), &input.key), None, input.dry_run)
}
