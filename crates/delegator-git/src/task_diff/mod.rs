//! What a task changed, as a diff: in the user's work tree, in a checkout or in a worktree.

mod listing;
mod stored;
mod work_tree;

pub use listing::TreeListing;
pub(crate) use stored::tree_diff;
pub use stored::{DiffPaths, DiffText, TreeDiff, diff_of_task, diff_until_now};
pub(crate) use work_tree::{History, Listed, list_in};
pub use work_tree::{NewCommit, TaskCheckout, WorkTreeDiff};
