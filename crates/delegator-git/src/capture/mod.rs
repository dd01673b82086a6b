//! Captures the state of a work tree as trees of git, with the directories and permissions that git does not
//! record. Changes neither the work tree nor the user's index.

mod examine;
mod gather;
mod ignored;
mod left_out;
mod state;
mod survey;
mod work_index;
mod work_tree;

pub(crate) use examine::{Differences, examine};
pub(crate) use gather::{GatherResult, Gatherer};
pub use ignored::TOOL_DIRECTORIES;
pub(crate) use ignored::{Ignored, is_derived};
pub use left_out::{LeftOut, LeftOutReason, Limits};
pub(crate) use state::{
    SURVEY_TIME, State, capture_present, directories_of, is_absent, known_directories, take_survey,
};
pub(crate) use survey::{Directory, Survey};
pub(crate) use work_index::{RAW_DIFF_ARGS, WORK_INDEX, remove_from_index, write_index_tree};
pub(crate) use work_tree::{Capture, CapturedFiles, LazyTrees, Purpose, capture, capture_files};
