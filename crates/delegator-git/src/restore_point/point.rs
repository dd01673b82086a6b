//! Restore points: the state of a work tree and its index, stored as one commit in the private [`Store`].
//!
//! ```text
//! refs/mcp-delegator/<name> ─▶ tree/        the work tree
//!   (in the store)             index-tree/  the index, unless it has conflicts
//!                              state/       directories, permission bits, sparse files, and the index file if a tree
//!                                           cannot represent it
//!                              blobs/       objects that only the index file names: conflicts, intent to add
//!                              meta.json    a RestorePoint
//! refs/mcp-delegator/<name> ─▶ HEAD
//!   (in the repository)
//! ```
//!
//! The commit has no parents and contains everything a restore needs. Creating one changes neither index nor
//! work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::capture::{LeftOut, Survey};
use crate::error::{GitError, RestoreError, Result};
use crate::index::IndexFile;
use crate::records::{RepoPath, output_text, parse_batch, records};
use crate::repository::{Head, Repository, Store, find_repository, open, point_name};
use crate::run::{Call, Git};
use crate::scratch::Scratch;

/// A restore point: everything needed to restore it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePoint {
    pub reference: String,
    /// Empty in `meta.json`, which is part of the commit.
    pub commit: String,
    /// The tree of the work tree.
    pub tree: String,
    /// The tree of the index; `None` if it had conflicts.
    pub index_tree: Option<String>,
    pub head: Option<String>,
    /// The full name of the branch HEAD was on.
    pub branch: Option<String>,
    pub staged: bool,
    /// Number of files that differed from the index.
    pub modified: usize,
    pub untracked: usize,
    pub left_out: Vec<LeftOut>,
    pub top_level: PathBuf,
    /// The git directory that holds the refs and objects.
    pub repository: PathBuf,
    /// The store that holds the restore point.
    pub store: PathBuf,
    /// In seconds since 1970.
    pub created_at: i64,
    /// How the index is stored.
    pub index: StoredIndex,
    /// The modification time of the index file (seconds, nanoseconds), by which git decides which entries to
    /// trust.
    pub index_time: Option<(u64, u32)>,
    /// The operations in progress, by the names of git's own files (`MERGE_HEAD`).
    pub under_way: Vec<String>,
    /// Not all directories or permissions were recorded because a limit was reached.
    pub is_partial: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredIndex {
    /// As a tree, which represents it completely.
    Tree,
    /// As the file itself, because it has conflicts, flags or intent-to-add entries.
    File,
    /// There was no index file.
    Missing,
}

impl RestorePoint {
    pub fn is_dirty(&self) -> bool {
        self.staged || self.modified > 0 || self.untracked > 0 || self.index_tree.is_none()
    }

    pub(crate) fn head(&self) -> Head {
        Head { commit: self.head.clone(), branch: self.branch.clone() }
    }

    /// Finds its work tree, with the present HEAD, and creates a git directory of ours that reads its
    /// objects.
    pub(crate) fn open(&self, git: &Git, temp_dir: &Path) -> Result<(Scratch, Head), RestoreError> {
        let mismatch =
            |problem| RestoreError::DifferentRepository { top_level: self.top_level.clone(), problem };
        if !self.top_level.is_dir() {
            return Err(mismatch("it does not exist"));
        }
        let opened = open(git, &self.top_level)?.ok_or_else(|| mismatch("it is not a git work tree"))?;
        let repository = &opened.repository;
        if repository.top_level != self.top_level || repository.common_dir != self.repository {
            return Err(mismatch("it belongs to another repository"));
        }
        if !self.is_stored() {
            return Err(RestoreError::PointMissing { reference: self.reference.clone() });
        }
        let mut scratch = Scratch::with_config(git, repository, opened.config, temp_dir)?;
        scratch.store = Store::at(&self.store);
        Ok((scratch, opened.head))
    }

    /// Whether its ref is still in the store.
    pub fn is_stored(&self) -> bool {
        Store::at(&self.store).read(&self.reference).as_ref() == Some(&self.commit)
    }

    pub fn bytes(&self) -> u64 {
        Store::at(&self.store).size(&self.reference)
    }
}

#[derive(Debug)]
pub struct StoredPoint {
    pub point: RestorePoint,
    pub bytes: u64,
}

/// The restore points in the store of the repository that contains `dir`, by name; `None` outside a work
/// tree.
pub fn stored_points(git: &Git, dir: &Path) -> Result<Option<Vec<StoredPoint>>> {
    stored_points_named(git, dir, "")
}

/// Those of the restore points whose reference begins with `prefix`. All are read with one git process.
pub fn stored_points_named(git: &Git, dir: &Path, prefix: &str) -> Result<Option<Vec<StoredPoint>>> {
    let Some(repository) = find_repository(git, dir)? else { return Ok(None) };
    let store = Store::of(&repository.common_dir);
    let references = store.references().into_iter().filter(|reference| reference.starts_with(prefix));
    let points = read_points(git, &repository, &store, references.collect())?;
    let sizes = if points.is_empty() { BTreeMap::new() } else { store.sizes() };
    let bytes = |point: &RestorePoint| sizes.get(point_name(&point.reference)).copied().unwrap_or_default();
    let stored = |point: RestorePoint| StoredPoint { bytes: bytes(&point), point };
    Ok(Some(points.into_iter().map(stored).collect()))
}

