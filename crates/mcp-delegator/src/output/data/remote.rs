//! What results show of a task that a provider runs: where it runs, and its diff.

use delegator_engine::RemoteFacts;
use delegator_registry::{RemoteTask, Task};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::data::diff_omissions::OmissionsData;
use crate::output::data::shown_diff::shorten;

/// Bytes of the diff that a result shows unless the caller requests the output.
const SHOWN_BYTES: usize = 8_000;

/// Where a task runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RemoteData {
    /// Environment id.
    pub environment: String,
    pub provider: &'static str,
    /// The provider's own id of the task; absent until the provider has accepted it.
    pub remote_id: Option<String>,
    pub url: Option<String>,
    /// The worker that ran the task.
    pub worker: Option<String>,
    /// The commit that the task started from.
    pub base_commit: Option<String>,
    /// The branch of that commit.
    pub branch: Option<String>,
    /// The branch to which the worker pushed the changes.
    pub pushed_branch: Option<String>,
    #[serde(flatten)]
    pub omissions: OmissionsData,
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
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiffData {
    /// The length of the whole diff.
    pub bytes: u64,
    pub text: String,
    /// Parts are left out of the text, each replaced by a line in brackets; the command `diff` prints all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
}

impl DiffData {
    /// The diff, shortened to the budget; `None` if there is none.
    pub fn of(stored: &[u8], budget: Option<usize>) -> Option<DiffData> {
        let text = String::from_utf8_lossy(stored);
        let shortened = shorten(&text, budget.unwrap_or(SHOWN_BYTES));
        (!stored.is_empty()).then(|| DiffData {
            bytes: stored.len() as u64,
            is_truncated: shortened.is_some(),
            text: shortened.unwrap_or_else(|| text.into_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_diff_is_marked() {
        let shortened = DiffData::of(&b"+one\n".repeat(200), Some(500)).unwrap();
        assert_eq!((shortened.bytes, shortened.is_truncated), (1_000, true));
        assert!(
            shortened
                .text
                .ends_with("+one\n[580 bytes of this file left out; the command 'diff' prints all]\n")
        );
        let whole = DiffData::of(b"+one\n", None).unwrap();
        assert_eq!((whole.text.as_str(), whole.is_truncated), ("+one\n", false));
        assert!(DiffData::of(b"", None).is_none());
    }
}
