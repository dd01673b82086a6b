//! The commands: one file per command, with its inputs, spec, handler and document.

pub mod agents;
pub mod answer;
pub mod apply;
pub mod cancel;
pub mod cleanup_registry;
pub mod cloud;
pub mod completions;
pub mod config;
pub mod context;
pub mod demo;
pub mod diff;
pub mod discard;
pub mod doctor;
pub mod env;
pub mod events;
pub mod fleet;
pub mod help;
pub mod history;
pub mod import;
pub mod init;
pub mod inputs;
pub mod local;
pub mod logs;
pub mod man;
pub mod manifest;
pub mod notify;
pub mod prelude;
pub mod queue;
pub mod read;
pub mod restore;
pub mod retry;
pub mod review;
pub mod schema;
pub mod send;
pub mod setup;
pub mod show;
pub mod sign_in;
pub mod terminal_prompt;
pub mod usage;
pub mod version;
pub mod worker;
pub mod worktrees;

use std::fmt::Debug;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};

use crate::commands::context::Context;
use crate::commands::local::{run, wait};
use crate::error::{AppError, ErrorCode};
use crate::input::validation::ValidInput;
use crate::output::outcome::CommandOutput;
use crate::spec::catalog::Catalog;
use crate::spec::{CommandSpec, Input};

pub trait PreparedCall: Debug + Send {
    fn run(self: Box<Self>, context: &Context<'_>) -> Result<Started, AppError>;
}

#[derive(Debug)]
pub enum Started {
    /// Finished; there is nothing to wait for.
    Finished(Box<CommandOutput>),
    Waiting(TaskWait, AfterWait),
}

/// The tasks that a command waits for after its start. The caller does the waiting: the command line in the
/// calling thread, a server for all calls in one thread.
#[derive(Debug, Clone)]
pub struct TaskWait {
    pub ids: Vec<TaskId>,
    pub goal: WaitGoal,
    /// `None`: no limit.
    pub timeout: Option<Duration>,
}

impl From<CommandOutput> for Started {
    fn from(output: CommandOutput) -> Started {
        Started::Finished(Box::new(output))
    }
}

/// The task that a new one retries or reviews, after the name of this relation.
pub type Origin = (&'static str, TaskId);

#[derive(Debug)]
pub enum AfterWait {
    Run {
        id: TaskId,
        /// The task was found by its idempotency key.
        replayed: bool,
        origin: Option<Origin>,
    },
    Wait(wait::ResolvedWait),
}

impl AfterWait {
    pub fn output(
        &self,
        context: &Context<'_>,
        outcome: GroupWaitOutcome,
    ) -> Result<CommandOutput, AppError> {
        match self {
            AfterWait::Run { replayed, origin, .. } => {
                Ok(run::after_wait(context, outcome, *replayed)?.origin(origin.as_ref()))
            }
            AfterWait::Wait(wait) => wait::after_wait(context, outcome, wait),
        }
    }
}

#[derive(Debug)]
struct Request<I, O> {
    input: I,
    run: fn(&Context<'_>, I) -> Result<O, AppError>,
}

impl<I: Debug + Send, O: Debug + Into<Started>> PreparedCall for Request<I, O> {
    fn run(self: Box<Self>, context: &Context<'_>) -> Result<Started, AppError> {
        (self.run)(context, self.input).map(Into::into)
    }
}

pub fn prepare<I, O>(
    input: ValidInput,
    run: fn(&Context<'_>, I) -> Result<O, AppError>,
) -> Result<Box<dyn PreparedCall>, AppError>
where
    I: Input,
    O: Into<Started> + Debug + 'static,
{
    Ok(Box::new(Request { input: input.into_typed()?, run }))
}

pub type Prepare = fn(ValidInput) -> Result<Box<dyn PreparedCall>, AppError>;

#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub spec: &'static CommandSpec,
    /// Calls [`prepare`] with the handler.
    pub prepare: Prepare,
}

impl Command {
    pub const fn new(spec: &'static CommandSpec, prepare: Prepare) -> Command {
        Command { spec, prepare }
    }
}

/// All commands, in the order of the manifest. `app` builds the list.
#[derive(Debug, Clone, Copy)]
pub struct CommandList {
    commands: &'static [Command],
    pub catalog: Catalog,
}

impl CommandList {
    /// Called once per process; the list lives as long as it.
    pub fn new(commands: Vec<Command>) -> CommandList {
        let specs: Vec<&'static CommandSpec> = commands.iter().map(|command| command.spec).collect();
        CommandList { commands: commands.leak(), catalog: Catalog(specs.leak()) }
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
