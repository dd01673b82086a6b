//! Converts errors of a restore into [`AppError`]: error code, context for programs and a suggestion.
//!
//! Overlaps stay typed until here; this is the only place that makes a sentence of them.

use delegator_domain::terminal::escape_line_breaks;
use delegator_engine::{EndStateProblem, Overlap, OverlapPart, RestoreError, WriteError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::error::apply::write_error;
use crate::error::{AppError, ErrorCode};

const RESTORE_ALL: &str = "Commit or copy the later edits that you want to retain, then restore with {input:all}, first with \
                           {input:dry_run}: it reverts the whole work tree, including later edits. {input:undo} reverts \
                           that again.";

/// A change that would be reverted and was changed again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OverlapContext {
    /// The file or directory; for `head` the work tree.
    pub path: String,
    /// What was changed again: the file in the work tree, its permissions, its index entry, or HEAD of the work tree.
    #[schemars(extend("enum" = ["file", "permissions", "index", "head"]))]
    pub part: &'static str,
}

impl OverlapContext {
    fn of(overlap: &Overlap) -> OverlapContext {
        let part = match overlap.part {
            OverlapPart::File => "file",
            OverlapPart::Permissions => "permissions",
            OverlapPart::Index => "index",
            OverlapPart::Head => "head",
        };
        OverlapContext { path: overlap.path.display().to_string(), part }
    }
}

pub(super) fn overlap_error(overlaps: &[Overlap]) -> AppError {
    let text = |overlap: &Overlap| escape_line_breaks(&describe(overlap));
    let texts: Vec<String> = overlaps.iter().map(text).collect();
    let message = format!(
        "What would be restored was changed again since: {}. Nothing was restored.",
        texts.join(", ")
    );
    let contexts: Vec<OverlapContext> = overlaps.iter().map(OverlapContext::of).collect();
    AppError::new(ErrorCode::WrongState, message).context("overlaps", json!(contexts)).suggest(RESTORE_ALL)
}

fn describe(overlap: &Overlap) -> String {
    let path = overlap.path.display();
    match overlap.part {
        OverlapPart::File => path.to_string(),
        OverlapPart::Permissions => format!("the permissions of {path}"),
        OverlapPart::Index => format!("the index entry of {path}"),
        OverlapPart::Head => format!("HEAD of {path}"),
    }
}

pub(super) fn restore_error(error: RestoreError, message: String) -> AppError {
    match error {
        RestoreError::NoEndState { .. } | RestoreError::UnfinishedRestore { .. } => {
            AppError::new(ErrorCode::WrongState, message).suggest(RESTORE_ALL)
        }
        RestoreError::UnreadableEndState { file, problem } => {
            let suggestion = match problem {
                EndStateProblem::Damaged => RESTORE_ALL.to_owned(),
                EndStateProblem::OtherVersion { .. } => {
                    format!("Restore with the version of mcp-delegator that ran the task. Or: {RESTORE_ALL}")
                }
            };
            AppError::new(ErrorCode::WrongState, message)
                .context("file", file.display().to_string())
                .suggest(suggestion)
        }
        RestoreError::PointMissing { .. } => AppError::new(ErrorCode::NotFound, message),
        RestoreError::DifferentRepository { .. }
        | RestoreError::PathBlocked { .. }
        | RestoreError::CheckedOutElsewhere { .. } => AppError::new(ErrorCode::WrongState, message),
        RestoreError::Write(error) => write_error(error, message),
        RestoreError::Git(error) => write_error(WriteError::Git(error), message),
    }
}

#[cfg(test)]
mod tests {
    use delegator_engine::EngineError;

    use super::*;

    #[test]
    fn an_overlap_names_the_path_and_what_of_it_was_changed_again() {
        let parts = [OverlapPart::File, OverlapPart::Permissions, OverlapPart::Index, OverlapPart::Head];
        let overlaps = parts.map(|part| Overlap { path: "/p/a (index)".into(), part });
        let error = AppError::from(EngineError::RestoreOverlap { overlaps: overlaps.into() });
        let context = |part: &str| json!({"path": "/p/a (index)", "part": part});
        assert_eq!(
            error.context["overlaps"],
            json!([context("file"), context("permissions"), context("index"), context("head")])
        );
        assert_eq!(
            error.message,
            "What would be restored was changed again since: /p/a (index), the permissions of /p/a (index), \
             the index entry of /p/a (index), HEAD of /p/a (index). Nothing was restored."
        );
    }
}
