//! `--last`: the most recent task of the current directory, in place of a task id.
//!
//! It exists only on the command line. The flag is resolved to an id before the input is validated, so a command sees an
//! ordinary input.

use serde_json::{Map, Value, json};

use crate::commands::context::Context;
use crate::commands::local::tasks::engine;
use crate::error::{AppError, ErrorCode, Problem};
use crate::spec::{CommandSpec, Danger, PropertyType};

/// Fills the input if there is no such task, so that the other inputs can be validated.
const NO_TASK: &str = "T-local-0000000000";

/// Fills the input that names the task. A command that destroys something prints which task it is, because the user did not
/// name it. An error means that there is no such task; it is to be reported only if the call is valid otherwise.
pub fn fill_task_input(
    context: &Context<'_>,
    spec: &CommandSpec,
    object: &mut Map<String, Value>,
    problems: &mut Vec<Problem>,
) -> Result<(), AppError> {
    let inputs = spec.inputs();
    let Some(input) = inputs.task_input() else { return Ok(()) };
    let alternatives = spec.exactly_one_of.iter().copied().chain([input.name.as_str()]);
    if let Some(given) = alternatives.into_iter().find(|name| object.contains_key(*name)) {
        let message = format!("cannot be given together with {given}");
        let problem = Problem::new(ErrorCode::InvalidValue, "--last", message);
        problems.push(problem.suggest(Some("Give only one of them.")));
        return Ok(());
    }
    let found = engine(context).and_then(|engine| Ok(engine.last_task_in(&context.process.current_dir)?));
    let id = found.as_ref().map_or(NO_TASK, |task| task.id.as_str());
    let id = match input.kind {
        PropertyType::List => json!([id]),
        _ => json!(id),
    };
    object.insert(input.name.clone(), id);
    let task = found?;
    let presentation = context.screen.presentation;
    if spec.danger == Danger::Destructive && !presentation.is_for_programs() && !presentation.quiet {
        context.screen.printer.remark(&format!("The last task is {}: {}", task.id, task.title));
    }
    Ok(())
}
