//! Writes a restore point: one commit, its packs in the store, then the refs.
//!
//! The packs hold every object that the point needs and that HEAD's tree does not have, whether we created it
//! or found it in the user's repository (staged content). So `git gc` in the repository cannot delete any of
//! them. The ref in the store is written last: if it exists, the restore point is complete.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use super::point::{RestorePoint, StoredIndex, drop_ref};
use crate::capture::TreeState;
use crate::diff::raw_diff;
use crate::error::{GitError, Result};
use crate::index::IndexFile;
use crate::records::{GITLINK, join_records, output_text};
use crate::repository::{Head, PackFile, point_name};
use crate::run::RunningGit;
use crate::scratch::Scratch;

/// A longer list would make `meta.json` too large.
const MAX_LEFT_OUT: usize = 100_000;
/// Blobs of more bytes are large, as an option of `git rev-list`.
const LARGE_BLOB: &str = "--filter=blob:limit=64k";
const REFLOG_MESSAGE: &str = "mcp-delegator: restore point";

/// Whether a restore point of that name can be created.
pub(crate) fn is_name_free(scratch: &Scratch, reference: &str) -> Result<bool> {
    let is_stored = scratch.store.read(reference).is_some();
    Ok(!is_stored && scratch.repository.resolve_ref(&scratch.git, reference)?.is_none())
}

/// Stores a state under `reference`, which must not exist. Moves the list of left-out files to the point.
pub(crate) fn record(
    scratch: &Scratch,
    state: &mut TreeState,
    head: &Head,
    committed: CommittedTree,
    reference: &str,
) -> Result<RestorePoint> {
    let (repository, store) = (&scratch.repository, &scratch.store);
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
        head: head.commit.clone(),
        branch: head.branch.clone(),
        modified: captured.files.modified,
        untracked: captured.files.untracked,
        left_out: std::mem::take(&mut captured.files.left_out),
        top_level: repository.top_level.clone(),
        repository: repository.common_dir.clone(),
        store: store.path.clone(),
        created_at: now(),
        index: match &state.index.bytes {
            None => StoredIndex::Missing,
            Some(_) if state.index.is_special() || captured.index_tree.is_none() => StoredIndex::File,
            Some(_) => StoredIndex::Tree,
        },
        index_time: state.index.modified,
        under_way: repository.operations_in_progress().into_iter().map(str::to_owned).collect(),
        is_partial: state.survey.is_partial,
    };
    let blobs = index_blobs(scratch, &state.index, &committed)?;
    let created = create_commit(scratch, state, &point, &blobs)?;
    point.commit = created.id.clone();
    store.prepare(&repository.object_format).map_err(GitError::io("create", &store.path))?;
    let protection = protect_head(scratch, &point)?;
    let is_staged = point.index_tree.as_ref() != Some(&committed) || !blobs.is_empty();
    let packed = if is_staged || state.captured.files.has_large_files {
        pack(scratch, &committed, &point)
    } else if point.tree == committed && adopt_pack(scratch, &point, &created)? {
        Ok(())
    } else {
        pack_small(scratch, &committed, &point)
    };
    // Also after an error: a process that is killed would leave its lock.
    let protected = protection.map_or(Ok(()), |running| running.output().map(drop));
    let stored = packed.and(protected).and_then(|()| store.create(reference, &point.commit));
    if stored.is_err() {
        let _ = store.delete_packs(reference);
        if let Some(head) = &point.head {
            let _ = drop_ref(&scratch.git, &point.repository, reference, head);
        }
    }
    stored.map(|()| point)
}

#[expect(clippy::disallowed_methods, reason = "a restore point records its creation time")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Objects that only the index file names: those of conflicts and intent-to-add entries.
fn index_blobs(scratch: &Scratch, index: &IndexFile, committed: &str) -> Result<BTreeSet<String>> {
    let mut found: BTreeSet<String> = index.own_objects().collect();
    if index.entries.iter().any(|entry| entry.stage != 0) {
        scratch.copy_index("conflicts")?;
        let options = ["--cached", "--no-renames", committed];
        let differing = raw_diff(scratch, "conflicts", "diff-index", &options)?;
        let versions = differing.into_iter().map(|change| change.new);
        found.extend(versions.filter(|(mode, _)| mode != GITLINK).map(|(_, id)| id));
    }
    scratch.existing_objects(found)
}

/// The commit of a restore point in our own git directory.
struct CreatedCommit {
    id: String,
    /// How many objects it has besides those in the trees of the work tree and the index.
    own_objects: usize,
}

