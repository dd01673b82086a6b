//! What a restore point holds beside the work tree's files: the index file, directories and permissions.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::GitError;
use crate::index_file::{Entry, IndexFile};
use crate::listing::{RepoPath, on_disk, records};
use crate::look::{Sorted, only_holds};
use crate::point::{RestorePoint, StoredIndex};
use crate::scratch::Scratch;
use crate::state::tree_files;
use crate::survey::Survey;

#[derive(Debug)]
pub(crate) struct KeptState {
    pub(crate) index: IndexFile,
    pub(crate) survey: Survey,
    pub(crate) absent: BTreeSet<RepoPath>,
    /// Of an undo point: the files that the restore wrote.
    pub(crate) written: BTreeSet<RepoPath>,
}

const UNREADABLE: GitError = GitError::Unreadable { command: "cat-file" };

impl KeptState {
    /// `None` for a restore point that version 3.6 or earlier made.
    pub(crate) fn read(scratch: &Scratch, point: &RestorePoint) -> Result<Option<KeptState>, GitError> {
        if point.store.is_none() {
            return Ok(None);
        }
        let names = ["index", "directories", "modes", "absent", "written"];
        let wanted: String = names.iter().map(|name| format!("{}:state/{name}\n", point.commit)).collect();
        let answer = scratch.run_long(["cat-file", "--batch"], wanted.as_bytes())?;
        let mut rest = answer.as_slice();
        let mut files = Vec::new();
        for _ in names {
            files.push(next_file(&mut rest)?);
        }
        let [index, directories, modes, absent, written] =
            <[_; 5]>::try_from(files).map_err(|_| UNREADABLE)?;
        let (Some(directories), Some(modes)) = (directories, modes) else { return Err(UNREADABLE) };
        let (Some(absent), Some(written)) = (absent, written) else { return Err(UNREADABLE) };
        let index = match (point.index, index, &point.index_tree) {
            (StoredIndex::File, Some(bytes), _) => IndexFile::parse(bytes.to_vec(), scratch.id_bytes())?,
            (StoredIndex::Tree, _, Some(tree)) => IndexFile::of_tree(&tree_files(scratch, tree)?)?,
            (StoredIndex::Missing, ..) => IndexFile::default(),
            _ => return Err(UNREADABLE),
        };
        let survey = Survey::parse(directories, modes, point.is_partial).ok_or(UNREADABLE)?;
        let paths = |listed| records(listed).map(<[u8]>::to_vec).collect();
        Ok(Some(KeptState { index, survey, absent: paths(absent), written: paths(written) }))
    }

    pub(crate) fn index_differs(&self, point: &RestorePoint, present: &IndexFile) -> bool {
        let was_missing = point.index == StoredIndex::Missing;
        self.index.entries != present.entries || was_missing != present.bytes.is_none()
    }

    /// Objects of the index that no tree of the point names.
    pub(crate) fn own_objects(&self) -> impl Iterator<Item = String> {
        let own = self.index.entries.iter().filter(|entry| entry.stage != 0 || entry.intent_to_add);
        own.filter(|entry| !entry.is_submodule()).map(Entry::id)
    }
}

/// One answer of `cat-file --batch`: `id SP type SP size LF bytes LF`, or a line that ends in "missing".
fn next_file<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, GitError> {
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(UNREADABLE)?;
    let (header, after) = (&rest[..end], &rest[end + 1..]);
    *rest = after;
    if header.ends_with(b" missing") {
        return Ok(None);
    }
    let header = std::str::from_utf8(header).map_err(|_| UNREADABLE)?;
    let size: usize = header.rsplit(' ').next().and_then(|size| size.parse().ok()).ok_or(UNREADABLE)?;
    let bytes = after.get(..size).ok_or(UNREADABLE)?;
    *rest = after.get(size + 1..).ok_or(UNREADABLE)?;
    Ok(Some(bytes))
}

/// What is to be done with directories.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    /// Missing now, outermost first.
    pub(crate) make: Vec<RepoPath>,
    /// Not there before and empty once the files are removed, innermost first.
    pub(crate) remove: Vec<RepoPath>,
    /// Have other permissions now.
    pub(crate) modes: Vec<RepoPath>,
    /// Something that must stay has the name of a directory that was.
    pub(crate) blocked: Vec<RepoPath>,
}

impl Directories {
    pub(crate) fn compare(
        top_level: &Path,
        kept: Option<&KeptState>,
        present: &Survey,
        sorted: &Sorted,
    ) -> Directories {
        let Some(kept) = kept.map(|kept| &kept.survey) else { return Directories::default() };
        let removed: BTreeSet<&[u8]> = sorted.remove.iter().map(Vec::as_slice).collect();
        let replaced: BTreeSet<&[u8]> = sorted.write.iter().map(Vec::as_slice).collect();
        let mut found = Directories::default();
        for (path, directory) in &kept.directories {
            let there = fs::symlink_metadata(on_disk(top_level, path));
            match there {
                Ok(there) if there.is_dir() => {
                    if there.permissions().mode() & 0o7777 != directory.mode {
                        found.modes.push(path.clone());
                    }
                }
                Ok(_) if !removed.contains(path.as_slice()) => found.blocked.push(path.clone()),
                _ => found.make.push(path.clone()),
            }
        }
        // Below a name that is taken nothing can be made.
        let is_blocked = |path: &[u8]| found.blocked.iter().any(|above| is_below(path, above));
        let make = std::mem::take(&mut found.make);
        let make = make.into_iter().filter(|path| !is_blocked(path)).collect();
        let extra = present.directories.keys().rev().filter(|path| !kept.directories.contains_key(*path));
        for path in extra {
            let goes = replaced.contains(path.as_slice()) || !kept.is_unknown(path);
            if goes && only_holds(&on_disk(top_level, path), path, &removed) {
                found.remove.push(path.clone());
            }
        }
        Directories { make, ..found }
    }
}

fn is_below(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"))
}
