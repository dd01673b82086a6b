//! `completions`: print a shell completion script.
//!
//! The script only calls this program for each completion (`app::completion`), so it stays correct after an
//! upgrade.

use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::commands::prelude::*;
use crate::spec::version::PROGRAM;

/// The variable with which the script calls this program; its value is the shell.
pub const VARIABLE: &str = "_MCP_DELEGATOR_COMPLETE";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Shell {
    const ALL: [Shell; 5] = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::Powershell];

    pub fn adapter(self) -> &'static dyn EnvCompleter {
        match self {
            Shell::Bash => &Bash,
            Shell::Elvish => &Elvish,
            Shell::Fish => &Fish,
            Shell::Powershell => &Powershell,
            Shell::Zsh => &Zsh,
        }
    }

    pub fn named(name: &str) -> Option<Shell> {
        Shell::ALL.into_iter().find(|shell| shell.adapter().name() == name)
    }

    fn installation(self) -> &'static str {
        match self {
            Shell::Bash => "echo 'source <(mcp-delegator completions bash)' >> ~/.bashrc",
            Shell::Zsh => "echo 'source <(mcp-delegator completions zsh)' >> ~/.zshrc    # after compinit",
            Shell::Fish => "mcp-delegator completions fish > ~/.config/fish/completions/mcp-delegator.fish",
            Shell::Elvish => {
                "echo 'eval (mcp-delegator completions elvish | slurp)' >> ~/.config/elvish/rc.elv"
            }
            Shell::Powershell => {
                "Add-Content $PROFILE 'mcp-delegator completions powershell | Out-String | Invoke-Expression'"
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Completions {
    /// The shell; without it, how to install the script of each
    #[schemars(extend("x-markers" = [Marker::Positional]))]
    pub shell: Option<Shell>,
}

/// Raw text, for output in an envelope.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RawText {
    pub text: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: crate::spec::Shape::Show("script"),
    raw: RawOutput::Always,
    toolset: Toolset::Hidden,
    examples: &[
        example("mcp-delegator completions", "how to install them in each shell"),
        example(
            "echo 'source <(mcp-delegator completions bash)' >> ~/.bashrc",
            "completions for bash, active in new shells",
        ),
    ],
    former_names: &["completion"],
    config: ConfigUse::Unused,
    ..CommandSpec::read_only::<Completions, RawText>(
        &["completions"],
        "Print a completion script for a shell",
    )
};

pub fn run(_: &Context<'_>, input: Completions) -> Result<CommandOutput, AppError> {
    let Some(shell) = input.shell else { return Ok(raw_text(installations().into_bytes())) };
    let mut script = Vec::new();
    shell
        .adapter()
        .write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| io_error("Writing the script", &error))?;
    Ok(raw_text(script))
}

fn installations() -> String {
    let lines = Shell::ALL.map(|shell| format!("  {:<12}{}", shell.adapter().name(), shell.installation()));
    format!("Run the line of your shell, then open a new one:\n\n{}\n", lines.join("\n"))
}

impl CommandData for RawText {}

pub fn raw_text(bytes: Vec<u8>) -> CommandOutput {
    let text = String::from_utf8_lossy(&bytes).into_owned();
    CommandOutput::done(RawText { text: text.clone() }).raw(text)
}
