//! What the diff of a task does not have: in our JSON, and as warnings.

use delegator_domain::warning_code::WarningCode;
use delegator_engine::{DiffOmissions, LeftOut, LeftOutReason};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::outcome::Warning;

/// Files that a warning names.
const NAMED_FILES: usize = 5;

/// What the diff of a task does not have.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct OmissionsData {
    /// Changed files that are not in the diff, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub left_out: Vec<LeftOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_count: Option<usize>,
}

impl OmissionsData {
    pub fn of(omissions: &DiffOmissions) -> OmissionsData {
        OmissionsData {
            left_out: omissions.left_out.clone(),
            left_out_count: Some(omissions.left_out_count).filter(|count| *count > 0),
        }
    }
}

/// Warns about everything that the diff of a cloud task does not have.
pub fn omission_warnings(omissions: &DiffOmissions) -> Vec<Warning> {
    let too_large = omissions.size_limit.map(too_large_message);
    let messages = left_out_message(omissions).into_iter().chain(too_large);
    messages.map(|message| Warning::new(WarningCode::NotInCloudDiff, message)).collect()
}

/// Warns that the diff of a worktree also has edits of its setup.
pub fn setup_edits_warning(files: &[String]) -> Option<Warning> {
    let message = format!("edits of the worktree's setup are among the changes of {}", files.join(", "));
    (!files.is_empty()).then(|| Warning::new(WarningCode::SetupEdits, message))
}

pub fn too_large_message(limit: usize) -> String {
    format!("the diff is not stored: it is larger than {} MiB", limit >> 20)
}

/// Names changes that are not in a diff; `None` if all are.
pub fn left_out_message(omissions: &DiffOmissions) -> Option<String> {
    if omissions.left_out_count == 0 {
        return None;
    }
    let shown: Vec<String> = omissions
        .left_out
        .iter()
        .take(NAMED_FILES)
        .map(|file| format!("{} ({})", file.path, reason(file)))
        .collect();
    let more = match omissions.left_out_count.saturating_sub(shown.len()) {
        0 => String::new(),
        count => format!(" and {count} more, see left_out"),
    };
    let are = if omissions.left_out_count == 1 { "change is" } else { "changes are" };
    Some(format!("{} {are} not in the diff: {}{more}", omissions.left_out_count, shown.join(", ")))
}

/// Warns about uncommitted changes that are not in the worktree of a task.
pub fn not_carried_warning(left_out: &[LeftOut]) -> Option<Warning> {
    let shown: Vec<&str> = left_out.iter().take(NAMED_FILES).map(|file| file.path.as_str()).collect();
    let more = match left_out.len().saturating_sub(shown.len()) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let message = format!("not carried into the worktree: {}{more}", shown.join(", "));
    (!left_out.is_empty()).then(|| Warning::new(WarningCode::NotCarried, message))
}

fn reason(file: &LeftOut) -> String {
    match file.reason {
        LeftOutReason::TooLarge => {
            format!("{} MiB; a file over 20 MiB is included only if the agent commits it", file.bytes >> 20)
        }
        LeftOutReason::TooMuch => "new files are over 200 MiB in all".to_owned(),
        LeftOutReason::TooLate => "reading the new files took too long".to_owned(),
        LeftOutReason::Unreadable => "unreadable".to_owned(),
        LeftOutReason::Repository => "a repository of its own".to_owned(),
        LeftOutReason::Ignored => "ignored by git".to_owned(),
        LeftOutReason::Commits => "commits that change no file".to_owned(),
        LeftOutReason::NoContent if file.bytes >> 20 > 0 => {
            format!("{} MiB, so its content is not stored", file.bytes >> 20)
        }
        LeftOutReason::NoContent => "its content is not stored".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_diff_is_named() {
        let file = |path: &str, reason| LeftOut { path: path.to_owned(), reason, bytes: 40 << 20 };
        let mut omissions = DiffOmissions {
            left_out: vec![file("big.bin", LeftOutReason::TooLarge)],
            left_out_count: 1,
            size_limit: None,
        };
        let message = |omissions: &DiffOmissions| omission_warnings(omissions).remove(0).message;
        assert_eq!(
            message(&omissions),
            "1 change is not in the diff: big.bin (40 MiB; a file over 20 MiB is included only if the agent commits it)"
        );
        omissions.left_out = vec![file("sub/", LeftOutReason::Repository); 7];
        omissions.left_out_count = 9;
        let shown = message(&omissions);
        assert!(shown.starts_with("9 changes are") && shown.ends_with("and 4 more, see left_out"), "{shown}");
        omissions = DiffOmissions { size_limit: Some(256 << 20), ..DiffOmissions::default() };
        assert_eq!(message(&omissions), "the diff is not stored: it is larger than 256 MiB");
        assert!(omission_warnings(&DiffOmissions::default()).is_empty());
    }
}
