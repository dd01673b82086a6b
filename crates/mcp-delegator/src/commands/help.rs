//! `help`: show help for a command; the same text as `--help`.

use crate::commands::prelude::*;
use crate::input::help;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Help {
    /// Command or group
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Positional], "default" = null))]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HelpOutput {
    pub usage: String,
    pub commands: Vec<HelpCommand>,
    pub text: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HelpCommand {
    pub name: String,
    pub summary: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("help"),
    raw: RawOutput::Always,
    toolset: Toolset::Hidden,
    config: ConfigUse::Unused,
    ..CommandSpec::read_only::<Help, HelpOutput>(&["help"], "Show help for a command")
};

pub fn run(context: &Context<'_>, input: Help) -> Result<CommandOutput, AppError> {
    let mut command = help::command_at(context.commands.catalog, "help", &input.command)?;
    let commands = command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
        .map(|subcommand| HelpCommand {
            name: subcommand.get_name().to_owned(),
            summary: subcommand.get_about().map(ToString::to_string).unwrap_or_default(),
        })
        .collect();
    let columns = context.screen.presentation.body_style().columns;
    let text = help::render_help(&command, columns);
    let usage = command.render_usage().to_string();
    Ok(CommandOutput::done(HelpOutput { usage, commands, text: text.clone() }).raw(text))
}

impl CommandData for HelpOutput {
    fn document(&self) -> Document {
        Document::default().block(Block::Verbatim(self.text.clone()))
    }
}
