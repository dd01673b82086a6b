//! `--last`: the most recent task of the current directory, in place of a task id.
//!
//! It exists only on the command line. The flag is resolved to an id before the input is validated, so a command sees an
//! ordinary input.

use serde_json::{Map, Value, json};

use crate::commands::context::Context;
use crate::commands::local::tasks::engine;
use crate::error::{AppError, ErrorCode, Problem};
use crate::spec::{CommandSpec, Danger, PropertyType};

/// Fills the input that names the task. A command that destroys something prints which task it is, because the user did not
/// name it.
pub fn fill_task_input(
    context: &Context<'_>,
    spec: &CommandSpec,
    object: &mut Map<String, Value>,
) -> Result<(), AppError> {
    let inputs = spec.inputs();
    let Some(input) = inputs.task_input() else { return Ok(()) };
    let alternatives = spec.exactly_one_of.iter().copied().chain([input.name.as_str()]);
    if let Some(given) = alternatives.into_iter().find(|name| object.contains_key(*name)) {
        let problem = format!("cannot be given together with {given}");
        return Err(AppError::from_problems(vec![
            Problem::new(ErrorCode::InvalidValue, "--last", problem).suggest(Some("Give only one of them.")),
        ]));
    }
    let task = engine(context)?.last_task_in(&context.process.current_dir)?;
    let presentation = context.screen.presentation;
    if spec.danger == Danger::Destructive && !presentation.is_for_programs() && !presentation.quiet {
        context.screen.printer.remark(&format!("The last task is {}: {}", task.id, task.title));
    }
    let id = match input.kind {
        PropertyType::List => json!([task.id.as_str()]),
        _ => json!(task.id.as_str()),
    };
    object.insert(input.name.clone(), id);
    Ok(())
}
