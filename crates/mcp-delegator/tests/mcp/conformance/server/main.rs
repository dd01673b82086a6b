//! The program with fixtures for the official MCP conformance suite: `serve` adds tools, resources and prompts.

#![expect(deprecated, reason = "the suite still tests logging and sampling")]

mod client_requests;
mod content;
mod fixtures;
mod input_rounds;
mod task_tools;

use mcp_delegator::app::command_list::COMMANDS;
use mcp_delegator::app::internal_modes::run_if_requested;
use mcp_delegator::app::process::current_process;
use mcp_delegator::app::run::run;
use mcp_delegator::commands::{Command, CommandList, prepare};
use mcp_delegator::error::AppError;
use mcp_delegator::mcp::serve;
use mcp_delegator::output::outcome::CommandOutput;
use mcp_delegator::spec::{CommandSpec, Danger, NoInputs, Toolset};

use fixtures::Fixtures;

/// A tool whose handler panics: the server must answer with an error and continue.
pub(crate) const PANICS: CommandSpec = CommandSpec {
    danger: Danger::Safe,
    toolset: Toolset::Local,
    ..CommandSpec::new::<NoInputs, NoInputs>(&["local", "panic"], "Panic")
};

fn main() -> std::process::ExitCode {
    let process = current_process();
    run_if_requested(&process).unwrap_or_else(|| run(process, commands()).into())
}

fn commands() -> CommandList {
    let with_fixtures = |command: &Command| match command.spec.path {
        ["serve"] => Command {
            prepare: |input| prepare(input, |context, input| serve::serve(context, input, Fixtures::new)),
            ..*command
        },
        _ => *command,
    };
    let panics = Command::new(&PANICS, |input| {
        prepare(input, |_, _: NoInputs| -> Result<CommandOutput, AppError> {
            std::panic::panic_any("the handler panicked")
        })
    });
    CommandList::new(COMMANDS.iter().map(with_fixtures).chain([panics]).collect())
}
