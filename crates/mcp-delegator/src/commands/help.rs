//! `help`: show help for a command, the same text as `--help`, or a page of the documentation.

use crate::commands::prelude::*;
use crate::input::help;
use crate::spec::formats::HelpLength;

mod pages;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Help {
    /// Command, group, or one of the pages agents, config, errors and output
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Positional], "default" = null))]
    pub command: Vec<String>,
    /// Without rarely needed inputs and examples, as with -h
    #[serde(default)]
    pub short: bool,
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
    ..CommandSpec::read_only::<Help, HelpOutput>(&["help"], "Show help for a command, or a page")
};

pub fn run(context: &Context<'_>, input: Help) -> Result<CommandOutput, AppError> {
    let style = context.screen.presentation.body_style();
    let page = pages::find(&input.command).map(|page| pages::render(page, style));
    let mut command = match help::command_at(context.commands.catalog, "help", &input.command) {
        Ok(command) => command,
        Err(error) => {
            let text = page.ok_or(error)?;
            let text = match input.command.as_slice() {
                [word] if word == "output" => format!("{}\n\n{text}", help::output_options(style.columns)),
                _ => text,
            };
            return Ok(output(HelpOutput { usage: String::new(), commands: Vec::new(), text }));
        }
    };
    let commands = command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
        .map(|subcommand| HelpCommand {
            name: subcommand.get_name().to_owned(),
            summary: subcommand.get_about().map(ToString::to_string).unwrap_or_default(),
        })
        .collect();
    let length = if input.short { HelpLength::Short } else { HelpLength::Long };
    let text = help::render_help(&command, length, style.columns);
    let text =
        [Some(text), page.filter(|_| !input.short)].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let usage = command.render_usage().to_string();
    Ok(output(HelpOutput { usage, commands, text }))
}

fn output(data: HelpOutput) -> CommandOutput {
    let text = data.text.clone();
    CommandOutput::done(data).raw(text)
}

impl CommandData for HelpOutput {
    fn document(&self) -> Document {
        Document::default().block(Block::Verbatim(self.text.clone()))
    }
}