/// Creates the commit and everything in it that is not there yet, in our own git directory. git leaves an empty tree out of the commit, and finds it without an object.
fn create_commit(
    scratch: &Scratch,
    state: &TreeState,
    point: &RestorePoint,
    blobs: &BTreeSet<String>,
) -> Result<CreatedCommit> {
    let unexpected = || GitError::unexpected("fast-import");
    let meta = serde_json::to_vec(point).map_err(|_| unexpected())?;
    let mut files: Vec<(&str, Vec<u8>)> = vec![
        ("meta.json", meta),
        ("state/absent", join_records(&state.absent)),
        ("state/directories", state.survey.directories_to_bytes()),
        ("state/modes", state.survey.modes_to_bytes()),
        ("state/written", join_records(&state.about_to_write)),
    ];
    if point.index == StoredIndex::File {
        files.extend(state.index.bytes.clone().map(|bytes| ("state/index", bytes)));
    }
    // The commit, its tree and the tree `state`.
    let own_objects = 3 + files.iter().map(|(_, content)| content).collect::<BTreeSet<_>>().len();
    let message = format!("mcp-delegator: {}\n", point.reference);
    let committer = format!("mcp-delegator <mcp-delegator@localhost> {} +0000", point.created_at);
    let data = |content: &[u8]| [format!("data {}\n", content.len()).as_bytes(), content, b"\n"].concat();
    let mut stream = format!("commit refs/heads/point\nmark :1\ncommitter {committer}\n").into_bytes();
    stream.extend(data(message.as_bytes()));
    for (name, content) in files {
        stream.extend(format!("M 100644 inline {name}\n").into_bytes());
        stream.extend(data(&content));
    }
    let trees = point.index_tree.iter().map(|tree| ("index-tree", tree)).chain([("tree", &point.tree)]);
    stream.extend(trees.flat_map(|(name, id)| format!("M 040000 {id} {name}\n").into_bytes()));
    stream.extend(blobs.iter().flat_map(|id| format!("M 100644 {id} blobs/{id}\n").into_bytes()));
    stream.extend(b"get-mark :1\ndone\n");
    let id = scratch.import(&stream)?.pop().ok_or_else(unexpected)?;
    Ok(CreatedCommit { id, own_objects })
}

/// Stores the pack that git wrote with the commit, if nothing else is needed. It lacks the objects that the
/// repository has by chance, where `git gc` may delete them.
fn adopt_pack(scratch: &Scratch, point: &RestorePoint, created: &CreatedCommit) -> Result<bool> {
    let packs = PackFile::all_in(&scratch.path("objects/pack"));
    let [pack] = packs.as_slice() else { return Ok(false) };
    let is_complete = pack.object_count()? == created.own_objects;
    if is_complete {
        pack.copy_to(&scratch.store, point_name(&point.reference))?;
    }
    Ok(is_complete)
}

/// Packs every object of the restore point that HEAD's tree does not have, with one process.
fn pack_small(scratch: &Scratch, committed: &str, point: &RestorePoint) -> Result<()> {
    let revisions = format!("{}\n--not\n{committed}\n", point.commit);
    let options = ["--revs", "--no-sparse", "--missing=allow-any"];
    let name = point_name(&point.reference);
    scratch.write_pack(&scratch.store.objects(), name, &options, &revisions).map(drop)
}

/// Like [`pack_small`], but packs large blobs separately:
/// that pack is identical for restore points with the same large blobs and is then shared, so a large
/// untracked file takes its space once and not once per task.
fn pack(scratch: &Scratch, committed: &str, point: &RestorePoint) -> Result<()> {
    let store = &scratch.store;
    let args = ["--filter-print-omitted", LARGE_BLOB, &point.commit, "--not", committed];
    let (large, small): (BTreeSet<String>, BTreeSet<String>) =
        scratch.list_objects(args)?.into_iter().partition(|listed| listed.starts_with('~'));
    let large: BTreeSet<String> = large.iter().map(|listed| listed.replace('~', "")).collect();
    let pack = |objects| scratch.pack_into(&store.objects(), point_name(&point.reference), objects);
    if let Some(hash) = pack(&large)? {
        store.share_pack(&point.reference, &hash)?;
    }
    pack(&small).map(drop)
}

/// Starts to write the ref that protects HEAD's commit, while the objects are packed. An existing ref is
/// replaced: a crash may have left it without the restore point.
fn protect_head(scratch: &Scratch, point: &RestorePoint) -> Result<Option<RunningGit<'static>>> {
    let Some(head) = &point.head else { return Ok(None) };
    let repository = &scratch.repository;
    let args = ["update-ref", "--no-deref", "-m", REFLOG_MESSAGE, &point.reference, head];
    scratch.git.start(&repository.top_level, repository.call(args)).map(Some)
}

/// The tree of HEAD, which git reads while the work tree is captured; the empty tree before the first commit.
#[derive(Debug)]
pub(crate) struct CommittedTree(RunningGit<'static>);

impl CommittedTree {
    pub(crate) fn start(scratch: &Scratch, head: &Head) -> Result<CommittedTree> {
        let tree = head.commit.as_ref().map(|commit| format!("{commit}^{{tree}}"));
        let args = match &tree {
            Some(tree) => ["rev-parse", "--verify", "--quiet", tree],
            None => ["hash-object", "-t", "tree", "--stdin"],
        };
        scratch.git.start(scratch.top(), scratch.call("none", args)).map(CommittedTree)
    }

    fn get(self) -> Result<String> {
        Ok(output_text(&self.0.output()?))
    }
}
