//! `restore`: revert what a task changed, or restore whole work trees; list and delete restore points.
//!
//! The engine compares the work tree with the states before and after the task, saves the current state as an
//! undo point, then changes files. A restore or deletion requires `confirm_destructive`; `--drop` is refused
//! over MCP.

use delegator_domain::task::TaskIdPrefix;
use delegator_engine::{RestoreError, RestoreReport, RestoreRequest, Variables, resolve_allowed_dir};

use crate::commands::inputs::unconfirmed_removal;
use crate::commands::prelude::*;
use crate::error::engine::directory_problem;
use crate::output::batch::Batch;

mod output;
pub mod undo;

use output::{RestoreOutput, summary_sentence, unattributed_sentence, warnings};

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Restore {
    /// Task id
    #[schemars(extend("x-markers" = [Marker::Positional]))]
    pub task_id: Option<TaskRef>,
    /// Confirm the change
    pub confirm_destructive: bool,
    /// Report what would be done; change nothing
    pub dry_run: bool,
    /// Restore the whole work tree, including what changed after the task or was not changed by its agent
    pub all: bool,
    /// Also move HEAD and its branch back; newer commits stay reachable through the undo point
    pub force: bool,
    /// Revert the last restore of this task
    pub undo: bool,
    /// Delete the task's restore points, including content that exists only there, instead of restoring
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub drop: bool,
    /// List the restore points of a repository, including tasks that are no longer in the registry
    pub list: bool,
    /// Directory in the repository, for --list and for tasks that are no longer in the registry (default: the
    /// current directory)
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<PathBuf>,
}

const LIST: Shape = Shape::List("restore_points");
const NOTHING_TO_RESTORE: &str = "nothing_to_restore";
const RESTORE_PLANNED: &str = "restore_planned";
const POINTS_DELETED: &str = "restore_points_deleted";
const DELETION_PLANNED: &str = "deletion_planned";

pub const SPEC: CommandSpec = CommandSpec {
    exactly_one_of: &["task_id", "list"],
    details: "Reverts what the task changed: files, permissions, directories, index entries and git's settings \
              (configuration, hooks), in every work tree it could write to. What changed later stays; edits of other lines of the same file are merged. If a later \
              edit overlaps, nothing is restored and the files are named. Also left unchanged: what changed during \
              the task but is not attributed to the agent, and files that the restore point excludes. --all restores \
              the whole tree to its state before the task. HEAD and its branch move only with --force. The current \
              state is saved first, for --undo. Refused while a writing task is active. Works for tasks \
              that are no longer in the registry, from within their repository.",
    shape: Shape::Action("tree_restored"),
    other_shape: Some(LIST),
    other_actions: &[NOTHING_TO_RESTORE, RESTORE_PLANNED, POINTS_DELETED, DELETION_PLANNED],
    danger: Danger::Destructive,
    failures: &[
        ErrorCode::WrongState,
        ErrorCode::NotReady,
        ErrorCode::TimeoutWall,
        ErrorCode::PartialFailure,
        ErrorCode::AllItemsFailed,
    ],
    examples: &[
        example(
            "mcp-delegator restore T-local-… --dry-run",
            "what would be restored, without changing anything",
        ),
        example("mcp-delegator restore --list", "the restore points of the repository here"),
    ],
    input: InputType::with_rules::<Restore>(),
    ..CommandSpec::new::<Restore, RestoreOutput>(&["restore"], "Revert what a task changed")
};

impl InputRules for Restore {
    fn problems(&self) -> Vec<Problem> {
        let together = |field: &str, other: &str| {
            vec![Problem::excluded(field, other).suggest(Some("Give only one of them."))]
        };
        let ways = [("undo", self.undo), ("all", self.all), ("force", self.force), ("drop", self.drop)];
        let mut given = ways.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        if self.list {
            return given.next().map(|field| together(field, "list")).unwrap_or_default();
        }
        let other = given.find(|name| self.drop && *name != "drop");
        let mut problems = other.map(|field| together(field, "drop")).unwrap_or_default();
        if !self.confirm_destructive && !self.dry_run {
            let reason = if self.drop {
                "content that exists only in the restore point is lost"
            } else {
                "files in the work tree are overwritten and removed"
            };
            let hint = "Check with {input:dry_run} first, then {set:confirm_destructive}.";
            problems.extend(unconfirmed_removal(false, reason, hint));
        }
        problems
    }

    fn preflight(&self, context: &PreflightContext<'_>) -> Vec<Problem> {
        let Some(given) = &self.working_dir else { return Vec::new() };
        let path = context.current_dir.join(given);
        let problem = resolve_allowed_dir(&path, &context.config.settings.allowed_roots).err();
        problem.map(|problem| directory_problem("working_dir", &path, &problem)).into_iter().collect()
    }
}

