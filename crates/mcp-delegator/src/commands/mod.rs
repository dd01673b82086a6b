//! The commands: one file per command, with its inputs, spec, handler and document.

pub mod blocking;
pub mod cancel;
pub mod cleanup_registry;
pub mod cloud;
pub mod completions;
pub mod config_show;
pub mod context;
pub mod declared;
pub mod demo;
pub mod doctor;
pub mod env;
pub mod events;
pub mod help;
pub mod import;
pub mod inputs;
pub mod local;
pub mod logs;
pub mod man;
pub mod manifest;
pub mod queue;
pub mod restore;
pub mod retry;
pub mod schema;
pub mod setup;
pub mod version;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::commands::blocking::BlockingCommand;
use crate::commands::context::Context;
use crate::error::{AppError, ErrorCode};
use crate::output::documents::document::Document;
use crate::output::outcome::CommandOutput;
use crate::spec::CommandSpec;
use crate::spec::catalog::Catalog;

pub type Handler = fn(&Context<'_>, Value) -> Result<CommandOutput, AppError>;

/// A command: its spec, its handler, and how its data is shown to readers.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub spec: &'static CommandSpec,
    /// `None` if the command is only declared.
    pub run: Option<Handler>,
    /// The two halves of `run`, if the command waits for tasks.
    pub blocking: Option<BlockingCommand>,
    /// Describes the data for readers.
    pub describe: fn(&Value) -> Document,
}

impl Command {
    /// A command without a handler.
    pub const fn new(spec: &'static CommandSpec) -> Command {
        Command { spec, run: None, blocking: None, describe: Document::from_value }
    }

    /// Runs the command with a validated input.
    pub fn run(&self, context: &Context<'_>, input: Value) -> Result<CommandOutput, AppError> {
        let handler = self
            .run
            .ok_or_else(|| AppError::new(ErrorCode::Internal, "A command without a handler was accepted."))?;
        handler(context, input)
    }
}

/// All commands, in the order of the manifest. `app` builds the list.
#[derive(Debug, Clone, Copy)]
pub struct CommandList {
    commands: &'static [Command],
    catalog: Catalog,
}

impl CommandList {
    /// Called once per process; the list lives as long as it.
    pub fn new(commands: Vec<Command>) -> CommandList {
        let specs: Vec<&'static CommandSpec> = commands.iter().map(|command| command.spec).collect();
        CommandList { commands: commands.leak(), catalog: Catalog(specs.leak()) }
    }

    /// The specs of all commands.
    pub fn catalog(self) -> Catalog {
        self.catalog
    }

    /// Adds to an output how the command's data is shown to readers.
    pub fn describe(self, spec: &CommandSpec, output: CommandOutput) -> CommandOutput {
        match self.find(spec) {
            Ok(command) => CommandOutput { describe: command.describe, ..output },
            Err(_) => output,
        }
    }

    pub fn find(self, spec: &CommandSpec) -> Result<&'static Command, AppError> {
        self.commands.iter().find(|command| command.spec.path == spec.path).ok_or_else(|| {
            AppError::new(
                ErrorCode::Internal,
                format!("The command '{}' is not registered.", spec.cli_path()),
            )
        })
    }
}

/// Deserializes the validated input and runs the handler with it.
pub fn run_typed<I: DeserializeOwned>(
    context: &Context<'_>,
    input: Value,
    run: impl FnOnce(&Context<'_>, I) -> Result<CommandOutput, AppError>,
) -> Result<CommandOutput, AppError> {
    run(context, serde_json::from_value(input).map_err(input_rejected)?)
}

/// Input that passed the schema but cannot be deserialized is a bug in the input type.
pub fn input_rejected(error: serde_json::Error) -> AppError {
    AppError::new(ErrorCode::Internal, format!("The validated input could not be deserialized: {error}"))
}
