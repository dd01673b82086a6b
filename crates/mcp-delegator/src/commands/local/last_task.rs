//! `--last`: the last submission of the current directory, in place of a task id.
//!
//! It is the whole submission: the group of several attempts, or the first task of a chain, which stands for
//! those that follow it. A command that concerns a single task of a chain gets the one that runs, or else the
//! last that ran. It exists only on the command line. The flag is resolved to an id before the input is
//! validated, so a command sees an ordinary input.

use crate::commands::local::attempts::group_of;
use crate::commands::prelude::*;
use crate::spec::PropertyType;

/// Fills the input if there is no such task, so that the other inputs can be validated.
const NO_TASK: &str = "T-local-0000000000";

/// The last words of the commands that concern a whole submission.
const OF_SUBMISSION: [&str; 7] = ["apply", "cancel", "diff", "discard", "results", "status", "wait"];

struct LastSubmission {
    id: String,
    title: String,
    is_chain: bool,
}

/// Fills the input that names the task. A command that destroys something prints which task it is, because
/// the user did not name it. An error means that there is no such task; it is to be reported only if the call
/// is valid otherwise.
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
        let problem = Problem::invalid("--last", message);
        problems.push(problem.suggest(Some("Give only one of them.")));
        return Ok(());
    }
    let of_submission = spec.path.last().is_some_and(|name| OF_SUBMISSION.contains(name));
    let directory = &context.process.current_dir;
    let found = engine(context).and_then(|engine| last_submission(&engine, directory, of_submission));
    let id = found.as_ref().map_or(NO_TASK, |last| last.id.as_str());
    let id = match input.kind {
        PropertyType::List => json!([id]),
        _ => json!(id),
    };
    object.insert(input.name.clone(), id);
    let last = found?;
    if last.is_chain && inputs.get("chain").is_some() {
        object.entry("chain").or_insert(true.into());
    }
    let presentation = context.screen.presentation;
    if spec.danger == Danger::Destructive && !presentation.is_for_programs() && !presentation.quiet {
        context.screen.printer.remark(&format!("The last task is {}: {}", last.id, last.title));
    }
    Ok(())
}

fn last_submission(
    engine: &Engine,
    directory: &Path,
    of_submission: bool,
) -> Result<LastSubmission, AppError> {
    let first = engine.results().first_of_chain(engine.results().last_task_in(directory)?)?;
    let chain = engine.results().rest_of_chain(&first.id)?;
    let is_chain = !chain.is_empty();
    if let Some(group) = group_of(&first) {
        return Ok(LastSubmission { id: group.to_string(), title: first.title, is_chain });
    }
    let ran: Vec<Task> = chain.into_iter().filter(|task| task.started_at_ms.is_some()).collect();
    let single = ran.iter().find(|task| !task.state.is_terminal()).or(ran.last());
    let task = single.filter(|_| !of_submission && first.state.is_terminal()).unwrap_or(&first);
    Ok(LastSubmission { id: task.id.to_string(), title: task.title.clone(), is_chain })
}
