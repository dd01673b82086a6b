//! What results show of a task that a provider runs: where it runs, and its diff.

use delegator_engine::{DiffOmissions, LeftOut, LeftOutReason, RemoteFacts};
use delegator_registry::{RemoteTask, Task};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::outcome::Warning;

/// Bytes of the diff that a result shows unless the caller requests the output.
const SHOWN_BYTES: usize = 8_000;

/// Files that a warning names.
const NAMED_FILES: usize = 5;

/// Where a task runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemoteData {
    /// Environment id.
    pub environment: String,
    pub provider: &'static str,
    /// The provider's own id of the task; absent until the provider has accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The worker that ran the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The commit that the task started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    /// The branch of that commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch to which the worker pushed the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_branch: Option<String>,
    #[serde(flatten)]
    pub omissions: OmissionsData,
}

/// What the diff of a task does not have.
#[derive(Debug, Default, Serialize, JsonSchema)]
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

/// Warns about everything that the diff of a task does not have.
pub fn omission_warnings(omissions: &DiffOmissions) -> Vec<Warning> {
    let left_out = (omissions.left_out_count > 0).then(|| left_out_message(omissions));
    let too_large = omissions.size_limit.map(too_large_message);
    left_out.into_iter().chain(too_large).map(|message| Warning::new("W_CLOUD_003", message)).collect()
}

pub fn too_large_message(limit: usize) -> String {
    format!("the diff is not stored: it is larger than {} MiB", limit >> 20)
}

fn left_out_message(omissions: &DiffOmissions) -> String {
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
    format!("{} {are} not in the diff: {}{more}", omissions.left_out_count, shown.join(", "))
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
    }
}

impl RemoteData {
    /// `facts` are known of an ended task.
    pub fn of(task: &Task, facts: Option<&RemoteFacts>) -> Option<RemoteData> {
        let RemoteTask { environment, accepted, .. } = task.remote.clone()?;
        let (remote_id, url) = accepted.map_or((None, None), |accepted| (Some(accepted.id), accepted.url));
        let facts = facts.cloned().unwrap_or_default();
        Some(RemoteData {
            environment: environment.id,
            provider: environment.provider.name(),
            remote_id,
            url,
            worker: facts.worker,
            base_commit: facts.base_commit,
            branch: facts.branch,
            pushed_branch: facts.pushed_branch,
            omissions: OmissionsData::of(&facts.omissions),
        })
    }
}

/// The changes of a task that a provider ran, as a unified diff.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffData {
    /// The length of the whole diff.
    pub bytes: u64,
    pub text: String,
    /// The text is only the beginning; the command `diff` prints all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
}

impl DiffData {
    /// The diff, in whole lines up to the budget; `None` if there is none.
    pub fn of(stored: &[u8], budget: Option<usize>) -> Option<DiffData> {
        let text = String::from_utf8_lossy(stored);
        let limit = text.floor_char_boundary(budget.unwrap_or(SHOWN_BYTES));
        let shown = match limit < text.len() {
            true => text[..limit].rfind('\n').map_or(limit, |end| end + 1),
            false => text.len(),
        };
        (!stored.is_empty()).then(|| DiffData {
            bytes: stored.len() as u64,
            text: text[..shown].to_owned(),
            is_truncated: shown < text.len(),
        })
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

    #[test]
    fn a_diff_is_cut_after_a_whole_line_and_marked() {
        let cut = DiffData::of(b"+one\n+two\n+three\n", Some(12)).unwrap();
        assert_eq!((cut.text.as_str(), cut.bytes, cut.is_truncated), ("+one\n+two\n", 17, true));
        let whole = DiffData::of(b"+one\n", None).unwrap();
        assert_eq!((whole.text.as_str(), whole.is_truncated), ("+one\n", false));
        assert!(DiffData::of(b"", None).is_none());
    }
}
