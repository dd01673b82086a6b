//! Merges the packs of a store.
//!
//! Every restore point is created with packs of its own, so nothing of the others is read for it. But git searches all packs
//! of a store for an object, so each of them makes every later call slower. Beyond a number of packs those of complete restore
//! points are merged into one, with a list of the objects of each point: `merged/<hash of the pack>`. By the lists a later
//! merge of merged packs leaves out the objects of deleted points.
//!
//! The pack is written first, then its list, then the old packs are deleted: a crash leaves duplicates at most. A process that
//! creates a restore point meanwhile adds packs, which are not among those that are merged. One process at a time merges.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use crate::error::GitError;
use crate::index_file::hex;
use crate::listing::single_line;
use crate::restore_point::RestorePoint;
use crate::run::{Call, Git};
use crate::store::{PackFile, Store};

/// Packs of single restore points.
const MAX_PACKS: usize = 100;
const MAX_MERGED_PACKS: usize = 16;

/// The objects of restore points in one merged pack.
#[derive(Debug, Default)]
pub(crate) struct MergedPoints {
    /// By the name of the point: the bytes that its own packs had, and its objects.
    pub(crate) points: BTreeMap<String, (u64, BTreeSet<String>)>,
}

impl MergedPoints {
    /// One line per point: name, bytes, objects.
    fn to_text(&self) -> String {
        let line = |(name, (bytes, ids)): (&String, &(u64, BTreeSet<String>))| {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            format!("{name} {bytes} {}\n", ids.join(" "))
        };
        self.points.iter().map(line).collect()
    }

    pub(crate) fn add_text(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(Ok(bytes))) = (words.next(), words.next().map(str::parse)) else {
                continue;
            };
            self.add(name, bytes, words.map(str::to_owned));
        }
    }

    fn add(&mut self, name: &str, bytes: u64, ids: impl IntoIterator<Item = String>) {
        let (known_bytes, known_ids) = self.points.entry(name.to_owned()).or_default();
        *known_bytes += bytes;
        known_ids.extend(ids);
    }
}

/// Merges the packs in the store of a restore point if there are many. Returns whether it did.
pub fn merge_packs(git: &Git, point: &RestorePoint) -> Result<bool, GitError> {
    let store = Store::at(&point.store);
    match store.pack_files().len() > MAX_PACKS + MAX_MERGED_PACKS {
        true => merge(git, &store, |merged| merged > MAX_MERGED_PACKS),
        false => Ok(false),
    }
}

/// Deletes the objects of dropped restore points from the merged packs in the store of one of them.
pub fn delete_dropped_objects(git: &Git, point: &RestorePoint) -> Result<bool, GitError> {
    let store = Store::at(&point.store);
    let is_dropped = |name: &String| store.read_named(name).is_none();
    match store.merged_points().points.keys().any(is_dropped) {
        true => merge(git, &store, |_| true),
        false => Ok(false),
    }
}

/// `merges_all` decides by the number of merged packs whether they are merged as well.
fn merge(git: &Git, store: &Store, merges_all: impl FnOnce(usize) -> bool) -> Result<bool, GitError> {
    let lock_file = store.path().join("merge.lock");
    let lock = File::create(&lock_file).map_err(GitError::io("create", &lock_file))?;
    if lock.try_lock().is_err() {
        return Ok(false);
    }
    let is_complete = |name: &str| store.read_named(name).is_some();
    let (merged, own): (Vec<PackFile>, Vec<PackFile>) =
        store.pack_files().into_iter().partition(PackFile::is_merged);
    let mut old: Vec<PackFile> = own.into_iter().filter(|pack| is_complete(&pack.point)).collect();
    let mut points = MergedPoints::default();
    for pack in &old {
        points.add(&pack.point, pack.bytes, pack.object_ids()?);
    }
    let mut old_lists: Vec<PathBuf> = Vec::new();
    if merges_all(merged.len()) {
        for (name, (bytes, ids)) in store.merged_points().points {
            if is_complete(&name) {
                points.add(&name, bytes, ids);
            }
        }
        old_lists = store.merged_lists();
        old.extend(merged);
    }
    let ids: BTreeSet<&String> = points.points.values().flat_map(|(_, ids)| ids).collect();
    let hash = match ids.is_empty() {
        true => None,
        false => Some(write_pack(git, store, &ids)?),
    };
    if let Some(hash) = &hash {
        store.write_merged_list(hash, points.to_text().as_bytes())?;
    }
    let is_new = |name: &str| hash.as_deref().is_some_and(|hash| name.ends_with(hash));
    for pack in old.iter().filter(|pack| !(pack.is_merged() && is_new(pack.hash()))) {
        pack.delete()?;
    }
    for list in old_lists.iter().filter(|list| !is_new(&list.to_string_lossy())) {
        fs::remove_file(list).map_err(GitError::io("delete", list))?;
    }
    Ok(true)
}

/// Writes a pack with these objects of the store and returns its hash.
fn write_pack(git: &Git, store: &Store, ids: &BTreeSet<&String>) -> Result<String, GitError> {
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let base = store.merged_pack_base();
    let args = ["pack-objects", "--quiet", "--window=0", "--no-reuse-delta"].map(std::ffi::OsStr::new);
    let call = Call::in_git_dir(store.path(), args.into_iter().chain([base.as_os_str()]));
    Ok(single_line(&git.run(store.path(), &Call { input: input.as_bytes(), ..call })?))
}

impl PackFile {
    /// The ids of its objects, from its index.
    fn object_ids(&self) -> Result<Vec<String>, GitError> {
        let path = self.path("idx");
        let unreadable = || GitError::UnexpectedOutput { command: "pack index" };
        let bytes = fs::read(&path).map_err(GitError::io("read", path))?;
        const FAN_OUT: usize = 8;
        const IDS: usize = FAN_OUT + 256 * 4;
        let count = bytes.get(IDS - 4..IDS).and_then(|count| count.try_into().ok()).map(u32::from_be_bytes);
        let count =
            count.filter(|_| bytes.starts_with(b"\xfftOc\0\0\0\x02")).ok_or_else(unreadable)? as usize;
        let ids = bytes.get(IDS..IDS + count * self.id_bytes()).ok_or_else(unreadable)?;
        Ok(ids.chunks(self.id_bytes()).map(hex).collect())
    }

    /// Deletes it, the index first: git reports an index without its pack.
    fn delete(&self) -> Result<(), GitError> {
        for ending in ["idx", "rev", "pack"] {
            let path = self.path(ending);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(GitError::io("delete", path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
