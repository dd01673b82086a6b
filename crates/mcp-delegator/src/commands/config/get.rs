//! `config get`: the value of one setting that is in force.

use delegator_config::KeyPath;

use crate::commands::config::show::{in_current_directory, to_setting};
use crate::commands::prelude::*;
use crate::output::documents::document::scalar;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ConfigGet {
    /// Setting
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Positional]))]
    pub key: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SettingValue {
    pub key: String,
    /// Null if there is none.
    pub value: Value,
    /// default, user_config, project, environment or flag.
    pub source: &'static str,
    /// The file and line, variable or flag that set it.
    pub origin: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "For a task in the current directory. A secret is not shown.",
    shape: Shape::Show("setting"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    failures: &[ErrorCode::NotFound],
    examples: &[example("mcp-delegator config get max_concurrent", "the value in force")],
    ..CommandSpec::read_only::<ConfigGet, SettingValue>(&["config", "get"], "Show the value of a setting")
};

pub fn run(context: &Context<'_>, input: ConfigGet) -> Result<CommandOutput, AppError> {
    let path = KeyPath::parse(&input.key)?;
    let (config, added) = in_current_directory(context);
    let setting = config.sourced().iter().find(|setting| setting.key.name == path.setting.name);
    let shown = setting.map(to_setting).ok_or_else(|| {
        AppError::new(ErrorCode::Internal, format!("The setting {} has no value.", path.setting.name))
    })?;
    let data = SettingValue {
        key: input.key,
        value: path.value_in(&shown.value),
        source: shown.source,
        origin: shown.origin,
    };
    Ok(CommandOutput::done(data).warn(&added))
}

impl CommandData for SettingValue {
    fn document(&self) -> Document {
        Document::default().text(if self.value.is_null() {
            "not set".to_owned()
        } else {
            scalar(&self.value)
        })
    }
}
