//! `apply`: take over the changes of a task from its worktree, or of a cloud task.

use delegator_domain::task::{GroupId, Verification};
use delegator_engine::{
    ApplyOptions, ComparedGroup, DiffApplication, Target, WorktreeBranch, WorktreeChanges,
};

use crate::commands::cloud::AttemptInput;
use crate::commands::cloud::apply::{
    APPLY_PLANNED, AppliedAttempt, AppliedDiff, BRANCH_CREATED, NOTHING_TO_APPLY, apply_remote,
    given_directory, recovery_warning,
};
use crate::commands::local::attempts::{chosen, compare, refuse_unfinished};
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;
use crate::error::work_trees::conflict_error;
use crate::output::data::diff::{omission_warnings, setup_edits_warning};

#[serde_with::apply(bool => #[serde(default)])]
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Apply {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Report what would change; change nothing
    pub check: bool,
    /// Also commit the changes on the current branch; hooks are not run
    pub commit: bool,
    /// Message of the commit (default: title, summary and id of the task)
    #[schemars(length(min = 1, max = 10_000))]
    pub message: Option<String>,
    /// Create this branch with the changes and the commits of the agent, and leave your work tree alone
    #[schemars(length(min = 1, max = 250))]
    pub branch: Option<String>,
    /// Directory in the work tree to change (default: that of the task)
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Path]))]
    pub working_dir: Option<PathBuf>,
    #[serde(flatten)]
    pub attempt: AttemptInput,
    /// Keep the worktree of the task; of a group, those of all attempts
    pub keep: bool,
    /// Also apply changes whose verify command did not pass, or an attempt that is not the recommended one
    pub force: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Merges three-way onto your present files: your own changes of other lines stay. If one file has a conflict, \
              nothing is changed and all conflicts are named. Afterwards the worktree of the task is removed. The state \
              before is saved, so that restore reverts it.",
    shape: Shape::Action("diff_applied"),
    other_actions: &[APPLY_PLANNED, NOTHING_TO_APPLY, BRANCH_CREATED],
    network: true,
    toolset: Toolset::Worktree,
    failures: &[
        ErrorCode::NotReady,
        ErrorCode::WrongState,
        ErrorCode::Unsupported,
        ErrorCode::ConfirmationRequired,
    ],
    examples: &[
        example(
            "mcp-delegator apply T-local-… --check",
            "what would change; fails on a conflict as apply would",
        ),
        example("mcp-delegator apply T-local-…", "the changes, in your work tree"),
        example("mcp-delegator apply T-local-… --commit", "the same, committed"),
        example(
            "mcp-delegator apply G-local-…",
            "the recommended attempt of a group; the others are discarded",
        ),
    ],
    input: InputType::with_rules::<Apply>(),
    ..CommandSpec::new::<Apply, AppliedDiff>(
        &["apply"],
        "Apply the changes of an isolated task to your work tree",
    )
};

impl InputRules for Apply {
    fn problems(&self) -> Vec<Problem> {
        let together =
            |one: &str, other: &str, are_given: bool| are_given.then(|| Problem::excluded(one, other));
        let (has_branch, has_directory) = (self.branch.is_some(), self.working_dir.is_some());
        let is_message_alone = self.message.is_some() && !self.commit && !has_branch;
        let problems = [
            together("branch", "commit", has_branch && self.commit),
            together("branch", "check", has_branch && self.check),
            together("branch", "working_dir", has_branch && has_directory),
            together("commit", "check", self.commit && self.check),
            is_message_alone.then(|| Problem::invalid("message", "needs {input:commit} or {input:branch}")),
        ];
        problems.into_iter().flatten().collect()
    }
}

