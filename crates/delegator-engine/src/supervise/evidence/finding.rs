//! What a caller should know about the files besides the lists of changes. A message is a fixed sentence:
//! text that an agent or a repository chose is in separate fields, because it could contain instructions.

use delegator_domain::text::shorten;
use serde::{Deserialize, Serialize};

const MAX_PATHS: usize = 10;
const MAX_PATH_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub message: String,
    /// The first paths that the finding is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paths_not_listed: u64,
    /// Ids of other tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<Branches>,
    /// Why something could not be examined: the error text of git or of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The branch of a work tree before and after a task; `None`: a detached HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branches {
    pub before: Option<String>,
    pub after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The agent claims a change, but the file did not change.
    #[serde(rename = "claim_not_seen")]
    ClaimRefuted,
    /// The agent claims a change to a file that is not examined.
    ClaimNotChecked,
    /// A file changed, and nothing attributes that to the agent.
    NotAttributed,
    /// A file changed that the agent did not name, while one of its commands ran.
    ByCommands,
    /// The agent of a read-only task changed files, or may have.
    ReadOnlyChanged,
    /// Other tasks wrote in the same tree at the same time.
    OtherWriters,
    Repository,
    Partial,
    NoEvidence,
    /// The configuration, hooks or attributes of a repository changed.
    GitSettings,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, message: impl Into<String>) -> Finding {
        Finding {
            kind,
            message: message.into(),
            paths: Vec::new(),
            paths_not_listed: 0,
            tasks: Vec::new(),
            branches: None,
            problem: None,
        }
    }

    pub(super) fn about<'a>(mut self, paths: impl IntoIterator<Item = &'a str>) -> Finding {
        for path in paths {
            if self.paths.len() < MAX_PATHS {
                self.paths.push(shorten(path, MAX_PATH_CHARS));
            } else {
                self.paths_not_listed += 1;
            }
        }
        self
    }

    pub(crate) fn because(self, problem: &str) -> Finding {
        Finding { problem: Some(problem.to_owned()), ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_and_long_paths_are_truncated() {
        let names: Vec<String> = (0..12).map(|n| format!("f{n}")).collect();
        let finding = Finding::new(FindingKind::Partial, "x").about(names.iter().map(String::as_str));
        assert_eq!((finding.paths.len(), finding.paths_not_listed), (MAX_PATHS, 2));
        assert_eq!(finding.paths[9], "f9");
        let long = "ä".repeat(300);
        let finding = Finding::new(FindingKind::Partial, "x").about([long.as_str()]);
        assert_eq!(finding.paths[0].chars().count(), MAX_PATH_CHARS + 1);
    }
}
