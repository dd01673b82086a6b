//! `discard`: remove the worktree of a task with its changes.

use delegator_domain::task::GroupId;
use delegator_engine::Target;

use crate::commands::inputs::unconfirmed_removal;
use crate::commands::local::attempts::refuse_unfinished;
use crate::commands::prelude::*;
use crate::output::data::diff::{OmissionsData, omission_warnings};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Discard {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Confirm the removal
    #[serde(default)]
    pub confirm_destructive: bool,
    /// Also delete what exists only in the worktree, such as ignored and large files; that content is lost
    /// for good
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub include_only_copies: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiscardedWorktree {
    pub task_id: String,
    /// The removed directory.
    pub worktree: String,
    /// Whether there were changes in it.
    pub has_changes: bool,
    #[serde(flatten)]
    pub omissions: OmissionsData,
    /// The command that applies the stored diff of the removed worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_command: Option<String>,
}

/// The worktrees of all attempts of a group.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiscardedGroup {
    pub group_id: String,
    pub worktrees: Vec<DiscardedWorktree>,
}

/// The data of `discard`: of a task, or of a group.
#[derive(Debug, JsonSchema)]
pub struct DiscardData {
    #[serde(flatten)]
    pub task: Option<DiscardedWorktree>,
    #[serde(flatten)]
    pub group: Option<DiscardedGroup>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Removes the directory and the agent's commits. The diff stays with the task: diff still shows it, and apply still \
              applies it. If there is more than the diff has, such as ignored and large files, nothing is removed and it is named.",
    shape: Shape::Action("worktree_discarded"),
    danger: Danger::Destructive,
    idempotent: true,
    toolset: Toolset::Worktree,
    failures: &[ErrorCode::NotReady, ErrorCode::WrongState, ErrorCode::Unsupported],
    examples: &[example(
        "mcp-delegator discard T-local-… --confirm-destructive",
        "the removed directory, and how to get the changes back",
    )],
    input: InputType::with_rules::<Discard>(),
    ..CommandSpec::new::<Discard, DiscardData>(&["discard"], "Remove the worktree of a task with its changes")
};

impl InputRules for Discard {
    fn problems(&self) -> Vec<Problem> {
        let advice = "Look at the changes first (diff), then {set:confirm_destructive}.";
        unconfirmed_removal(self.confirm_destructive, "the worktree is deleted", advice)
    }
}

pub fn run(context: &Context<'_>, input: Discard) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    match engine.results().resolve_target(input.task.task_id.as_str())? {
        Target::Task(id) => {
            let task = ended(engine.results().task(&id)?)?;
            let (data, warnings) = discard(context, &engine, &task, input.include_only_copies)?;
            Ok(CommandOutput { warnings, ..CommandOutput::done(data) })
        }
        Target::Group(group) => discard_group(context, &engine, &group, input.include_only_copies),
    }
}

fn discard_group(
    context: &Context<'_>,
    engine: &Engine,
    group: &GroupId,
    may_lose: bool,
) -> Result<CommandOutput, AppError> {
    let attempts = engine.results().group(group)?;
    refuse_unfinished(engine, &attempts)?;
    let (mut worktrees, mut warnings) = (Vec::new(), Vec::new());
    for attempt in &attempts {
        let (worktree, found) = discard(context, engine, attempt, may_lose)?;
        worktrees.push(worktree);
        warnings.extend(found);
    }
    let data = DiscardedGroup { group_id: group.to_string(), worktrees };
    Ok(CommandOutput { warnings, ..CommandOutput::done(data) })
}

fn discard(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    may_lose: bool,
) -> Result<(DiscardedWorktree, Vec<Warning>), AppError> {
    let Some(worktree) = engine.worktrees().of(task)? else {
        let message = "The task has no worktree, so there is nothing to discard.";
        return Err(AppError::new(ErrorCode::Unsupported, message)
            .context("task_id", task.id.as_str())
            .suggest("Revert what it changed in your own directory with 'mcp-delegator restore'."));
    };
    let changes = engine.changes().discard_worktree(&worktree.owner, may_lose, &variables(context))?;
    let omissions = changes.omissions();
    let has_changes = !changes.diff.is_empty() || !changes.is_complete();
    let data = DiscardedWorktree {
        task_id: worktree.owner.to_string(),
        worktree: worktree.path.display().to_string(),
        has_changes,
        omissions: OmissionsData::of(&omissions),
        apply_command: (!changes.diff.is_empty()).then(|| format!("mcp-delegator apply {}", worktree.owner)),
    };
    Ok((data, omission_warnings(&omissions)))
}

impl CommandData for DiscardedGroup {
    fn document(&self) -> Document {
        let row = |removed: &DiscardedWorktree| {
            vec![removed.task_id.clone(), removed.worktree.clone(), removed.has_changes.to_string()]
        };
        let rows = self.worktrees.iter().map(row).collect();
        Document::titled(format!("Removed the worktrees of {}", self.group_id))
            .table(&["task", "removed", "had changes"], rows)
    }
}

impl CommandData for DiscardedWorktree {
    fn document(&self) -> Document {
        Document::titled(format!("Removed {}", self.worktree)).text(match &self.apply_command {
            Some(command) => format!("Its diff is stored. Apply it: {command}"),
            None => "There were no changes in it.".to_owned(),
        })
    }
}