pub fn run(context: &Context<'_>, input: Apply) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = match engine.results().resolve_target(input.task.task_id.as_str())? {
        Target::Task(id) => id,
        Target::Group(group) => return apply_attempt(context, &engine, &group, &input),
    };
    let task = ended(engine.results().task(&id)?)?;
    let group = task.group.as_ref().filter(|_| !input.check && !input.force);
    let compared = group.map(|member| compare(context, &engine, &member.group)).transpose()?;
    confirm_choice(context, &engine, &task, compared.as_ref(), &input)?;
    let (data, warnings) = match (&task.worktree, &task.remote) {
        (Some(owner), _) => apply_isolated(context, &engine, &task, owner, &input)?,
        (None, Some(_)) if input.commit || input.branch.is_some() => {
            let message = "The changes of a cloud task can be applied, but not be committed by this command.";
            return Err(AppError::new(ErrorCode::Unsupported, message).context("task_id", task.id.as_str()));
        }
        (None, Some(_)) => {
            let (attempt, dry_run) = (input.attempt.number(), input.check);
            let applied = apply_remote(context, &engine, &task, attempt, input.working_dir, dry_run)?;
            refuse_conflicts(applied)?
        }
        (None, None) => {
            let message = "The task worked in your own directory, so its changes are there already.";
            return Err(AppError::new(ErrorCode::Unsupported, message)
                .context("task_id", task.id.as_str())
                .suggest("Run a task with {input:isolation} worktree to decide afterwards."));
        }
    };
    Ok(data.into_output(warnings))
}

/// A check fails as applying would.
fn refuse_conflicts(checked: (AppliedDiff, Vec<Warning>)) -> Result<(AppliedDiff, Vec<Warning>), AppError> {
    let conflicts = &checked.0.conflicts;
    if conflicts.is_empty() { Ok(checked) } else { Err(conflict_error(conflicts)) }
}

fn apply_attempt(
    context: &Context<'_>,
    engine: &Engine,
    group: &GroupId,
    input: &Apply,
) -> Result<CommandOutput, AppError> {
    refuse_unfinished(engine, &engine.results().group(group)?)?;
    let compared = compare(context, engine, group)?;
    let attempt = chosen(group, &compared, input.attempt.attempt)?;
    let task = &attempt.task;
    confirm_choice(context, engine, task, Some(&compared), input)?;
    let (data, mut warnings) = apply_isolated(context, engine, task, &task.id, input)?;
    let mut discarded = Vec::new();
    for other in compared.attempts.iter().filter(|other| other.number != attempt.number) {
        if input.check || input.keep {
            break;
        }
        match engine
            .changes()
            .discard_worktree(&other.task.id, false, &variables(context))
            .map_err(AppError::from)
        {
            Ok(_) => discarded.push(other.task.id.to_string()),
            // The changes are applied, so this call has succeeded.
            Err(error) => warnings.push(not_discarded(&other.task.id, &error.message)),
        }
    }
    let reason = input.attempt.attempt.is_none().then(|| compared.recommendation.reason.clone());
    let applied = AppliedAttempt {
        group_id: group.to_string(),
        attempt: attempt.number,
        recommendation_reason: reason,
        discarded_task_ids: discarded,
    };
    Ok(AppliedDiff { group: Some(applied), ..data }.into_output(warnings))
}

/// Asks before changes are applied that did not pass their check, or that are not the recommended ones. Where
/// no person can answer, `force` must be given.
fn confirm_choice(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    compared: Option<&ComparedGroup>,
    input: &Apply,
) -> Result<(), AppError> {
    if input.check || input.force {
        return Ok(());
    }
    let outcome = engine.results().verification(task)?.filter(|outcome| *outcome != Verification::Verified);
    let attempt = task.group.as_ref().map(|member| member.attempt);
    let objection = match (outcome, compared.map(|compared| &compared.recommendation)) {
        (Some(outcome), _) => format!("its verify command did not pass ({})", outcome.name()),
        (None, Some(recommended)) if recommended.attempt != attempt => match recommended.attempt {
            Some(number) => format!("attempt {number} is recommended: {}", recommended.reason),
            None => format!("no attempt is recommended: {}", recommended.reason),
        },
        _ => return Ok(()),
    };
    let question = format!("Apply {} although {objection}?", task.id);
    let is_terminal = context.surface == Surface::CommandLine && terminal_prompt::can_answer(context);
    if is_terminal && terminal_prompt::confirm(context, &question, false) {
        return Ok(());
    }
    let message = format!("{} was not applied: {objection}.", task.id);
    Err(AppError::new(ErrorCode::ConfirmationRequired, message)
        .context("task_id", task.id.as_str())
        .suggest("If it is intended, {set:force}."))
}

