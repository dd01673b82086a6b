//! `config path`: the user's configuration file.

use delegator_config::user_edit::user_file_path;

use crate::commands::prelude::*;
use crate::spec::NoInputs;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigPath {
    pub path: String,
    pub is_present: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("file"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<NoInputs, ConfigPath>(
        &["config", "path"],
        "Show where your configuration file is",
    )
};

pub fn run(context: &Context<'_>, _: NoInputs) -> Result<CommandOutput, AppError> {
    let path = user_file_path(&sources(context.process))?;
    Ok(CommandOutput::done(ConfigPath { is_present: path.exists(), path: path.display().to_string() }))
}

impl CommandData for ConfigPath {
    fn document(&self) -> Document {
        Document::default().text(self.path.clone())
    }
}
