//! `man`: print a manual page, for `man -l -` or a package. A person at a terminal reads its text, which is
//! that of `help`.

use crate::commands::completions::{RawText, raw_text};
use crate::commands::prelude::*;
use crate::input::help;
use crate::spec::formats::HelpLength;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Man {
    /// Command (default: the page of the program)
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Positional], "default" = null))]
    pub command: Vec<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "On a terminal its text; elsewhere its source, for `man` or for a package.",
    shape: crate::spec::Shape::Show("page"),
    raw: RawOutput::Always,
    toolset: Toolset::Hidden,
    examples: &[
        example("mcp-delegator man | man -l -", "the manual page"),
        example("mcp-delegator man config show", "the page of one command"),
    ],
    config: ConfigUse::Unused,
    ..CommandSpec::read_only::<Man, RawText>(&["man"], "Print the manual page")
};

pub fn run(context: &Context<'_>, input: Man) -> Result<CommandOutput, AppError> {
    let command = help::command_at(context.commands.catalog, "man", &input.command)?;
    let presentation = context.screen.presentation;
    let text = presentation
        .writes_to_terminal()
        .then(|| help::render_help(&command, HelpLength::Long, presentation.body_style().columns));
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(|error| io_error("Writing the page", &error))?;
    let output = raw_text(page);
    let Some(text) = text else { return Ok(output) };
    let words: String = input.command.iter().map(|word| format!(" {word}")).collect();
    let message = Some(format!("As a manual page: mcp-delegator man{words} | man -l -"));
    Ok(CommandOutput { message, ..output.raw(text) })
}