/// Reads these restore points, as far as they exist.
pub(crate) fn read_points(
    git: &Git,
    repository: &Repository,
    store: &Store,
    references: Vec<String>,
) -> Result<Vec<RestorePoint>> {
    let found = references.into_iter().filter_map(|reference| Some((store.read(&reference)?, reference)));
    let found: Vec<(String, String)> = found.collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let names: String = found.iter().map(|(commit, _)| format!("{commit}:meta.json\n")).collect();
    let call = Call::in_git_dir(&store.path, ["cat-file", "--buffer", "--batch"]);
    let output = git.run(&store.path, Call { input: names.as_bytes(), extra_output: 1 << 30, ..call })?;
    let mut points = Vec::new();
    for ((commit, reference), (_, meta)) in found.into_iter().zip(parse_batch(&output)?) {
        let point: RestorePoint =
            serde_json::from_slice(meta).map_err(|_| GitError::unexpected("cat-file"))?;
        // The repository may have been moved since, or be reached by another path.
        points.push(RestorePoint {
            commit,
            reference,
            repository: repository.common_dir.clone(),
            store: store.path.clone(),
            ..point
        });
    }
    Ok(points)
}

/// Deletes a restore point with its objects if it still is the given commit. Returns whether it existed.
pub fn drop_point(git: &Git, point: &RestorePoint) -> Result<bool> {
    if !point.is_stored() {
        return Ok(false);
    }
    if let Some(head) = &point.head {
        drop_ref(git, &point.repository, &point.reference, head)?;
    }
    Store::at(&point.store).delete(&point.reference).map(|()| true)
}

/// Deletes a ref if it still points to `commit`.
pub(crate) fn drop_ref(git: &Git, repository: &Path, reference: &str, commit: &str) -> Result<()> {
    let resolve = Call::in_git_dir(repository, ["rev-parse", "--verify", "--quiet", reference]);
    let found = git.run_optional(repository, resolve)?;
    if found.as_deref().map(output_text).as_deref() != Some(commit) {
        return Ok(());
    }
    let delete = ["update-ref", "--no-deref", "-d", reference, commit];
    git.run(repository, Call::in_git_dir(repository, delete)).map(drop)
}

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

/// The user's refs that protect content from `git gc`.
const REFS: [&str; 3] = ["refs/heads", "refs/tags", "refs/remotes"];

/// Whether the restore point holds file content that no branch, tag or remote-tracking ref of the repository
/// reaches: only without such content may cleaning delete the point on its own. Content that is only in
/// commits older than the point's HEAD counts as unique, and so does content that cannot be examined.
pub fn holds_unique_content(git: &Git, point: &RestorePoint) -> Result<bool> {
    let run = |dir: &Path, args: &[&str]| {
        git.run(dir, Call { extra_output: 1 << 30, ..Call::in_git_dir(dir, args) })
    };
    if let Some(head) = &point.head {
        let contains = format!("--contains={head}");
        let args = [&["for-each-ref", "--count=1", "--format=%(refname)", &contains], &REFS[..]].concat();
        if run(&point.repository, &args)?.is_empty() {
            return Ok(true);
        }
    }
    let mut blobs = BTreeSet::new();
    for tree in point.index_tree.iter().chain([&point.tree]).chain(&index_blobs(git, point)?) {
        let listed = run(&point.store, &["ls-tree", "-r", "--object-only", tree])?;
        blobs.extend(String::from_utf8_lossy(&listed).lines().map(str::to_owned));
    }
    if let Some(head) = &point.head {
        remove_all(&mut blobs, &run(&point.repository, &["ls-tree", "-r", "--object-only", head])?);
    }
    if blobs.is_empty() {
        return Ok(false);
    }
    let exclude_head = point.head.as_ref().map(|head| format!("^{head}"));
    let mut args = vec!["rev-list", "--objects", "--no-object-names", "--branches", "--tags", "--remotes"];
    args.extend(exclude_head.as_deref());
    remove_all(&mut blobs, &run(&point.repository, &args)?);
    Ok(!blobs.is_empty())
}

fn remove_all(blobs: &mut BTreeSet<String>, listed: &[u8]) {
    for id in String::from_utf8_lossy(listed).lines() {
        blobs.remove(id);
    }
}

/// The tree of the objects that only the index file names; `None` if there are none.
fn index_blobs(git: &Git, point: &RestorePoint) -> Result<Option<String>> {
    let name = format!("{}:blobs", point.commit);
    let call = Call::in_git_dir(&point.store, ["rev-parse", "--verify", "--quiet", &name]);
    Ok(git.run_optional(&point.store, call)?.as_deref().map(output_text))
}
