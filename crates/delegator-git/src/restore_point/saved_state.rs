//! Reads what a restore point stores besides the files: the index, directories and permissions.
//!
//! Also decides which directories a restore creates, removes or changes. Changes nothing on disk.

use std::collections::BTreeSet;

use super::point::{RestorePoint, StoredIndex};
use crate::capture::Survey;
use crate::error::GitError;
use crate::index::IndexFile;
use crate::records::{RepoPath, records};
use crate::scratch::{Scratch, tree_files};

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
