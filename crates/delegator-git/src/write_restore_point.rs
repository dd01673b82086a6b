//! Writes a restore point: one commit, its packs in the store, then the refs.
//!
//! The packs hold every object that the point needs and that HEAD's tree does not have, whether we created it or found
//! it in the user's repository (staged content). So `git gc` in the repository cannot delete any of them. The ref in
//! the store is written last: if it exists, the restore point is complete.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::capture::WORK_INDEX;
use crate::error::GitError;
use crate::index_file::{IndexFile, hex};
use crate::listing::{DiffHeader, GITLINK, join_records, records, single_line};
use crate::new_object::{NewObjects, ObjectKind, blob_id};
use crate::ref_file::write_ref_file;
use crate::repository::Head;
use crate::restore_plan::operations_in_progress;
use crate::restore_point::{RestorePoint, StoredIndex, drop_ref};
use crate::scratch::{PendingOutput, Scratch};
use crate::state::State;

/// A longer list would make `meta.json` too large.
const MAX_LEFT_OUT: usize = 100_000;
const LARGE_BLOB: u64 = 64 << 10;
/// Objects of more bytes are compressed.
const MAX_UNCOMPRESSED: usize = 64 << 10;
const FILE_MODE: &str = "100644";
const TREE_MODE: &str = "40000";
const REFLOG_MESSAGE: &str = "mcp-delegator: restore point";

/// Stores a state under `reference`, which must not exist. Moves the list of left-out files to the point.
pub(crate) fn record(
    scratch: &Scratch,
    state: &mut State,
    (head, committed): (Head, CommittedTree),
    reference: &str,
) -> Result<RestorePoint, GitError> {
    let (repository, store) = (&scratch.repository, scratch.store());
    let captured = &mut state.captured;
    if captured.files.left_out.len() > MAX_LEFT_OUT {
        return Err(GitError::TooManyLeftOut { count: captured.files.left_out.len() });
    }
    if store.read(reference).is_some() {
        return Err(GitError::NameTaken { reference: reference.to_owned() });
    }
    let committed = committed.get()?;
    let mut point = RestorePoint {
        reference: reference.to_owned(),
        commit: String::new(),
        tree: captured.tree.clone(),
        staged: captured.index_tree.as_ref().is_some_and(|tree| *tree != committed),
        index_tree: captured.index_tree.clone(),
        head: head.commit,
        branch: head.branch,
        modified: captured.files.modified,
        untracked: captured.files.untracked,
        left_out: std::mem::take(&mut captured.files.left_out),
        top_level: repository.top_level.clone(),
        repository: repository.common_dir.clone(),
        store: store.path().to_owned(),
        created_at: now(),
        index: match &state.index.bytes {
            None => StoredIndex::Missing,
            Some(_) if state.index.is_special() || captured.index_tree.is_none() => StoredIndex::File,
            Some(_) => StoredIndex::Tree,
        },
        index_time: state.index.modified,
        under_way: operations_in_progress(repository).into_iter().map(str::to_owned).collect(),
        is_partial: state.survey.is_partial,
    };
    let blobs = index_blobs(scratch, &state.index, &committed)?;
    let created;
    (point.commit, created) = create_objects(scratch, state, &point, &blobs)?;
    let trees = point.index_tree.iter().chain([&point.tree]).map(String::as_str);
    let mut found = differing_objects(scratch, &committed, trees)?;
    found.extend(blobs);
    store.prepare(&repository.object_format)?;
    let stored =
        pack(scratch, state, (&created, found), reference).and_then(|()| publish_refs(scratch, &point));
    if stored.is_err() {
        let _ = store.delete_packs(reference);
    }
    stored.map(|()| point)
}

#[expect(clippy::disallowed_methods, reason = "a restore point records its creation time")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Objects that only the index file names: those of conflicts and intent-to-add entries.
fn index_blobs(scratch: &Scratch, index: &IndexFile, committed: &str) -> Result<BTreeSet<String>, GitError> {
    let mut found: BTreeSet<String> = index.own_objects().collect();
    if index.entries.iter().any(|entry| entry.stage != 0) {
        let args = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-ext-diff", committed];
        scratch.copy_index("conflicts")?;
        found.extend(new_ids(&scratch.run("conflicts", args, b"")?)?);
    }
    existing_objects(scratch, found)
}

/// Those of the objects that exist and can be read.
pub(crate) fn existing_objects(
    scratch: &Scratch,
    ids: BTreeSet<String>,
) -> Result<BTreeSet<String>, GitError> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let found = scratch.run_large(["cat-file", "--buffer", "--batch-check"], input.as_bytes())?;
    let found = String::from_utf8_lossy(&found);
    let exists = |entry: &&str| !entry.ends_with(" missing");
    Ok(found.lines().filter(exists).filter_map(|entry| entry.split(' ').next()).map(str::to_owned).collect())
}

