//! Reads index files: the user's, and our copies of it.

mod file;
mod tracked;

pub(crate) use file::{IndexEntry, IndexFile};
pub(crate) use tracked::{TrackedFiles, has_attributes, is_checked_out};
