//! What the result of an isolated task begins with.

use super::*;
use crate::output::data::files::FileOperations;
use crate::output::data::task::Metadata;
use crate::output::data::work_trees::WorktreeData;
use crate::output::documents::text::TextStyle;
use crate::spec::ServedTools;

/// The result of an isolated task that changed files.
fn isolated(worktree_state: &'static str) -> TaskResult {
    let worktree = WorktreeData {
        worktree: "/w".to_owned(),
        worktree_state,
        apply_command: None,
        owner: "T-local-0123456789".to_owned(),
    };
    let file_operations =
        FileOperations { modified_files: vec!["a".to_owned()], scope: "whole", ..FileOperations::default() };
    let metadata = Metadata { file_operations, ..Metadata::default() };
    let report = TaskReport { worktree: Some(worktree), metadata, ..TaskReport::default() };
    TaskResult {
        task_id: "T-local-9876543210".to_owned(),
        state: "completed",
        report,
        ..TaskResult::default()
    }
}

#[test]
fn an_isolated_result_begins_with_what_to_do_with_it() {
    let document = isolated("present").document();
    let text = document.to_text(TextStyle::default());
    let expected = "Task T-local-9876543210 completed\n\n\
        Your work tree is unchanged; the changes are in the worktree of the task.\n\n\
        Apply them: mcp-delegator apply T-local-0123456789\n\n\
        Discard them: mcp-delegator discard T-local-0123456789\n\n";
    assert!(text.starts_with(expected), "{text}");
    let served = ServedTools { prefix: "_codex_".to_owned(), names: vec!["apply".to_owned()] };
    let markdown = document.to_markdown(CallSyntax::Tools(&served));
    let expected = "# Task T-local-9876543210 completed\n\n\
        Your work tree is unchanged; the changes are in the worktree of the task.\n\n\
        Apply them: _codex_apply {\"task_id\":\"T-local-0123456789\"}\n\n\
        Discard them: mcp-delegator discard T-local-0123456789\n\n";
    assert!(markdown.starts_with(expected), "{markdown}");
}

#[test]
fn nothing_is_to_be_applied_without_changes_or_without_a_worktree() {
    let mut unchanged = isolated("present");
    unchanged.report.metadata.file_operations.modified_files.clear();
    let text = unchanged.document().to_text(TextStyle::default());
    assert!(
        text.contains("the task changed nothing in its own either.") && !text.contains("apply"),
        "{text}"
    );
    for state in ["planned", "applied", "discarded"] {
        let text = isolated(state).document().to_text(TextStyle::default());
        assert!(!text.contains("Your work tree"), "{state}: {text}");
    }
}
