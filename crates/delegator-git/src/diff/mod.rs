//! Reads diffs, raw and unified, and merges three versions of a file.

mod raw;
mod three_way;
mod unified;

pub use raw::{ChangeKind, FileChange};
pub(crate) use raw::{NewVersion, RawChange, changed_on_disk, raw_diff};
pub(crate) use three_way::{
    ContentMerge, Decision, FileDecision, decide, decide_file, merge_contents, resolve_mode,
};
pub use unified::{DiffHunk, FileDiff, HunkRange, NotADiff, parse_complete_diff, parse_unified_diff};
pub(crate) use unified::{join_replacements, split_files};