/// Creates the commit and everything in it that is not there yet. Returns its id and the objects.
fn create_objects(
    scratch: &Scratch,
    state: &State,
    point: &RestorePoint,
    blobs: &BTreeSet<String>,
) -> Result<(String, NewObjects), GitError> {
    let unexpected = || GitError::UnexpectedOutput { command: "restore point" };
    let meta = serde_json::to_vec(point).map_err(|_| unexpected())?;
    let mut files: Vec<(&str, Vec<u8>)> = vec![
        ("absent", join_records(state.absent.iter().map(Vec::as_slice))),
        ("directories", state.survey.directories_to_bytes()),
    ];
    if point.index == StoredIndex::File {
        files.extend(state.index.bytes.clone().map(|bytes| ("index", bytes)));
    }
    files.push(("modes", state.survey.modes_to_bytes()));
    files.push(("written", join_records(state.about_to_write.iter().map(Vec::as_slice))));
    let mut objects = NewObjects::new(scratch.id_bytes());
    let files: Vec<(&str, String)> =
        files.into_iter().map(|(name, bytes)| (name, objects.add(ObjectKind::Blob, bytes))).collect();
    let files: Vec<(&str, &str, &str)> =
        files.iter().map(|(name, id)| (FILE_MODE, *name, id.as_str())).collect();
    let stored_state = objects.add_tree(&files).ok_or_else(unexpected)?;
    let named: Vec<(&str, &str, &str)> =
        blobs.iter().map(|id| (FILE_MODE, id.as_str(), id.as_str())).collect();
    let named = if named.is_empty() { None } else { Some(objects.add_tree(&named).ok_or_else(unexpected)?) };
    let meta = objects.add(ObjectKind::Blob, meta);
    // Sorted by name.
    let mut entries: Vec<(&str, &str, &str)> = Vec::new();
    entries.extend(named.iter().map(|id| (TREE_MODE, "blobs", id.as_str())));
    entries.extend(point.index_tree.iter().map(|id| (TREE_MODE, "index-tree", id.as_str())));
    entries.push((FILE_MODE, "meta.json", &meta));
    entries.push((TREE_MODE, "state", &stored_state));
    entries.push((TREE_MODE, "tree", &point.tree));
    let tree = objects.add_tree(&entries).ok_or_else(unexpected)?;
    let author = format!("mcp-delegator <mcp-delegator@localhost> {} +0000", point.created_at);
    let commit =
        format!("tree {tree}\nauthor {author}\ncommitter {author}\n\nmcp-delegator: {}\n", point.reference);
    Ok((objects.add(ObjectKind::Commit, commit.into_bytes()), objects))
}

/// Every object of the trees that `committed` does not have, and possibly some that it has.
pub(crate) fn differing_objects<'a>(
    scratch: &Scratch,
    committed: &str,
    trees: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<String>, GitError> {
    let trees: BTreeSet<&str> = trees.into_iter().filter(|tree| *tree != committed).collect();
    if trees.is_empty() {
        return Ok(BTreeSet::new());
    }
    let pairs: String = trees.iter().map(|tree| format!("{committed} {tree}\n")).collect();
    let args = ["diff-tree", "--stdin", "-r", "-t", "-z", "--raw", "--no-renames", "--no-ext-diff"];
    let mut found = new_ids(&scratch.run_large(args, pairs.as_bytes())?)?;
    found.extend(trees.into_iter().map(str::to_owned));
    Ok(found)
}

/// Parses the new object ids of raw diff output; `diff-tree --stdin` prints the compared pair before each diff.
fn new_ids(output: &[u8]) -> Result<BTreeSet<String>, GitError> {
    let unreadable = || GitError::UnexpectedOutput { command: "diff-tree" };
    let mut found = BTreeSet::new();
    let mut records = records(output);
    while let Some(record) = records.next() {
        let header = record.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        if header.is_empty() {
            break;
        }
        let header = DiffHeader::parse(header).ok_or_else(unreadable)?;
        records.next().ok_or_else(unreadable)?;
        if header.new_mode != GITLINK && header.new_id.bytes().any(|byte| byte != b'0') {
            found.insert(header.new_id.to_owned());
        }
    }
    Ok(found)
}

/// Packs the objects that were created for the restore point and those that were found. Large blobs are packed separately:
/// that pack is identical for restore points with the same large blobs and is then shared, so a large untracked file
/// takes its space once and not once per task.
fn pack(
    scratch: &Scratch,
    state: &State,
    (created, found): (&NewObjects, BTreeSet<String>),
    reference: &str,
) -> Result<(), GitError> {
    let store = scratch.store();
    let mut small = found;
    if created.bytes() < MAX_UNCOMPRESSED {
        store.add_pack(reference, &created.pack())?;
    } else {
        let objects = scratch.path("objects");
        created.write_loose(&objects).map_err(GitError::io("write to", objects))?;
        small.extend(created.ids());
    }
    if small.is_empty() {
        return Ok(());
    }
    let others = [scratch.path("objects"), scratch.repository_objects()];
    let large = large_blobs(scratch, state, &small)?;
    small.retain(|id| !large.contains(id));
    let pack =
        |objects| pack_into(scratch, (&store.objects(), &others), &store.pack_base(reference), objects);
    if !large.is_empty() {
        store.share_pack(reference, &pack(&large)?)?;
    }
    if small.is_empty() { Ok(()) } else { pack(&small).map(drop) }
}

