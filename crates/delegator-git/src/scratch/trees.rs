//! Reads and writes trees and indexes through a git directory of our own.

use super::git_dir::Scratch;
use crate::error::GitError;
use crate::file_version::{FileVersion, TreeFiles};
use crate::records::{RepoPath, path_records, records, single_line};

/// Every file of a tree, submodules included.
pub(crate) fn tree_files(scratch: &Scratch, tree: &str) -> Result<TreeFiles, GitError> {
    let listed = scratch.run_large(["ls-tree", "-r", "-z", tree], b"")?;
    let mut files = TreeFiles::new();
    for record in records(&listed) {
        let (mode, _, id, path) = parse_tree_entry(record)?;
        files.insert(path, (mode, id));
    }
    Ok(files)
}

/// Parses `mode SP type SP id TAB path`.
fn parse_tree_entry(record: &[u8]) -> Result<(String, String, String, RepoPath), GitError> {
    let unreadable = || GitError::UnexpectedOutput { command: "ls-tree" };
    let at = record.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
    let header = std::str::from_utf8(&record[..at]).map_err(|_| unreadable())?;
    let fields: Vec<&str> = header.split(' ').collect();
    let [mode, kind, id] = fields.as_slice() else { return Err(unreadable()) };
    Ok(((*mode).to_owned(), (*kind).to_owned(), (*id).to_owned(), record[at + 1..].to_vec()))
}

/// Writes an index with exactly these files.
pub(crate) fn fill_index<'a>(
    scratch: &Scratch,
    index: &str,
    files: impl Iterator<Item = (&'a RepoPath, &'a FileVersion)>,
) -> Result<(), GitError> {
    let entries = path_records(files.map(|(path, (mode, id))| (format!("{mode} {id}"), path)));
    scratch.run(index, ["read-tree", "--empty"], b"")?;
    scratch.run(index, ["update-index", "-z", "--index-info"], &entries).map(drop)
}

/// The id of the tree of a commit.
pub(crate) fn tree_of(scratch: &Scratch, commit: &str) -> Result<String, GitError> {
    let tree = format!("{commit}^{{tree}}");
    Ok(single_line(&scratch.run("none", ["rev-parse", "--verify", "--quiet", &tree], b"")?))
}
