//! Merges the packs of a store.
//!
//! Every restore point is created with packs of its own, so nothing of the others is read for it. But git
//! searches all packs of a store for an object, so each of them makes every later call slower. Beyond a
//! number of packs those of complete restore points are merged into one, with a list of the objects of each
//! point: `merged/<hash of the pack>`. By the lists a later merge of merged packs leaves out the objects of
//! deleted points.
//!
//! The pack is written first, then its list, then the old packs are deleted: a crash leaves duplicates at
//! most. A process that creates a restore point meanwhile adds packs, which are not among those that are
//! merged. One process at a time merges.

use std::collections::BTreeSet;
use std::fs::{self, File};

use super::point::RestorePoint;
use crate::error::{GitError, Result};
use crate::files::write_atomically;
use crate::records::{hex, output_text};
use crate::repository::{MERGED, MergedPoint, MergedPoints, PackFile, Store, UNREADABLE, add};
use crate::run::{Call, Git};

const MAX_PACKS: usize = 100;
const MAX_MERGED_PACKS: usize = 16;

/// Merges the packs in the store of a restore point if there are many. Returns whether it did.
pub fn merge_packs(git: &Git, point: &RestorePoint) -> Result<bool> {
    let store = Store::at(&point.store);
    let is_due = store.pack_files().len() > MAX_PACKS + MAX_MERGED_PACKS;
    if is_due { store.merge(git, MAX_MERGED_PACKS) } else { Ok(false) }
}

/// Deletes the objects of dropped restore points from the merged packs in the store of one of them.
pub fn delete_dropped_objects(git: &Git, point: &RestorePoint) -> Result<bool> {
    let store = Store::at(&point.store);
    let is_due = store.merged_points()?.keys().any(|name| !store.is_complete(name));
    if is_due { store.merge(git, 0) } else { Ok(false) }
}

impl Store {
    fn is_complete(&self, name: &str) -> bool {
        self.read(&format!("refs/mcp-delegator/{name}")).is_some()
    }

    /// Merged packs are merged as well if there are more than `max_merged`.
    fn merge(&self, git: &Git, max_merged: usize) -> Result<bool> {
        let lock_file = self.path.join("merge.lock");
        let lock = File::create(&lock_file).map_err(GitError::io("create", &lock_file))?;
        if lock.try_lock().is_err() {
            return Ok(false);
        }
        let is_merged = |pack: &PackFile| pack.point == MERGED;
        let (merged, mut old): (Vec<PackFile>, Vec<PackFile>) =
            self.pack_files().into_iter().partition(is_merged);
        // One without an index is being written, or its deletion was interrupted.
        old.retain(|pack| self.is_complete(&pack.point) && pack.index().exists());
        let mut points = MergedPoints::new();
        for pack in &old {
            let point = MergedPoint { bytes: pack.bytes, objects: object_ids(pack)? };
            add(&mut points, pack.point.clone(), point);
        }
        let mut old_lists = Vec::new();
        if merged.len() > max_merged {
            let known = self.merged_points()?.into_iter().filter(|(name, _)| self.is_complete(name));
            known.for_each(|(name, point)| add(&mut points, name, point));
            old_lists.extend(self.merged_lists());
            old.extend(merged);
        }
        let hash = self.write_merged(git, &points)?;
        // The same objects give the same pack.
        for pack in old.iter().filter(|pack| !is_merged(pack) || pack.hash != hash) {
            pack.delete()?;
        }
        for list in old_lists.iter().filter(|list| !list.ends_with(&hash)) {
            fs::remove_file(list).map_err(GitError::io("delete", list))?;
        }
        Ok(true)
    }

    /// Writes a pack with the objects of the points, and its list. Returns the hash of the pack.
    fn write_merged(&self, git: &Git, points: &MergedPoints) -> Result<String> {
        let ids: BTreeSet<&String> = points.values().flat_map(|point| &point.objects).collect();
        let ids: String = ids.into_iter().map(|id| format!("{id}\n")).collect();
        let (packs, lists) = (self.objects().join("pack"), self.path.join(MERGED));
        let base = packs.join(MERGED).into_os_string();
        let args = ["pack-objects", "--quiet", "--window=0", "--no-reuse-delta"].map(Into::into);
        let call = Call::in_git_dir(&self.path, args.into_iter().chain([base]));
        let hash = output_text(&git.run(&self.path, Call { input: ids.as_bytes(), ..call })?);
        let text = serde_json::to_vec(points).map_err(|_| UNREADABLE)?;
        fs::create_dir_all(&lists)
            .and_then(|()| File::open(&packs)?.sync_all())
            .and_then(|()| write_atomically(&lists.join(&hash), &text, true))
            .map_err(GitError::io("create", lists))?;
        Ok(hash)
    }
}

/// The ids of the objects in a pack, from its index. An id is as long as the hash of the pack.
fn object_ids(pack: &PackFile) -> Result<BTreeSet<String>> {
    const IDS: usize = 8 + 256 * 4;
    let bytes = fs::read(pack.index()).map_err(GitError::io("read", pack.index()))?;
    let header = bytes.get(..IDS).filter(|header| header.starts_with(b"\xfftOc\0\0\0\x02"));
    let count = header.and_then(|header| header.last_chunk()).map(|count| u32::from_be_bytes(*count));
    let id_bytes = pack.hash.len() / 2;
    let ids = count.and_then(|count| bytes.get(IDS..IDS + count as usize * id_bytes)).ok_or(UNREADABLE)?;
    Ok(ids.chunks(id_bytes).map(hex).collect())
}
