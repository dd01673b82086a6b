//! `--last`: the last submission of the current directory, in place of a task id. For a person at a terminal
//! a missing id means the same.
//!
//! It is the whole submission: the group of several attempts, or the first task of a chain, which stands for
//! those that follow it. A command that concerns a single task of a chain gets the one that runs, or else the
//! last that ran. It exists only on the command line. The flag is resolved to an id before the input is
//! validated, so a command sees an ordinary input. Before `cancel` ends a submission that the user did not
//! name, the user is asked; the other commands that destroy something ask in any case.

use delegator_domain::terminal;

use crate::commands::cancel;
use crate::commands::local::attempts::{group_of, refuse_unfinished};
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;
use crate::spec::{Property, PropertyType};

/// Fills the input if there is no such task, so that the other inputs can be validated.
const NO_TASK: &str = "T-local-0000000000";

const CANCEL: &str = "cancel";

/// The last words of the commands that concern a whole submission.
const OF_SUBMISSION: [&str; 7] = ["apply", CANCEL, "diff", "discard", "results", "status", "wait"];

struct LastSubmission {
    id: String,
    title: String,
    is_chain: bool,
    has_ended: bool,
}

/// How a call asks for the last submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastRequest {
    /// With `--last`.
    Explicit,
    /// A required id is missing, and a person reads what the command prints.
    Implied,
}

impl LastRequest {
    pub fn of(
        has_flag: bool,
        context: &Context<'_>,
        spec: &CommandSpec,
        object: &Map<String, Value>,
    ) -> Option<LastRequest> {
        if has_flag {
            return Some(LastRequest::Explicit);
        }
        let is_implied = terminal_prompt::is_attended(context) && lacks_task(spec, object);
        is_implied.then_some(LastRequest::Implied)
    }
}

/// Whether a call lacks the id that the command requires. A file has a default of its own, and if there is
/// another value by position, the only value given may be the id.
fn lacks_task(spec: &CommandSpec, object: &Map<String, Value>) -> bool {
    let inputs = spec.inputs();
    let Some(task) = inputs.task_input().filter(|task| !task.has(&Marker::Source)) else { return false };
    let lacks_filter = || !cancel::FILTERS.iter().any(|filter| object.contains_key(*filter));
    let is_required = task.required
        || spec.exactly_one_of.contains(&task.name.as_str())
        || (spec.path == cancel::SPEC.path && lacks_filter());
    let is_given = alternatives(spec, task).any(|name| object.contains_key(name));
    is_required && !is_given && !inputs.is_first_of_several(task)
}

/// The inputs of which a call has only one: the task and what may be given instead.
fn alternatives<'a>(spec: &CommandSpec, task: &'a Property) -> impl Iterator<Item = &'a str> {
    spec.exactly_one_of.iter().copied().chain([task.name.as_str()])
}

/// Fills the input that names the task. If the user named none, or the command destroys something, prints
/// which task it is, or returns the question that must be answered with yes before the command runs. An error
/// means that there is no such task; it is to be reported only if the call is valid otherwise.
pub fn fill_task_input(
    context: &Context<'_>,
    spec: &CommandSpec,
    request: LastRequest,
    object: &mut Map<String, Value>,
    problems: &mut Vec<Problem>,
) -> Result<Option<String>, AppError> {
    let inputs = spec.inputs();
    let Some(input) = inputs.task_input() else { return Ok(None) };
    if let Some(given) = alternatives(spec, input).find(|name| object.contains_key(*name)) {
        let message = format!("cannot be given together with {given}");
        let problem = Problem::invalid("--last", message);
        problems.push(problem.suggest(Some("Give only one of them.")));
        return Ok(None);
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
    let title = terminal::sanitize(&last.title);
    let is_true = |name: &str| object.get(name) == Some(&true.into());
    let is_cancelled = spec.path.last() == Some(&CANCEL) && !is_true("dry_run") && !last.has_ended;
    if request == LastRequest::Implied && is_cancelled && !is_true("confirm") {
        return Ok(Some(format!("Cancel the last task, {} ({title})?", last.id)));
    }
    let is_announced = request == LastRequest::Implied || spec.danger == Danger::Destructive;
    if is_announced && !presentation.is_for_programs() && !presentation.quiet {
        context.screen.printer.remark(&format!("The last task is {}: {title}", last.id));
    }
    Ok(None)
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
        let has_ended = refuse_unfinished(engine, &engine.results().recorded_group(group)?).is_ok();
        return Ok(LastSubmission { id: group.to_string(), title: first.title, is_chain, has_ended });
    }
    let has_ended = [&first].into_iter().chain(&chain).all(|task| task.state.is_terminal());
    let ran: Vec<Task> = chain.into_iter().filter(|task| task.started_at_ms.is_some()).collect();
    let single = ran.iter().find(|task| !task.state.is_terminal()).or(ran.last());
    let task = single.filter(|_| !of_submission && first.state.is_terminal()).unwrap_or(&first);
    Ok(LastSubmission { id: task.id.to_string(), title: task.title.clone(), is_chain, has_ended })
}
