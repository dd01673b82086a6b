//! `worktrees`: the worktrees of isolated tasks, and what is in each.
//!
//! Each worktree is compared with what it started from. `worktrees prune` removes those of which nothing would
//! be lost.

pub mod prune;

use delegator_engine::{ListedWorktree, WorktreeContent};
use jiff::Timestamp;

use crate::commands::prelude::*;
use crate::output::documents::document::truncate_cell;
use crate::output::values::{format_age_seconds, format_size};
use crate::spec::paging::{Paging, paginate};

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorktreeList {
    /// The oldest first.
    pub worktrees: Vec<WorktreeEntry>,
    pub total_size_bytes: u64,
    /// How many `worktrees prune` would remove.
    pub removable_count: usize,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorktreeEntry {
    /// The task for which it was created.
    pub task_id: String,
    pub title: String,
    pub path: String,
    pub branch: String,
    /// The work tree from which it was created.
    pub repository: String,
    /// When its task was submitted.
    pub created_ts: UtcTime,
    pub age_seconds: u64,
    pub size_bytes: u64,
    /// What is in it. Absent if it could not be compared.
    #[schemars(extend("enum" = WorktreeContent::NAMES))]
    pub content: Option<&'static str>,
    /// Absent if it could not be compared.
    pub changed_file_count: Option<usize>,
    pub lines_added: Option<u64>,
    pub lines_deleted: Option<u64>,
    /// Whether its changes were applied at some time.
    pub is_applied: bool,
    /// Whether `worktrees prune` would remove it.
    pub is_removable: bool,
    /// A task that works in it, or will.
    pub used_by_task_id: Option<String>,
    /// Why it could not be compared.
    pub problem: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Compares each worktree with what it started from, which may take seconds.",
    shape: Shape::List("worktrees"),
    toolset: Toolset::Hidden,
    examples: &[
        example("mcp-delegator worktrees", "each worktree, its size, and what is in it"),
        example("mcp-delegator worktrees prune --dry-run", "which of them would be removed"),
    ],
    ..CommandSpec::read_only::<Paging, WorktreeList>(&["worktrees"], "List the worktrees of isolated tasks")
};

pub fn run(context: &Context<'_>, paging: Paging) -> Result<CommandOutput, AppError> {
    let listed = engine(context)?.changes().worktrees(&variables(context))?;
    let now_ms = Timestamp::now().as_millisecond();
    let all: Vec<WorktreeEntry> = listed.iter().map(|worktree| WorktreeEntry::of(worktree, now_ms)).collect();
    let total_size_bytes = all.iter().map(|worktree| worktree.size_bytes).sum();
    let removable_count = all.iter().filter(|worktree| worktree.is_removable).count();
    let query = json!(["worktrees", all.iter().map(|worktree| &worktree.task_id).collect::<Vec<_>>()]);
    let (worktrees, page) = paginate(all, &paging, &query)?;
    Ok(CommandOutput::done(WorktreeList { worktrees, total_size_bytes, removable_count })
        .fact("count", page.count)
        .with_page("worktrees", page))
}

impl WorktreeEntry {
    pub fn of(listed: &ListedWorktree, now_ms: i64) -> WorktreeEntry {
        let age_ms = now_ms.saturating_sub(listed.submitted_at_ms).max(0);
        WorktreeEntry {
            task_id: listed.owner.to_string(),
            title: listed.title.clone(),
            path: listed.path.display().to_string(),
            branch: listed.branch.clone(),
            repository: listed.repository.display().to_string(),
            created_ts: UtcTime::from_ms(listed.submitted_at_ms),
            age_seconds: age_ms.unsigned_abs() / 1000,
            size_bytes: listed.bytes,
            content: listed.content.as_ref().ok().map(|content| content.name()),
            changed_file_count: listed.changes.map(|changes| changes.files),
            lines_added: listed.changes.map(|changes| changes.lines_added),
            lines_deleted: listed.changes.map(|changes| changes.lines_deleted),
            is_applied: listed.is_applied,
            is_removable: listed.is_removable(),
            used_by_task_id: listed.used_by.as_ref().map(ToString::to_string),
            problem: listed.content.as_ref().err().cloned(),
        }
    }

    /// What is in it, and who uses it, for a person.
    pub fn content_text(&self) -> String {
        let content = match self.content.and_then(WorktreeContent::from_name) {
            Some(WorktreeContent::Incomplete) => "not created".to_owned(),
            Some(WorktreeContent::ChangedAfterApply) => "changed after apply".to_owned(),
            Some(WorktreeContent::OnlyCopies) => "commits or ignored files only here".to_owned(),
            Some(content) => content.name().to_owned(),
            None => format!("unknown: {}", self.problem.as_deref().unwrap_or_default()),
        };
        match &self.used_by_task_id {
            Some(task) if *task == self.task_id => "in use".to_owned(),
            Some(task) => format!("in use by {task}"),
            None => content,
        }
    }

    fn changes_text(&self) -> Option<String> {
        let (files, added, deleted) = (self.changed_file_count?, self.lines_added?, self.lines_deleted?);
        (files > 0).then(|| format!("{} +{added} -{deleted}", plural(files, "file")))
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.task_id.clone(),
            self.content_text(),
            cell(self.changes_text().as_ref()),
            format_size(self.size_bytes),
            format_age_seconds(self.age_seconds),
            truncate_cell(&self.title, MAX_TITLE_BYTES),
            self.branch.clone(),
            self.path.clone(),
        ]
    }
}

const MAX_TITLE_BYTES: usize = 60;
const COLUMNS: [&str; 8] =
    ["worktree of", "content", "changes", "size", "age", "task", "branch", "directory"];

/// A table of worktrees, in every command that lists some.
pub fn append_table(document: Document, worktrees: &[WorktreeEntry]) -> Document {
    document.table(&COLUMNS, worktrees.iter().map(WorktreeEntry::row).collect())
}

impl CommandData for WorktreeList {
    fn document(&self) -> Document {
        if self.worktrees.is_empty() {
            return Document::titled("No worktrees");
        }
        let title = plural(self.worktrees.len(), "worktree");
        let document = Document::titled(format!("{title}, {}", format_size(self.total_size_bytes)));
        let prune = (self.removable_count > 0).then(|| NextCall::new(&["worktrees", "prune"]));
        append_table(document, &self.worktrees).with(prune.map(Block::Next), Document::block)
    }
}