/// The large blobs among the objects, as far as their size is in an index or they are the index file itself. Conflicts
/// have no size in an index, so that git reads theirs.
fn large_blobs(
    scratch: &Scratch,
    state: &State,
    objects: &BTreeSet<String>,
) -> Result<BTreeSet<String>, GitError> {
    if state.index.own_objects().next().is_some() {
        return large_blobs_by_git(scratch, objects);
    }
    let work_index = IndexFile::read_copy(scratch, WORK_INDEX)?;
    let mut large: BTreeSet<String> =
        [&state.index, &work_index].into_iter().flat_map(|index| index.large_files(LARGE_BLOB)).collect();
    let index_bytes = state.index.bytes.iter().filter(|bytes| bytes.len() as u64 >= LARGE_BLOB);
    large.extend(index_bytes.map(|bytes| hex(&blob_id(bytes, scratch.id_bytes()))));
    large.retain(|id| objects.contains(id));
    Ok(large)
}

fn large_blobs_by_git(scratch: &Scratch, objects: &BTreeSet<String>) -> Result<BTreeSet<String>, GitError> {
    let input: String = objects.iter().map(|id| format!("{id}\n")).collect();
    let args = ["cat-file", "--buffer", "--batch-check=%(objectname) %(objecttype) %(objectsize)"];
    let sizes = scratch.run_large(args, input.as_bytes())?;
    let is_large = |size: &str| size.parse::<u64>().is_ok_and(|size| size >= LARGE_BLOB);
    let sizes = String::from_utf8_lossy(&sizes);
    let blobs = sizes.lines().filter_map(|entry| entry.split_once(" blob "));
    Ok(blobs.filter(|(_, size)| is_large(size)).map(|(id, _)| id.to_owned()).collect())
}

/// Writes a pack with these objects and returns its hash. The agent's start waits for this, so time matters more than
/// size: no deltas, low compression.
pub(crate) fn pack_into(
    scratch: &Scratch,
    places: (&Path, &[PathBuf]),
    base: &Path,
    objects: &BTreeSet<String>,
) -> Result<String, GitError> {
    let input: String = objects.iter().map(|id| format!("{id}\n")).collect();
    let args = ["pack-objects", "--quiet", "--window=0", "--no-reuse-delta", "--compression=1"];
    let args = args.map(OsStr::new).into_iter().chain([base.as_os_str()]);
    Ok(single_line(&scratch.run_in_objects(places, args, input.as_bytes())?))
}

/// Writes the refs: first the one that protects HEAD's commit, last the one that marks the restore point as complete.
fn publish_refs(scratch: &Scratch, point: &RestorePoint) -> Result<(), GitError> {
    let repository = &scratch.repository;
    if let Some(head) = &point.head {
        // An existing ref is replaced: a crash may have left it without the restore point.
        let is_written =
            scratch.has_plain_refs && write_ref_file(&repository.common_dir, &point.reference, head);
        if !is_written {
            let command = format!("update {}\0{head}\0\0", point.reference);
            repository.update_refs(&scratch.git, command.as_bytes(), REFLOG_MESSAGE)?;
        }
    }
    let created = scratch.store().create(&point.reference, &point.commit);
    if let (Err(_), Some(head)) = (&created, &point.head) {
        let _ = drop_ref(&scratch.git, &point.repository, &point.reference, head);
    }
    created
}

/// The tree of HEAD, which git reads while the work tree is captured; the empty tree before the first commit.
#[derive(Debug)]
pub(crate) struct CommittedTree(PendingOutput);

impl CommittedTree {
    pub(crate) fn start(scratch: &Scratch, head: &Head) -> Result<CommittedTree, GitError> {
        let started = match &head.commit {
            Some(commit) => {
                let tree = format!("{commit}^{{tree}}");
                scratch.start("none", ["rev-parse", "--verify", "--quiet", &tree])
            }
            None => scratch.start("none", ["hash-object", "-t", "tree", "--stdin"]),
        };
        started.map(CommittedTree)
    }

    fn get(self) -> Result<String, GitError> {
        Ok(single_line(&self.0.get()?))
    }
}

/// The id of the tree of a commit.
pub(crate) fn tree_of(scratch: &Scratch, commit: &str) -> Result<String, GitError> {
    let tree = format!("{commit}^{{tree}}");
    Ok(single_line(&scratch.run("none", ["rev-parse", "--verify", "--quiet", &tree], b"")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_objects_are_read_from_raw_diffs() {
        let output = b"aa bb\ncc dd\n:000000 100644 0000 ab12 A\0:odd\0:160000 160000 a b M\0sub\0ee ff\n\
                       :100644 000000 ab12 0000 D\0gone\0:040000 040000 aa cd34 M\0dir\0gg hh\n";
        let ids: Vec<String> = new_ids(output).unwrap().into_iter().collect();
        assert_eq!(ids, ["ab12", "cd34"]);
        assert!(new_ids(b":000000 100644 0000 ab12 A\0").is_err());
    }
}
