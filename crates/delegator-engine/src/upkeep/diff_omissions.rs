//! What the diff of a task does not have. Part of the stored facts of a task that a provider ran.

use delegator_git::LeftOut;
use serde::{Deserialize, Serialize};

/// What the stored diff of a task does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffOmissions {
    /// Changed files that are not in it, up to a limit.
    pub left_out: Vec<LeftOut>,
    pub left_out_count: usize,
    /// There are changes, but no diff is stored, because it is larger than this many bytes.
    pub size_limit: Option<usize>,
}
