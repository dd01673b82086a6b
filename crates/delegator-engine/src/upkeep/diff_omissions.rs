//! What the diff of a task does not have. Part of the stored facts of a task that a provider ran, and stored
//! with the diff of a removed worktree.

use delegator_git::LeftOut;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffOmissions {
    /// Changed files that are not in it, up to a limit.
    pub left_out: Vec<LeftOut>,
    pub left_out_count: usize,
    /// There are changes, but no diff is stored, because it is larger than this many bytes.
    pub size_limit: Option<usize>,
}

const MAX_NAMED: usize = 5;

impl DiffOmissions {
    pub(crate) fn is_empty(&self) -> bool {
        self.left_out_count == 0 && self.size_limit.is_none()
    }

    pub(crate) fn names(&self) -> String {
        let name = |file: &LeftOut| match file.bytes >> 20 {
            0 => file.path.clone(),
            size => format!("{} ({size} MiB)", file.path),
        };
        let mut names: Vec<String> = self.left_out.iter().take(MAX_NAMED).map(name).collect();
        match self.left_out_count.saturating_sub(names.len()) {
            0 => {}
            more => names.push(format!("{more} more")),
        }
        names.extend(self.size_limit.map(|limit| format!("a diff of over {} MiB", limit >> 20)));
        names.join(", ")
    }
}
