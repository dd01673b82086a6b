//! Reads what a restore point stores besides the files: the index, directories and permissions.
//!
//! Also decides which directories a restore creates, removes or changes. Changes nothing on disk.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::directory_modes::Survey;
use crate::error::GitError;
use crate::index_file::IndexFile;
use crate::listing::{RepoPath, on_disk, records};
use crate::restore_plan::{FileActions, contains_only};
use crate::restore_point::{RestorePoint, StoredIndex};
use crate::scratch::Scratch;
use crate::state::tree_files;

#[derive(Debug)]
pub(crate) struct SavedState {
    pub(crate) index: IndexFile,
    pub(crate) survey: Survey,
    pub(crate) absent: BTreeSet<RepoPath>,
    /// In an undo point: the files that the restore wrote.
    pub(crate) written: BTreeSet<RepoPath>,
}

const UNREADABLE: GitError = GitError::UnexpectedOutput { command: "cat-file" };

impl SavedState {
    pub(crate) fn read(scratch: &Scratch, point: &RestorePoint) -> Result<SavedState, GitError> {
        let file = |name: &str| {
            let name = format!("{}:state/{name}", point.commit);
            scratch.run_large(["cat-file", "blob", &name], b"")
        };
        let index = match (point.index, &point.index_tree) {
            (StoredIndex::File, _) => IndexFile::parse(file("index")?, scratch.id_bytes())?,
            (StoredIndex::Tree, Some(tree)) => IndexFile::of_tree(&tree_files(scratch, tree)?)?,
            (StoredIndex::Tree, None) => return Err(UNREADABLE),
            (StoredIndex::Missing, _) => IndexFile::default(),
        };
        let survey = Survey::parse(&file("directories")?, &file("modes")?, point.is_partial);
        let paths = |bytes: &[u8]| records(bytes).map(<[u8]>::to_vec).collect();
        Ok(SavedState {
            index,
            survey: survey.ok_or(UNREADABLE)?,
            absent: paths(&file("absent")?),
            written: paths(&file("written")?),
        })
    }

    pub(crate) fn index_differs(&self, point: &RestorePoint, present: &IndexFile) -> bool {
        let was_missing = point.index == StoredIndex::Missing;
        self.index.entries != present.entries || was_missing != present.bytes.is_none()
    }
}

/// What a restore does with directories.
#[derive(Debug, Default)]
pub(crate) struct DirectoryActions {
    /// Missing now; outermost first.
    pub(crate) make: Vec<RepoPath>,
    /// Did not exist before and empty once the files are removed; innermost first.
    pub(crate) remove: Vec<RepoPath>,
    /// Their permissions differ.
    pub(crate) modes: Vec<RepoPath>,
    /// A file that must stay has the name of a directory to create.
    pub(crate) blocked: Vec<RepoPath>,
}

impl DirectoryActions {
    pub(crate) fn compare(
        top_level: &Path,
        saved: &Survey,
        present: &Survey,
        actions: &FileActions,
    ) -> DirectoryActions {
        let removed: BTreeSet<&[u8]> = actions.remove.iter().map(Vec::as_slice).collect();
        let replaced: BTreeSet<&[u8]> = actions.write.iter().map(Vec::as_slice).collect();
        let mut result = DirectoryActions::default();
        for (path, directory) in &saved.directories {
            let current = fs::symlink_metadata(on_disk(top_level, path));
            match current {
                Ok(current) if current.is_dir() => {
                    if current.permissions().mode() & 0o7777 != directory.mode {
                        result.modes.push(path.clone());
                    }
                }
                Ok(_) if !removed.contains(path.as_slice()) => result.blocked.push(path.clone()),
                _ => result.make.push(path.clone()),
            }
        }
        // Below a blocked path nothing can be created.
        let is_blocked = |path: &[u8]| result.blocked.iter().any(|above| is_below(path, above));
        let make = std::mem::take(&mut result.make);
        let make = make.into_iter().filter(|path| !is_blocked(path)).collect();
        let extra = present.directories.keys().rev().filter(|path| !saved.directories.contains_key(*path));
        for path in extra {
            let is_removable = replaced.contains(path.as_slice()) || !saved.is_unrecorded(path);
            if is_removable && contains_only(&on_disk(top_level, path), path, &removed) {
                result.remove.push(path.clone());
            }
        }
        DirectoryActions { make, ..result }
    }
}

fn is_below(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"))
}
