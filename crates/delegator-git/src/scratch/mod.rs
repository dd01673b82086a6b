//! A git directory of our own beside the user's repository, and what is read and written through it.

mod git_dir;
mod objects;
mod trees;

pub(crate) use git_dir::{ATTRIBUTES, Scratch};
pub(crate) use objects::{
    MAX_MERGED_BYTES, differing_objects, existing_objects, list_objects, pack_into, read_small_blobs,
    write_blobs,
};
pub(crate) use trees::{edit_index, fill_index, tree_files, tree_of, write_tree};
