//! `restore`: bring work trees back to what they were before a task; list and delete restore points.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;
use delegator_engine::{Engine, EngineError, RestoreRequest, resolve_allowed_dir};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inputs::TASK_ID;
use super::local::tasks::engine;
use crate::error::engine::directory_problem;
use crate::error::{AppError, ErrorCode, Problem};
use crate::outcome::CommandOutput;
use crate::run::Context;
use crate::spec::{CommandSpec, Danger, Example, OutputSchema, PreflightContext, Shape, run_typed};

mod output;

use output::{RestoreOutput, describe, summary_sentence, warnings};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restore {
    /// The task
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TASK_ID), extend("x-positional" = true))]
    pub task_id: Option<String>,
    /// Really do it
    #[serde(default)]
    pub confirm_destructive: bool,
    /// Only say what would be done
    #[serde(default)]
    pub dry_run: bool,
    /// Move HEAD and its branch back, too; commits made since stay reachable by the undo point
    #[serde(default)]
    pub force: bool,
    /// Go back to before the last restore of this task
    #[serde(default)]
    pub undo: bool,
    /// Delete the task's restore points and what only they hold, instead of restoring
    #[serde(default)]
    #[schemars(extend("x-command-line" = true))]
    pub drop: bool,
    /// List the restore points of a repository, also of tasks that are no longer in the registry
    #[serde(default)]
    pub list: bool,
    /// A directory in the repository, to list it or to find a task that is no longer in the registry (default: the
    /// current directory)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Files, permissions, directories and index come back as they were, in every work tree the task could \
              write to; files that were not there are removed; files the restore point had to leave out are never \
              touched. HEAD and its branch move only with --force. The present state is kept first: --undo goes back \
              to it. Refused while a writing task is not over. Works after the task has left the registry, from \
              within its repository.",
    shape: Shape::Action("tree_restored"),
    danger: Danger::Destructive,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::ConfirmationRequired,
        ErrorCode::NotFound,
        ErrorCode::WrongState,
        ErrorCode::LockHeld,
        ErrorCode::DependencyMissing,
    ],
    examples: &[
        Example {
            command: "mcp-delegator restore T-local-… --dry-run",
            shows: "what would be brought back, without doing it",
        },
        Example {
            command: "mcp-delegator restore --list",
            shows: "the restore points of the repository here",
        },
    ],
    check,
    preflight: preflight_directory,
    output: OutputSchema::Type(crate::spec::input_schema::schema_of::<RestoreOutput>),
    describe,
    run: Some(|context, input| run_typed(context, input, run)),
    ..CommandSpec::declare::<Restore>(&["restore"], "Bring back the tree as it was before a task")
};

fn check(input: &Value) -> Vec<Problem> {
    let is_true = |key: &str| input.get(key) == Some(&Value::Bool(true));
    let has_task = input.get("task_id").is_some_and(|task| !task.is_null());
    let mut problems = Vec::new();
    let mut refuse = |code, field: &'static str, problem: &str, hint: &str| {
        problems.push(Problem::new(code, field, problem).suggest(Some(hint)));
    };
    if is_true("list") {
        let other = ["undo", "force", "drop"].into_iter().find(|key| is_true(key));
        if let Some(field) = other.or(has_task.then_some("task_id")) {
            refuse(ErrorCode::InvalidValue, field, "cannot be given together with list", "Leave one out.");
        }
        return problems;
    }
    if !has_task {
        let hint = "Name the task; --list shows which tasks have restore points here.";
        refuse(ErrorCode::MissingArgument, "task_id", "is missing", hint);
    }
    if let Some(field) = ["undo", "force"].into_iter().find(|key| is_true("drop") && is_true(key)) {
        refuse(ErrorCode::InvalidValue, field, "cannot be given together with drop", "Leave one out.");
    }
    if !is_true("confirm_destructive") && !is_true("dry_run") {
        let problem = match is_true("drop") {
            true => "must be true: what only the restore point holds is lost",
            false => "must be true: files of the work tree are overwritten and removed",
        };
        let hint = "Look first with --dry-run, then give --confirm-destructive.";
        refuse(ErrorCode::ConfirmationRequired, "confirm_destructive", problem, hint);
    }
    problems
}

/// A directory outside the allowed roots is not searched.
fn preflight_directory(input: &Value, context: &PreflightContext<'_>) -> Vec<Problem> {
    let Some(given) = input.get("working_dir").and_then(Value::as_str) else { return Vec::new() };
    let path = context.current_dir.join(given);
    let problem = resolve_allowed_dir(&path, context.config.paths("allowed_roots")).err();
    problem.map(|problem| directory_problem("working_dir", &path, &problem)).into_iter().collect()
}

fn run(context: &Context<'_>, input: Restore) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let environment: Vec<(OsString, OsString)> =
        context.process.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let start_dir = absolute_directory(context, input.working_dir.as_deref());
    if input.list {
        return list(&engine, &start_dir, &environment);
    }
    let id = resolve(&engine, input.task_id.as_deref().unwrap_or_default())?;
    if input.drop {
        let points = engine.delete_restore_points(&id, input.dry_run, (&environment, &start_dir))?;
        let done = if input.dry_run { "would be deleted" } else { "deleted" };
        let message = format!("{} restore points {done}", points.len());
        return Ok(answer(RestoreOutput::dropped(&id, points, input.dry_run), message));
    }
    let request = RestoreRequest { dry_run: input.dry_run, include_head: input.force, undo: input.undo };
    let restored = engine.restore(&id, request, (&environment, &start_dir))?;
    let (message, warnings) = (summary_sentence(&restored.trees, input.dry_run), warnings(&restored));
    let answer = answer(RestoreOutput::restored(&id, restored, input.dry_run), message);
    Ok(CommandOutput { warnings, ..answer })
}

fn answer(output: RestoreOutput, message: String) -> CommandOutput {
    let mut answer = CommandOutput::done(json!(output));
    answer.message = Some(message);
    answer
}

fn list(
    engine: &Engine,
    start_dir: &Path,
    environment: &Vec<(OsString, OsString)>,
) -> Result<CommandOutput, AppError> {
    let points = engine.list_restore_points(start_dir, environment)?;
    let points = points.ok_or_else(|| {
        AppError::new(ErrorCode::NotFound, format!("{} is not in a git work tree.", start_dir.display()))
            .suggest("Name a directory of the repository with --working-dir.")
    })?;
    let message = format!("{} restore points", points.len());
    Ok(answer(RestoreOutput::listed(points), message))
}

/// The task: by its id or a beginning of it, and by its whole id also when the registry does not know it any more.
fn resolve(engine: &Engine, given: &str) -> Result<TaskId, AppError> {
    match (engine.resolve(given), given.parse()) {
        (Err(EngineError::UnknownTask { .. }), Ok(id)) => Ok(id),
        (resolved, _) => Ok(resolved?),
    }
}

fn absolute_directory(context: &Context<'_>, given: Option<&str>) -> PathBuf {
    let path = context.process.current_dir.join(given.unwrap_or_default());
    path.canonicalize().unwrap_or(path)
}
