//! `undo`: revert what a task changed, or the last undo of it.
//!
//! For people: shows what would be reverted and asks. Scripts use `restore`.

use delegator_engine::{RestoreReport, RestoreRequest, RestoredTree, Target, Variables};

use super::{NOTHING_TO_RESTORE, RESTORE_PLANNED, RestoreOutput, absolute_directory, resolve, revert};
use crate::commands::inputs::unconfirmed_removal;
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Undo {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Revert without a question
    #[serde(default)]
    pub confirm_destructive: bool,
    /// Report what would be reverted; change nothing
    #[serde(default)]
    pub dry_run: bool,
    /// Also move HEAD and its branch back; newer commits stay reachable through the undo point
    #[serde(default)]
    pub force: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Shows what would be reverted and asks. Undo the same task again to get its changes back. What you changed \
              later stays, as with restore, which has more options.",
    shape: super::SPEC.shape,
    other_actions: &[NOTHING_TO_RESTORE, RESTORE_PLANNED],
    danger: Danger::Destructive,
    toolset: Toolset::Hidden,
    failures: super::SPEC.failures,
    examples: &[
        example(
            "mcp-delegator undo --last --dry-run",
            "what would be reverted of the last task of this directory",
        ),
        example("mcp-delegator undo T-local-… -y", "reverts this task without a question"),
    ],
    ..CommandSpec::new::<Undo, RestoreOutput>(&["undo"], "Revert what a task changed, or its last undo")
};

/// Files that are listed before the question.
const MAX_LISTED: usize = 20;

pub fn run(context: &Context<'_>, input: Undo) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let (variables, directory) = (variables(context), absolute_directory(context, None));
    let id = changed_by(&engine, input.task.task_id.as_str(), &variables, &directory)?;
    let undo = engine.changes().is_reverted(&id, &variables, &directory)?;
    let request =
        RestoreRequest { dry_run: input.dry_run, whole_tree: false, include_head: input.force, undo };
    if !input.dry_run && !input.confirm_destructive {
        let plan = RestoreRequest { dry_run: true, ..request };
        let planned = engine.changes().restore(&id, plan, &variables, &directory);
        let planned = planned.map_err(|error| nothing_to_undo(&engine, error))?;
        let changes = planned_changes(&planned);
        if !changes.is_empty() {
            if terminal_prompt::is_attended(context) {
                context.screen.announce_always(&question(&id, undo, &changes));
            }
            let hint = "Check with {input:dry_run} first, then {set:confirm_destructive}.";
            let reason = "the files in the work tree are changed";
            terminal_prompt::consent(
                context,
                AppError::from_problems(unconfirmed_removal(false, reason, hint)),
            )?;
        }
    }
    revert(context, &engine, &id, request, &directory)
}

/// The task that changed the user's work tree: of a group, the attempt that was applied.
fn changed_by(
    engine: &Engine,
    given: &str,
    variables: &Variables,
    directory: &Path,
) -> Result<TaskId, AppError> {
    let Ok(Target::Group(group)) = engine.results().resolve_target(given) else {
        return resolve(engine, given);
    };
    let plan = RestoreRequest { dry_run: true, whole_tree: false, include_head: false, undo: false };
    let is_applied = |task: &Task| {
        let planned = engine.changes().restore(&task.id, plan, variables, directory);
        !matches!(planned, Err(EngineError::NoRestorePoint { .. }))
    };
    let attempts = engine.results().recorded_group(&group)?;
    attempts.into_iter().find(is_applied).map(|task| task.id).ok_or_else(|| {
        let message = format!("No attempt of {group} was applied, so there is nothing to undo.");
        let apply = NextCall::for_task(&["apply"], group.as_str());
        AppError::new(ErrorCode::WrongState, message).suggest_call("To apply one: {call}", apply)
    })
}

/// An isolated task changes the user's work tree only when it is applied.
fn nothing_to_undo(engine: &Engine, error: EngineError) -> AppError {
    let EngineError::NoRestorePoint { task, .. } = &error else { return error.into() };
    let is_isolated = engine.results().task(task).is_ok_and(|task| task.worktree.is_some());
    if !is_isolated {
        return error.into();
    }
    let message =
        format!("{task} worked in a worktree of its own and was not applied, so there is nothing to undo.");
    AppError::new(ErrorCode::WrongState, message)
        .context("task_id", task.as_str())
        .suggest_call("To remove its worktree: {call}", NextCall::for_task(&["discard"], task.as_str()))
}

fn question(id: &TaskId, undo: bool, changes: &[String]) -> String {
    let subject = if undo { format!("the last undo of {id}") } else { format!("what {id} changed") };
    let mut lines = vec![format!("To revert {subject}:")];
    lines.extend(changes.iter().take(MAX_LISTED).map(|change| format!("  {change}")));
    if let Some(more @ 1..) = changes.len().checked_sub(MAX_LISTED) {
        lines.push(format!("  and {}", plural(more as u64, "more change")));
    }
    lines.join("\n")
}

/// What would be done, in words: one line for each path.
fn planned_changes(planned: &RestoreReport) -> Vec<String> {
    let several = planned.trees.len() > 1;
    let mut changes: Vec<String> = Vec::new();
    for RestoredTree { plan, point, head_restored, .. } in &planned.trees {
        let shown = |path: &String| match several {
            true => point.top_level.join(path).display().to_string(),
            false => path.clone(),
        };
        let lists = [
            ("restore", &plan.write),
            ("remove", &plan.remove),
            ("restore the permissions of", &plan.modes),
            ("create the directory", &plan.make_directories),
            ("remove the directory", &plan.remove_directories),
        ];
        let paths = lists.iter().flat_map(|(verb, paths)| paths.iter().map(move |path| (verb, path)));
        changes.extend(paths.map(|(verb, path)| format!("{verb} {}", shown(path))));
        changes.extend(plan.index_differs.then(|| "restore what is staged".to_owned()));
        changes.extend(head_restored.then(|| "move HEAD back".to_owned()));
    }
    changes.extend(planned.settings.iter().map(|path| format!("restore {}", path.display())));
    changes
}
