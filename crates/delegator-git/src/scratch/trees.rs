//! Reads and writes trees and indexes through a git directory of our own.

use super::git_dir::Scratch;
use crate::error::GitError;
use crate::file_version::{FileVersion, TreeFiles};
use crate::files::remove_file;
use crate::records::{RepoPath, path_records, records, split_record};

/// Every file of a tree, submodules included.
pub(crate) fn tree_files(scratch: &Scratch, tree: &str) -> Result<TreeFiles, GitError> {
    let listed = scratch.run("none", ["ls-tree", "-r", "-z", tree], b"")?;
    let entry = |record| {
        // `mode SP type SP id TAB path`
        let (header, path) = split_record(record, b'\t')?;
        let (mode, rest) = header.split_once(' ')?;
        let (_, id) = rest.split_once(' ')?;
        Some((path.to_vec(), (mode.to_owned(), id.to_owned())))
    };
    let files: Option<TreeFiles> = records(&listed).map(entry).collect();
    files.ok_or(GitError::UnexpectedOutput { command: "ls-tree" })
}

/// The id of the tree of a commit.
pub(crate) fn tree_of(scratch: &Scratch, commit: &str) -> Result<String, GitError> {
    let tree = format!("{commit}^{{tree}}");
    scratch.read_line("none", ["rev-parse", "--verify", "--quiet", &tree])
}

/// Writes an index with exactly these files.
pub(crate) fn fill_index<'a>(
    scratch: &Scratch,
    index: &str,
    files: impl Iterator<Item = (&'a RepoPath, &'a FileVersion)>,
) -> Result<(), GitError> {
    // git takes a missing index for an empty one.
    remove_file(&scratch.path(index))?;
    let entries = path_records(files.map(|(path, (mode, id))| (format!("{mode} {id}\t"), path)));
    scratch.run(index, ["update-index", "-z", "--index-info"], &entries).map(drop)
}

/// Replaces entries of an index; `None` removes the entry. Removals come first, so that a file can take the
/// place of a directory.
pub(crate) fn edit_index<'a>(
    scratch: &Scratch,
    index: &str,
    files: impl Iterator<Item = (&'a RepoPath, Option<&'a FileVersion>)>,
) -> Result<(), GitError> {
    let (changed, removed): (Vec<_>, Vec<_>) = files.partition(|(_, version)| version.is_some());
    let no_id = "0".repeat(2 * scratch.id_bytes());
    let entry = |(path, version): (&'a RepoPath, Option<&FileVersion>)| match version {
        Some((mode, id)) => (format!("{mode} {id}\t"), path),
        None => (format!("0 {no_id}\t"), path),
    };
    let entries = path_records(removed.into_iter().chain(changed).map(entry));
    scratch.run(index, ["update-index", "--replace", "-z", "--index-info"], &entries).map(drop)
}

/// Writes the files of an index as a tree, whose contents may be missing in a partial clone.
pub(crate) fn write_tree(scratch: &Scratch, index: &str) -> Result<String, GitError> {
    scratch.read_line(index, ["write-tree", "--missing-ok"])
}
