//! Reads what a restore point stores besides the files: the index, directories and permissions.

use std::collections::BTreeSet;

use super::point::{RestorePoint, StoredIndex};
use crate::capture::Survey;
use crate::error::{GitError, Result};
use crate::index::IndexFile;
use crate::records::{RepoPath, parse_batch, records};
use crate::scratch::Scratch;

#[derive(Debug)]
pub(crate) struct SavedState {
    pub(crate) index: IndexFile,
    pub(crate) survey: Survey,
    pub(crate) absent: BTreeSet<RepoPath>,
    /// In an undo point: the files that the restore wrote.
    pub(crate) written: BTreeSet<RepoPath>,
}

const UNREADABLE: GitError = GitError::unexpected("cat-file");

impl SavedState {
    pub(crate) fn read(scratch: &Scratch, point: &RestorePoint) -> Result<SavedState> {
        let mut names = vec!["directories", "modes", "absent", "written"];
        names.extend((point.index == StoredIndex::File).then_some("index"));
        let names: String = names.iter().map(|name| format!("{}:state/{name}\n", point.commit)).collect();
        let output = scratch.run("none", ["cat-file", "--buffer", "--batch"], names.as_bytes())?;
        let files: Vec<&[u8]> = parse_batch(&output)?.into_iter().map(|(_, content)| content).collect();
        let [directories, modes, absent, written, file @ ..] = files.as_slice() else {
            return Err(UNREADABLE);
        };
        let mut index = match (point.index, &point.index_tree, file) {
            (StoredIndex::File, _, [file]) => IndexFile::parse(file.to_vec(), scratch.id_bytes())?,
            (StoredIndex::Tree, Some(tree), _) => IndexFile::of_tree(&scratch.tree_files(tree)?)?,
            (StoredIndex::Missing, ..) => IndexFile::default(),
            _ => return Err(UNREADABLE),
        };
        index.modified = point.index_time;
        let survey = Survey::parse(directories, modes, point.is_partial).ok_or(UNREADABLE)?;
        let paths = |bytes: &[u8]| records(bytes).map(<[u8]>::to_vec).collect();
        Ok(SavedState { index, survey, absent: paths(absent), written: paths(written) })
    }

    pub(crate) fn index_differs(&self, point: &RestorePoint, present: &IndexFile) -> bool {
        let was_missing = point.index == StoredIndex::Missing;
        self.index.entries != present.entries || was_missing != present.bytes.is_none()
    }
}