pub fn run(context: &Context<'_>, input: Restore) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let environment = variables(context);
    let start_dir = absolute_directory(context, input.working_dir.as_deref());
    if input.list {
        return list(&engine, &start_dir, &environment);
    }
    let id = resolve(&engine, input.task_id.as_ref().map(TaskRef::as_str).unwrap_or_default())?;
    if input.drop {
        let points = engine.restore_points().delete(&id, input.dry_run, &environment, &start_dir)?;
        let (action, done) =
            if input.dry_run { (DELETION_PLANNED, "would be deleted") } else { (POINTS_DELETED, "deleted") };
        let message = format!("{} restore points {done}", points.len());
        let data = RestoreOutput::dropped(&id, points, input.dry_run);
        return Ok(command_output(data, message, Shape::Action(action)));
    }
    let request = RestoreRequest {
        dry_run: input.dry_run,
        whole_tree: input.all,
        include_head: input.force,
        undo: input.undo,
    };
    revert(context, &engine, &id, request, &start_dir)
}

fn revert(
    context: &Context<'_>,
    engine: &Engine,
    id: &TaskId,
    request: RestoreRequest,
    start_dir: &Path,
) -> Result<CommandOutput, AppError> {
    let batch = Batch::new(context.screen.presentation.call_syntax(), request.dry_run);
    let restored = match engine.changes().restore(id, request, &variables(context), start_dir) {
        Err(EngineError::RestoreIncomplete { restored, failed, untouched, changes, source }) => {
            let batch = incomplete_batch(batch, &restored, &failed, &untouched, source);
            let data = RestoreOutput::incomplete(id, changes, batch.result());
            return Ok(batch.into_output(data));
        }
        restored => restored?,
    };
    let unattributed = unattributed_sentence(&restored);
    let message = unattributed.clone().unwrap_or_else(|| summary_sentence(&restored, request.dry_run));
    let warnings = warnings(&restored, request);
    // What was interrupted and is complete now is no failure.
    let unattributed = unattributed.filter(|_| !request.dry_run && restored.recovered.is_empty());
    let batch = batch_of(batch, &restored);
    let result = (batch.failed_count() > 0).then(|| batch.result());
    let data = RestoreOutput::restored(id, restored, request.dry_run, result);
    if let Some(message) = unattributed.filter(|_| batch.failed_count() == 0) {
        let error = AppError::new(ErrorCode::WrongState, format!("{message}."))
            .suggest("See kept for the files. Check with {input:all} and {input:dry_run} what it reverts.");
        return Ok(CommandOutput { warnings, ..CommandOutput::failed(error, data) });
    }
    let shape = match (request.dry_run, data.is_restored) {
        (true, _) => Some(Shape::Action(RESTORE_PLANNED)),
        (false, false) => Some(Shape::Action(NOTHING_TO_RESTORE)),
        (false, true) => None,
    };
    Ok(CommandOutput { warnings, message: Some(message), shape, ..batch.into_output(data) })
}

/// One item per work tree; those whose repository or restore point is missing failed.
fn batch_of<'a>(mut batch: Batch<'a>, restored: &RestoreReport) -> Batch<'a> {
    for tree in &restored.trees {
        let changed_count = tree.plan.write.len() + tree.plan.modes.len() + tree.plan.remove.len();
        batch.succeeded(tree.point.top_level.to_string_lossy(), json!({"changed_count": changed_count}));
    }
    for (path, problem) in &restored.unavailable {
        batch.failed(path.to_string_lossy(), AppError::new(ErrorCode::NotFound, problem.clone()));
    }
    batch
}

fn incomplete_batch<'a>(
    mut batch: Batch<'a>,
    restored: &[PathBuf],
    failed: &Path,
    untouched: &[PathBuf],
    source: RestoreError,
) -> Batch<'a> {
    for tree in restored {
        batch.succeeded(tree.to_string_lossy(), json!({}));
    }
    let error = AppError::from(EngineError::Restore(source));
    let code = error.code;
    batch.failed(
        failed.to_string_lossy(),
        error.suggest("Run restore again, or revert it with {input:undo} and {input:all}."),
    );
    for tree in untouched {
        let message = format!("Not restored, because restoring {} failed.", failed.display());
        batch.failed(tree.to_string_lossy(), AppError::new(code, message));
    }
    batch
}

fn command_output(data: RestoreOutput, message: String, shape: Shape) -> CommandOutput {
    CommandOutput { shape: Some(shape), ..CommandOutput::done(data).message(message) }
}

fn list(engine: &Engine, start_dir: &Path, environment: &Variables) -> Result<CommandOutput, AppError> {
    let points = engine.restore_points().list(start_dir, environment)?;
    let points = points.ok_or_else(|| {
        AppError::new(ErrorCode::NotFound, format!("{} is not in a git work tree.", start_dir.display()))
            .suggest("Give a directory of the repository as {input:working_dir}.")
    })?;
    let message = format!("{} restore points", points.len());
    Ok(command_output(RestoreOutput::listed(points), message, LIST))
}

/// Finds the task by its id or a prefix. A complete id is accepted even if the task is no longer in the
/// registry.
fn resolve(engine: &Engine, given: &str) -> Result<TaskId, AppError> {
    let complete = given.parse::<TaskIdPrefix>().ok().and_then(|prefix| prefix.complete());
    match (engine.results().resolve(given), complete) {
        (Err(EngineError::UnknownTask { .. }), Some(id)) => Ok(id),
        (resolved, _) => Ok(resolved?),
    }
}

fn absolute_directory(context: &Context<'_>, given: Option<&Path>) -> PathBuf {
    let path = context.process.current_dir.join(given.unwrap_or(Path::new("")));
    path.canonicalize().unwrap_or(path)
}
