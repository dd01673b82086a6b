//! What a task did to the files, by looking and not by asking.
//!
//! ```text
//! look ─▶ Watch ── the agent works, all it left is swept ──▶ finish ─▶ Evidence, Findings
//!   each tree in git: its baseline              compare ─┐
//!   elsewhere: a bounded scan of names and times    scan ─┴▶ merge ─▶ reconcile with the agent's claims
//! ```
//!
//! Every directory the task may write to is watched, and repositories inside of them. Nothing here can fail a task, and
//! nothing delays it beyond its bounds: what could not be examined is listed. All paths are relative to the working
//! directory; a file outside of it begins with `../`.

mod artifacts;
mod finding;
mod merge;
mod observation;
mod paths;
mod reconcile;
mod scan;
mod tree;

use delegator_git::LeftOut;
use serde::{Deserialize, Serialize};

pub use artifacts::{Artifact, NotHashed};
pub use finding::{Branches, Finding, FindingKind};
pub(crate) use observation::{Observation, ObservationContext, begin_observation};

/// What was seen, if anything could be, and what is to be said of it.
pub(crate) type EvidenceAndFindings = (Option<Evidence>, Vec<Finding>);

/// Paths that are listed; more are counted.
const MAX_LISTED: usize = 2_000;
const MAX_LEFT_OUT: usize = 100;

/// How the files were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Git,
    /// Outside of git: sizes and times of modification.
    Scan,
}

/// What is known of the files after a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub source: Source,
    /// Why not everything could be looked at.
    pub partial: Option<String>,
    pub files: Files,
    /// The lines that could be counted; `None` in records of earlier versions, where none could.
    pub lines: Option<Lines>,
    /// Changed files whose lines could not be counted.
    #[serde(default)]
    pub lines_not_counted: u64,
    pub history: Option<RepositoryChanges>,
    /// Changed and not read, or not examined at all.
    pub left_out: Vec<LeftOut>,
    pub left_out_count: usize,
    pub artifacts: Vec<Artifact>,
    /// Changed files beyond those.
    pub artifacts_not_listed: u64,
    /// How long looking took, before and after.
    pub took_ms: [u64; 2],
}

impl Evidence {
    /// Whether some files were not examined, not read, or their lines not counted.
    pub fn is_partial(&self) -> bool {
        self.partial.is_some() || self.left_out_count > 0 || self.lines_not_counted > 0
    }
}

/// Which files are not as they were. A renamed one is among the added and the deleted, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub modified: Vec<String>,
    pub added: Vec<String>,
    pub deleted: Vec<String>,
    pub renamed: Vec<Renamed>,
    /// Changes that are not in the lists because there were too many.
    pub not_listed: u64,
}

impl Files {
    /// Files that are not as they were, a renamed one counted once.
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

/// What became of the repository itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChanges {
    pub head_before: Option<String>,
    pub head_after: Option<String>,
    pub branch_before: Option<String>,
    pub branch_after: Option<String>,
    /// It is not there any more, or another one is.
    pub repository_gone: bool,
    pub index_changed: bool,
    pub commits: u64,
    /// First lines of the newest commits.
    pub subjects: Vec<String>,
}
