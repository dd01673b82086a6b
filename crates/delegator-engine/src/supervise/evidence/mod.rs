//! What a task did to the files: observed before and after the run, not taken from the agent's own report.
//!
//! ```text
//! begin_observation ─▶ Observation ── agent runs, its processes are swept ──▶ finish ─▶ Evidence, Findings
//!   git work tree: baseline                   compare ─┐
//!   elsewhere: bounded scan of names and times   scan ─┴▶ merge ─▶ attribute ─▶ reconcile with the agent's claims
//! ```
//!
//! Every directory that the task may write to is observed, including repositories inside. An error here never
//! fails a task, and every step is bounded in time: what could not be examined is listed. All paths are
//! relative to the working directory; a path outside begins with `../`.

mod action_times;
mod artifacts;
mod attribution;
mod finding;
mod merge;
mod observation;
mod paths;
mod reconcile;
mod scan;
mod tree;

use delegator_git::LeftOut;
use serde::{Deserialize, Serialize};

pub(crate) use action_times::AgentTimes;
pub use artifacts::{Artifact, NotHashed};
pub use attribution::Attribution;
pub use finding::{Branches, Finding, FindingKind};
pub(crate) use observation::{Observation, ObservationContext, begin_observation};
pub(crate) use paths::relative_name;

/// No evidence if nothing could be examined; the findings say why.
pub(crate) type EvidenceAndFindings = (Option<Evidence>, Vec<Finding>);

/// Paths per list; the others are only counted.
pub(crate) const MAX_LISTED: usize = 2_000;
const MAX_LEFT_OUT: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Git,
    /// Outside of git: by size and modification time.
    Scan,
    Diff,
    /// By git, after the supervisor was lost: changes of others may be among them.
    Late,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub source: Source,
    /// Why not everything could be examined.
    pub partial: Option<String>,
    pub files: Files,
    /// The lines that could be counted.
    pub lines: Lines,
    /// Changed files whose lines could not be counted.
    pub lines_not_counted: u64,
    /// The changes that are the agent's, or may be.
    pub attributed: ChangeCounts,
    pub unattributed: UnattributedChanges,
    pub history: Option<RepositoryChanges>,
    /// Paths that were changed but not read, or not examined at all.
    pub left_out: Vec<LeftOut>,
    pub left_out_count: usize,
    pub artifacts: Vec<Artifact>,
    /// Changed files that are not in `artifacts`.
    pub artifacts_not_listed: u64,
    /// How long the examination took before and after the run.
    pub took_ms: [u64; 2],
}

/// Counts of changed files, of all and not only of those listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    pub modified: u64,
    /// `added` and `deleted` do not count renamed files.
    pub added: u64,
    pub deleted: u64,
    pub renamed: u64,
    pub lines: Lines,
}

impl ChangeCounts {
    pub fn files(&self) -> u64 {
        self.modified + self.added + self.deleted + self.renamed
    }
}

/// The changes that are not certainly the agent's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnattributedChanges {
    /// Nothing that the agent did explains these changes.
    pub files: Vec<String>,
    /// The agent could have made these changes, but its events do not show whether it did.
    pub possibly_agent: Vec<String>,
}

impl Evidence {
    /// The number of changed files that nothing attributes to the agent; a renamed file counts once.
    pub fn unattributed_count(&self) -> u64 {
        self.files.count().saturating_sub(self.attributed.files())
    }

    /// Whether some files were not examined, not read, or their lines not counted.
    pub fn is_partial(&self) -> bool {
        self.partial.is_some() || self.left_out_count > 0 || self.lines_not_counted > 0
    }
}

/// Changed files. A renamed file is also in `added` and `deleted`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub modified: Vec<String>,
    pub added: Vec<String>,
    pub deleted: Vec<String>,
    pub renamed: Vec<Renamed>,
    /// Changes beyond the length of the lists.
    pub not_listed: u64,
}

impl Files {
    /// The number of changed files; a renamed file counts once.
    pub fn count(&self) -> u64 {
        let listed = self.modified.len() + self.added.len() + self.deleted.len() - self.renamed.len();
        listed as u64 + self.not_listed
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    pub added: u64,
    pub deleted: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChanges {
    pub head_before: Option<String>,
    pub head_after: Option<String>,
    pub branch_before: Option<String>,
    pub branch_after: Option<String>,
    /// The repository is gone or was replaced.
    pub repository_gone: bool,
    pub index_changed: bool,
    pub commits: u64,
    /// First lines of the newest commits.
    pub subjects: Vec<String>,
    pub attribution: Attribution,
}
