//! `completions`: print a shell completion script.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::context::Context;
use crate::commands::{Command, prepare};
use crate::error::AppError;
use crate::input::tree;
use crate::output::outcome::CommandOutput;
use crate::spec::version::PROGRAM;
use crate::spec::{CommandSpec, ConfigUse, Danger, Example, FormerName, RawOutput, Toolset};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Completions {
    /// The shell
    #[schemars(extend("x-positional" = true))]
    pub shell: Shell,
}

/// Raw text, for output in an envelope.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RawText {
    pub text: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: crate::spec::Shape::Show("script"),
    danger: Danger::Safe,
    idempotent: true,
    raw: RawOutput::Always,
    toolset: Toolset::Hidden,
    examples: &[Example {
        command: "mcp-delegator completions bash > ~/.local/share/bash-completion/completions/mcp-delegator",
        shows: "completions for bash, active in new shells",
    }],
    former_names: &[FormerName { path: &["completion"] }],
    config: ConfigUse::Unused,
    ..CommandSpec::new::<Completions, RawText>(&["completions"], "Print a completion script for a shell")
};

pub const COMMAND: Command = Command { prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

fn run(context: &Context<'_>, input: Completions) -> Result<CommandOutput, AppError> {
    use clap_complete::Shell as Known;
    let shell = match input.shell {
        Shell::Bash => Known::Bash,
        Shell::Elvish => Known::Elvish,
        Shell::Fish => Known::Fish,
        Shell::Powershell => Known::PowerShell,
        Shell::Zsh => Known::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut tree::completable(context.catalog()), PROGRAM, &mut script);
    Ok(raw_text(script))
}

pub fn raw_text(bytes: Vec<u8>) -> CommandOutput {
    let text = String::from_utf8_lossy(&bytes).into_owned();
    CommandOutput::done(RawText { text: text.clone() }).raw(text)
}
