//! `watch`: all tasks on one live screen, and what a person does with them.
//!
//! It shows the live view of the engine, reads details in the background with the functions of `show`, `logs`
//! and `diff`, and runs the commands of the command line in this process. It decides nothing about tasks.
//!
//! [`state`] is all that is shown, [`keys`] and [`update`] change it, [`view`] draws it; these are pure.
//! [`event_loop`] waits for keys, changes and results; [`loader`] and [`runner`] work in threads of their own.

pub mod board;
pub mod describe;
pub mod diff_pane;
pub mod event_loop;
pub mod keys;
pub mod lines;
pub mod loader;
pub mod log;
pub mod results;
pub mod runner;
pub mod state;
pub mod task_view;
#[cfg(test)]
mod tests;
pub mod update;
pub mod view;

use crate::commands::prelude::*;
use crate::spec::NoInputs;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Watch {
    /// Open this task or group at once
    #[schemars(extend("x-markers" = [Marker::Positional]))]
    pub task_id: Option<TaskRef>,
}

/// A screen that was closed has no data.
#[derive(Debug, Clone, Serialize)]
struct WatchOutput {}

impl CommandData for WatchOutput {}

pub const SPEC: CommandSpec = CommandSpec {
    details: "What needs you stands first; the title of the terminal counts it. Keys open a task, answer its question, send messages, and apply, discard, \
              undo, cancel or retry; ? lists them. What changes files is checked first, and asked. Tasks keep running when the screen is closed.",
    open_ended: true,
    network: true,
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::DependencyMissing],
    examples: &[
        example("mcp-delegator watch", "all tasks, by what they need"),
        example("mcp-delegator watch T-local-…", "the same, with this task open"),
    ],
    ..CommandSpec::new::<Watch, NoInputs>(&["watch"], "Watch and steer all tasks on one screen")
};

pub fn run(context: &Context<'_>, input: Watch) -> Result<CommandOutput, AppError> {
    let is_dumb = context.process.variable("TERM").is_none_or(|terminal| terminal == "dumb");
    if is_dumb || !context.process.stdin_is_terminal || !context.screen.can_redraw() {
        return Err(AppError::new(
            ErrorCode::DependencyMissing,
            "watch needs a terminal that it can draw on.",
        )
        .suggest_call(
            "List tasks with {call}; `logs --follow` and `events follow` print what one task does.",
            NextCall::new(&["local", "status"]),
        ));
    }
    let engine = engine(context)?;
    let open = input.task_id.map(|given| engine.results().resolve_target(given.as_str())).transpose()?;
    event_loop::run(context, engine, open)?;
    Ok(CommandOutput::done(WatchOutput {}))
}
