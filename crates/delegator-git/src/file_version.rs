//! The version of a file as git names it: a mode and the object id of the content.

use std::collections::BTreeMap;

use crate::records::RepoPath;

pub(crate) const GITLINK: &str = "160000";

/// git's mode of a file, and the object id of its content.
pub(crate) type FileVersion = (String, String);

/// The files of a tree.
pub(crate) type TreeFiles = BTreeMap<RepoPath, FileVersion>;

/// Whether it is a file with content of its own, not a link or a submodule.
pub(crate) fn is_regular((mode, _): &FileVersion) -> bool {
    mode.starts_with("100")
}
