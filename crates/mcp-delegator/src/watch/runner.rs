//! Runs a command in this process, as the command line would: the same validation, handler and text. No question
//! is printed, and nothing else; consent that is missing goes back to the screen, which asks.

use std::sync::Arc;

use delegator_engine::ConnectionPool;

use crate::commands::prelude::*;
use crate::commands::{Started, show};
use crate::error::catch_panics;
use crate::input::validation;
use crate::output::awaited_task::Attachment;
use crate::output::outcome::CallClock;
use crate::output::presentation::Presentation;
use crate::output::screen::Screen;
use crate::spec::CallOrigin;
use crate::spec::formats::{ColorChoice, Format, Globals};
use crate::spec::process::Process;

/// Lives as long as the process, because its threads outlive the screen.
#[derive(Debug, Clone, Copy)]
pub struct CommandRunner(&'static Context<'static>);

#[derive(Debug, Clone, PartialEq)]
pub enum CallResult {
    Done(String),
    Failed(String),
    /// It lacks only consent, which this call gives.
    NeedsConsent {
        reason: String,
        call: NextCall,
    },
}

impl CommandRunner {
    /// There is one screen in a process.
    pub fn new(context: &Context<'_>) -> CommandRunner {
        // Without a terminal no command asks or waits.
        let process = Process {
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            ..context.process.clone()
        };
        let (format, color) = (Some(Format::Human), ColorChoice::Never);
        let globals = Globals { format, color, ..Globals::default() };
        let presentation = Presentation::decide(&process, &globals, &show::SPEC, &Map::new(), context.config);
        CommandRunner(Box::leak(Box::new(Context {
            commands: context.commands,
            config: Box::leak(Box::new(context.config.clone())),
            config_error: None,
            state_dir: context.state_dir.clone(),
            process: Box::leak(Box::new(process)),
            screen: Screen {
                printer: Box::leak(Box::new(Arc::clone(context.screen.printer))),
                presentation: Box::leak(Box::new(presentation)),
                attachment: Box::leak(Box::new(Attachment::default())),
            },
            surface: Surface::CommandLine,
            call_budget: None,
            connections: ConnectionPool::of_service(),
            fleet: context.fleet.clone(),
        })))
    }

    /// A panic becomes an error.
    pub fn catch<T>(self, act: impl FnOnce(&Context<'_>) -> Result<T, AppError>) -> Result<T, AppError> {
        catch_panics(|| act(self.0))
    }

    pub fn run(self, call: &NextCall) -> CallResult {
        let clock = CallClock::begin();
        let Some(spec) = self.0.commands.catalog.find(call.path) else {
            return CallResult::Failed(format!("There is no command '{}'.", call.path.join(" ")));
        };
        let output = match self.catch(|context| execute(context, spec, call)) {
            Ok(output) => output,
            Err(error) => match missing_consent(&error, call) {
                Some((reason, call)) => return CallResult::NeedsConsent { reason, call },
                None => error.into(),
            },
        };
        let (syntax, mut output) = (self.0.screen.presentation.call_syntax(), output);
        output.completion.error_mut().into_iter().for_each(|error| syntax.name_inputs_of(error));
        let outcome = clock.end(spec, output);
        let rendered = self.0.screen.presentation.render(&outcome);
        let parts = std::iter::once(rendered.body).chain(rendered.remarks);
        let text = parts.filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n");
        if outcome.error().is_some() { CallResult::Failed(text) } else { CallResult::Done(text) }
    }

    /// An error as a person reads it.
    pub fn error_text(self, mut error: AppError) -> String {
        let presentation = self.0.screen.presentation;
        presentation.call_syntax().name_inputs_of(&mut error);
        presentation.error_text(&error)
    }

    /// What a command returned, as a person reads it, up to the commands that can follow: the screen has keys
    /// for them.
    pub fn document_text(self, output: &CommandOutput) -> String {
        let mut document = output.data.as_ref().map(|data| output.document(data)).unwrap_or_default();
        let is_next = |block: &Block| matches!(block, Block::Text(text) if text == "Next:");
        if let Some(at) = document.blocks.iter().position(is_next) {
            document.blocks.truncate(at);
        }
        document.to_text(self.0.screen.presentation.body_style().plain())
    }
}

fn execute(
    context: &Context<'_>,
    spec: &'static CommandSpec,
    call: &NextCall,
) -> Result<CommandOutput, AppError> {
    let process = context.process;
    let preflight = PreflightContext::new(context.config, process, context.state_dir.as_deref());
    let origin = CallOrigin { surface: context.surface, current_dir: &process.current_dir };
    let input = validation::validate(spec, call.input.clone(), Vec::new(), origin, Some(&preflight))?;
    match (context.commands.find(spec)?.prepare)(input)?.run(context)? {
        Started::Finished(output) => Ok(*output),
        Started::Waiting(..) => {
            Err(AppError::new(ErrorCode::Internal, "A command that waits was called from a screen."))
        }
    }
}

/// The reason, and the call with the consent.
fn missing_consent(error: &AppError, call: &NextCall) -> Option<(String, NextCall)> {
    if let [Problem { consent: Some(reason), field, .. }] = error.problems.as_slice() {
        return Some((reason.to_string(), call.clone().with(field, true)));
    }
    // `apply` refuses what did not pass its check, or is not recommended, unless it is forced.
    let can_force = call.path == ["apply"] && !call.input.contains_key("force");
    let is_refused = error.code == ErrorCode::ConfirmationRequired && can_force;
    is_refused.then(|| (error.message.clone(), call.clone().with("force", true)))
}
