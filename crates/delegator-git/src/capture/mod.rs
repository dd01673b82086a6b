//! Captures the state of a work tree as trees of git, with the directories and permissions that git does not
//! record. Changes neither the work tree nor the user's index.

mod examine;
mod gather;
mod ignored;
mod state;
mod work_tree;

pub(crate) use examine::{Differences, examine};
pub(crate) use gather::{GatherResult, Gatherer};
pub use gather::{LeftOut, LeftOutReason, Limits};
pub use ignored::TOOL_DIRECTORIES;
pub(crate) use ignored::{Ignored, is_derived};
pub(crate) use state::{
    Directory, Survey, TreeState, capture_present, is_absent, survey_tree, survey_work_index,
};
pub(crate) use work_tree::{Capture, CapturedFiles, LazyTrees, Purpose, capture, capture_files};
