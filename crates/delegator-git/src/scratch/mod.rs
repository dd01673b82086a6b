//! A git directory of our own beside the user's repository, and what is read and written through it.

mod git_dir;
mod objects;

pub(crate) use git_dir::{ATTRIBUTES, Scratch, WORK_INDEX};
pub(crate) use objects::MAX_MERGED_BYTES;