fn discard_command(task: &TaskId) -> String {
    format!("'mcp-delegator discard {task} --confirm-destructive --include-only-copies'")
}

fn not_discarded(task: &TaskId, reason: &str) -> Warning {
    let message = format!("the worktree of {task} is kept: {reason}; {} removes it", discard_command(task));
    Warning::new(WarningCode::WorktreeNotRemoved, message)
}

fn apply_isolated(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    owner: &TaskId,
    input: &Apply,
) -> Result<(AppliedDiff, Vec<Warning>), AppError> {
    let variables = variables(context);
    let message = input.message.clone().unwrap_or_else(|| commit_message(task));
    if let Some(branch) = &input.branch {
        let created = engine.changes().branch_worktree(owner, branch, &message, input.keep, &variables)?;
        return Ok(branch_output(owner, &created, input.keep));
    }
    let given = input.working_dir.clone().map(|given| given_directory(context, given)).transpose()?;
    let options = ApplyOptions {
        dry_run: input.check,
        commit: input.commit.then_some(message.as_str()),
        keep: input.keep,
    };
    let done = engine.changes().apply_worktree(&task.id, owner, options, given.as_deref(), &variables)?;
    let omissions = done.changes.omissions();
    let data = AppliedDiff {
        is_worktree_removed: (!input.check).then_some(done.is_removed),
        ..AppliedDiff::of(owner, &done.applied, &omissions, input.check)
    };
    let is_retained = !input.check && !input.keep && !done.is_removed;
    let mut warnings = warnings(owner, &done.changes, is_retained);
    warnings.extend(done.applied.recovery.as_ref().map(recovery_warning));
    refuse_conflicts((data, warnings))
}

fn branch_output(owner: &TaskId, created: &WorktreeBranch, keep: bool) -> (AppliedDiff, Vec<Warning>) {
    let omissions = created.changes.omissions();
    let data = AppliedDiff {
        summary: format!("Branch {} has the changes", created.branch),
        commit: Some(created.commit.clone()),
        branch: Some(created.branch.clone()),
        is_worktree_removed: Some(created.is_removed),
        ..AppliedDiff::of(owner, &DiffApplication::default(), &omissions, false)
    };
    (data, warnings(owner, &created.changes, !keep && !created.is_removed))
}

fn commit_message(task: &Task) -> String {
    let summary = task.ended.as_ref().and_then(|ended| ended.summary.as_deref()).unwrap_or_default();
    format!("{}\n\n{summary}\n\nTask: {}\n", task.title, task.id)
}

/// What is not applied, or was applied although it is not the agent's, and a worktree that was kept because
/// of it.
fn warnings(owner: &TaskId, changes: &WorktreeChanges, is_retained: bool) -> Vec<Warning> {
    let mut warnings = omission_warnings(&changes.omissions());
    warnings.extend(setup_edits_warning(&changes.with_setup_edits));
    if is_retained && !changes.is_removed {
        let reason = if changes.is_complete() {
            "a task works in it".to_owned()
        } else {
            format!("not everything in it was applied; {} removes it", discard_command(owner))
        };
        let message = format!("the worktree of {owner} is kept, because {reason}");
        warnings.push(Warning::new(WarningCode::WorktreeInUse, message));
    }
    warnings
}
