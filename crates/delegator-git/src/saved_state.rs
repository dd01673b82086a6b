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
use crate::restore_plan::contains_only;
use crate::restore_point::{RestorePoint, StoredIndex};
use crate::scratch::Scratch;
use crate::state::tree_files;
use crate::tree_writer::TreeChanges;

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

impl TreeChanges {
    /// Adds what a restore does with directories. Returns the paths of directories where a file must stay.
    pub(crate) fn add_directories(
        &mut self,
        top_level: &Path,
        saved: &Survey,
        present: &Survey,
    ) -> Vec<RepoPath> {
        let mut blocked: Vec<RepoPath> = Vec::new();
        for (path, directory) in &saved.directories {
            match fs::symlink_metadata(on_disk(top_level, path)) {
                Ok(current) if current.is_dir() => {
                    if current.permissions().mode() & 0o7777 != directory.mode {
                        self.directory_modes.insert(path.clone(), directory.mode);
                    }
                }
                Ok(_) if !self.remove.contains(path) => blocked.push(path.clone()),
                // Below a blocked path nothing can be created. Outer directories come first.
                _ if blocked.iter().any(|above| is_below(path, above)) => {}
                _ => {
                    self.make_directories.push(path.clone());
                    self.directory_modes.insert(path.clone(), directory.mode);
                }
            }
        }
        let removed: BTreeSet<&[u8]> = self.remove.iter().map(Vec::as_slice).collect();
        let is_removable = |path: &&RepoPath| {
            let is_replaced = self.write.contains_key(*path);
            !saved.directories.contains_key(*path)
                && (is_replaced || !saved.is_unrecorded(path))
                && contains_only(&on_disk(top_level, path), path, &removed)
        };
        self.remove_directories = present.directories.keys().rev().filter(is_removable).cloned().collect();
        blocked
    }
}

fn is_below(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"))
}
