//! `worktrees prune`: remove the worktrees that are unchanged or applied.
//!
//! The engine decides which these are, and looks again before it removes one. A worktree with changes that
//! were not applied, of a task that has not ended, or that changed after the task, is retained.

use delegator_engine::ListedWorktree;
use jiff::Timestamp;

use super::{WorktreeEntry, append_table};
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;
use crate::output::values::format_size;

#[serde_with::apply(bool => #[serde(default)])]
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Prune {
    /// Remove nothing, and show what would be removed
    pub dry_run: bool,
    /// Confirm the removal
    pub confirm_destructive: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PrunedWorktrees {
    pub dry_run: bool,
    /// Those that were removed, or would be.
    pub removed: Vec<WorktreeEntry>,
    pub retained: Vec<WorktreeEntry>,
    pub removed_size_bytes: u64,
}

const PRUNE_PLANNED: &str = "worktree_prune_planned";
const NOTHING_TO_PRUNE: &str = "no_worktree_to_prune";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Keeps every worktree with changes that were not applied, with commits or files that are nowhere else, of a task \
              that has not ended, or that changed after its changes were applied. The branch of a removed worktree goes with it.",
    shape: Shape::Action("worktrees_pruned"),
    other_actions: &[PRUNE_PLANNED, NOTHING_TO_PRUNE],
    danger: Danger::Destructive,
    idempotent: true,
    toolset: Toolset::Hidden,
    examples: &[
        example(
            "mcp-delegator worktrees prune --dry-run",
            "which worktrees would be removed, and which retained",
        ),
        example(
            "mcp-delegator worktrees prune --confirm-destructive",
            "the removed worktrees and their size",
        ),
    ],
    ..CommandSpec::new::<Prune, PrunedWorktrees>(
        &["worktrees", "prune"],
        "Remove the worktrees that are unchanged or applied",
    )
};

pub fn run(context: &Context<'_>, input: Prune) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let (now_ms, variables) = (Timestamp::now().as_millisecond(), variables(context));
    let listed = engine.changes().worktrees(&variables)?;
    let (removable, retained): (Vec<_>, Vec<_>) = listed.into_iter().partition(ListedWorktree::is_removable);
    let entry = |worktree: &ListedWorktree| WorktreeEntry::of(worktree, now_ms);
    let mut retained: Vec<WorktreeEntry> = retained.iter().map(entry).collect();
    let (mut removed, mut warnings) = (Vec::new(), Vec::new());
    if !input.dry_run && !removable.is_empty() {
        confirm(context, &removable, input.confirm_destructive)?;
    }
    for worktree in &removable {
        let is_removed = input.dry_run || {
            let outcome = engine.changes().remove_if_not_needed(&worktree.owner, &variables);
            let problem = match &outcome {
                Ok(true) => None,
                Ok(false) => Some("it has changed, or a task uses it now".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            warnings.extend(problem.map(|problem| {
                let message = format!("the worktree of {} is retained: {problem}", worktree.owner);
                Warning::new(WarningCode::WorktreeNotRemoved, message)
            }));
            matches!(outcome, Ok(true))
        };
        if is_removed { removed.push(entry(worktree)) } else { retained.push(entry(worktree)) }
    }
    let shape = match (input.dry_run, removed.is_empty()) {
        (true, _) => Some(Shape::Action(PRUNE_PLANNED)),
        (false, true) => Some(Shape::Action(NOTHING_TO_PRUNE)),
        (false, false) => None,
    };
    let removed_size_bytes = removed.iter().map(|worktree| worktree.size_bytes).sum();
    let data = PrunedWorktrees { dry_run: input.dry_run, removed, retained, removed_size_bytes };
    Ok(CommandOutput { shape, dry_run: input.dry_run, warnings, ..CommandOutput::done(data) })
}

/// Asks a person; where no person can answer, the input must say it.
fn confirm(context: &Context<'_>, removable: &[ListedWorktree], is_confirmed: bool) -> Result<(), AppError> {
    let size = format_size(removable.iter().map(|worktree| worktree.bytes).sum());
    let count = plural(removable.len(), "worktree");
    if is_confirmed {
        return Ok(());
    }
    if terminal_prompt::can_answer(context) {
        let question = format!("Remove {count} ({size}) that are unchanged or applied?");
        if terminal_prompt::confirm(context, &question, false) {
            return Ok(());
        }
    }
    let message = format!("Nothing was removed: {count} ({size}) could be, and that needs a confirmation.");
    Err(AppError::new(ErrorCode::ConfirmationRequired, message)
        .suggest("Look at them first ({input:dry_run}), then {set:confirm_destructive}."))
}

impl CommandData for PrunedWorktrees {
    fn document(&self) -> Document {
        let (count, size) = (plural(self.removed.len(), "worktree"), format_size(self.removed_size_bytes));
        let title = match (self.removed.is_empty(), self.dry_run) {
            (true, _) => "No worktree can be removed".to_owned(),
            (false, true) => format!("Would remove {count}, {size}"),
            (false, false) => format!("Removed {count}, {size}"),
        };
        let document = append_table(Document::titled(title), &self.removed);
        let heading = (!self.retained.is_empty())
            .then(|| format!("Retained: {}", plural(self.retained.len(), "worktree")));
        append_table(document.with(heading, Document::text), &self.retained)
    }
}
