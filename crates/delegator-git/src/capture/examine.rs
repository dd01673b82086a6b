//! Finds how a work tree differs from an index of ours, and which files git ignores. git reads the work tree.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;

use super::ignored::Ignored;
use crate::diff::{RawChange, changed_on_disk};
use crate::error::{GitError, Result};
use crate::records::{RepoPath, records};
use crate::run::Call;
use crate::scratch::{Scratch, WORK_INDEX};

/// Lists every entry of our index with two letters, because our git directory has no commit: how it differs
/// from that, and how the work tree differs from it. `matching` lists an ignored directory as one entry.
const STATUS_ARGS: [&str; 6] =
    ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"];

#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) modified: Vec<RepoPath>,
    pub(crate) deleted: Vec<RepoPath>,
    /// In the index, but in a directory without search permission.
    pub(crate) unreachable: Vec<RepoPath>,
    /// Neither in the index nor ignored; the path of a repository ends in a slash.
    pub(crate) untracked: BTreeSet<RepoPath>,
}

impl Differences {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed_count() == 0 && self.untracked.is_empty()
    }

    pub(crate) fn changed_count(&self) -> usize {
        self.modified.len() + self.deleted.len()
    }
}

/// Compares the work tree with our index, whose flags that hide files are cleared already. Ignored files are
/// listed only if `lists_ignored`.
pub(crate) fn examine(scratch: &Scratch, lists_ignored: bool) -> Result<(Differences, Ignored)> {
    let unreadable = || GitError::unexpected("status");
    let ignored = if lists_ignored { "--ignored=matching" } else { "--ignored=no" };
    let mut call = scratch.call(WORK_INDEX, STATUS_ARGS.into_iter().chain([ignored]));
    // The user's index may have a cache of untracked files, which depends on the times of directories.
    call.options.extend(["-c", "core.untrackedCache=false"].map(OsString::from));
    // Writes our index, so that a file which was only touched is not reported again.
    call.variables.push(("GIT_OPTIONAL_LOCKS", "1".into()));
    let output = scratch.run_call(Call { extra_output: 1 << 30, ..call })?;
    let (mut found, mut ignored) = (Differences::default(), Vec::new());
    let mut has_conflicts = false;
    for record in records(&output) {
        let (state, path) = record.split_at_checked(3).ok_or_else(unreadable)?;
        match state {
            b"?? " => drop(found.untracked.insert(path.to_vec())),
            b"!! " => ignored.push(path),
            b"AA " | b"DD " | [b'U', ..] | [_, b'U', _] => has_conflicts = true,
            [_, b' ', _] => {}
            [_, b'D', _] => found.deleted.push(path.to_vec()),
            [_, _, _] => found.modified.push(path.to_vec()),
            _ => return Err(unreadable()),
        }
    }
    if has_conflicts {
        // The letters of a conflict do not say whether the file exists.
        let mut changes = changed_on_disk(scratch)?;
        changes.retain(|change| !change.is_submodule);
        let (deleted, modified): (Vec<_>, Vec<_>) = changes.into_iter().partition(RawChange::is_deleted);
        found.deleted = deleted.into_iter().map(|change| change.path).collect();
        found.modified = modified.into_iter().map(|change| change.path).collect();
    }
    // git also reports a file as deleted if permission to stat it is denied.
    let is_denied = |path: &RepoPath| {
        let found = fs::symlink_metadata(scratch.on_disk(path));
        found.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    (found.unreachable, found.deleted) = found.deleted.into_iter().partition(is_denied);
    Ok((found, Ignored::examine(scratch.top(), ignored)))
}
