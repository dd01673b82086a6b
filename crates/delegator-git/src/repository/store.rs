//! The private store of restore points: a bare git directory inside the user's repository.
//!
//! ```text
//! <common dir>/mcp-delegator/            0700
//!   refs/mcp-delegator/<name>            the commit of a restore point
//!   objects/pack/<name>-<hash>.pack      its objects that HEAD's tree does not have
//!   objects/info/alternates              the repository's own objects
//!   ends/<name>                          the state after the task, and its objects in
//!   objects/pack/<name>.end-<hash>.pack
//!   objects/pack/merged-<hash>.pack      the objects of many restore points, listed in merged/<hash>
//! ```
//!
//! `git push --mirror`, fetch and clone do not read it, so untracked files stay private. A restore point is
//! one ref and its packs, so deleting it walks no history. The user's repository only holds a ref of the same
//! name to HEAD's commit, which protects that commit from `git gc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::locate::git_config;
use crate::error::{GitError, Result};
use crate::files::{if_exists, remove_file, write_atomically};

const PREFIX: &str = "refs/mcp-delegator/";
const DIR_NAME: &str = "mcp-delegator";
/// Ends the base name of the packs of a state after a task.
const END: &str = ".end";

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) path: PathBuf,
}

impl Store {
    /// The store of a repository, whether it exists or not. If the directory belongs to another user, a name
    /// with our user id is used.
    pub(crate) fn of(common_dir: &Path) -> Store {
        let path = common_dir.join(DIR_NAME);
        let uid = rustix::process::geteuid().as_raw();
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_dir() || found.uid() != uid => {
                Store { path: common_dir.join(format!("{DIR_NAME}-{uid}")) }
            }
            _ => Store { path },
        }
    }

    pub(crate) fn at(path: &Path) -> Store {
        Store { path: path.to_owned() }
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    pub(crate) fn prepare(&self, object_format: &str) -> io::Result<()> {
        for folder in ["", "objects", "objects/info", "objects/pack", "refs", "refs/mcp-delegator", "ends"] {
            let created = fs::DirBuilder::new().mode(0o700).create(self.path.join(folder));
            match created {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let files = [
            ("HEAD", "ref: refs/heads/none\n".to_owned()),
            ("config", git_config(true, object_format)),
            ("objects/info/alternates", "../../objects\n".to_owned()),
        ];
        for (name, text) in files {
            let path = self.path.join(name);
            if fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                write_atomically(&path, text.as_bytes(), true)?;
            }
        }
        Ok(())
    }

    pub(crate) fn read(&self, reference: &str) -> Option<String> {
        let text = fs::read_to_string(self.ref_path(reference)?).ok()?;
        let id = text.strip_suffix('\n')?;
        (id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
    }

    /// Creates the ref of a restore point whose packs are complete. Fails if it exists.
    pub(crate) fn create(&self, reference: &str, commit: &str) -> Result<()> {
        self.write_after_packs(self.ref_path(reference), format!("{commit}\n").as_bytes(), false)
    }

    /// Stores the state after the task of a restore point; its packs are complete.
    pub(crate) fn write_end(&self, reference: &str, bytes: &[u8]) -> Result<()> {
        self.write_after_packs(self.end_path(reference), bytes, true)
    }

    fn write_after_packs(&self, path: Option<PathBuf>, bytes: &[u8], may_replace: bool) -> Result<()> {
        let path = path.ok_or(GitError::unexpected("restore point name"))?;
        let synced = fs::File::open(self.objects().join("pack")).and_then(|packs| packs.sync_all());
        synced
            .and_then(|()| write_atomically(&path, bytes, may_replace))
            .map_err(GitError::io("create", &path))
    }

    /// Deletes the state after the task and the ref, if they exist, and then the objects.
    pub(crate) fn delete(&self, reference: &str) -> Result<()> {
        for path in [self.end_path(reference), self.ref_path(reference)].into_iter().flatten() {
            remove_file(&path)?;
        }
        self.delete_packs(reference)
    }

    /// The state after the task of a restore point, and its file; `None` if it was not stored.
    pub(crate) fn read_end(&self, reference: &str) -> Result<Option<(PathBuf, Vec<u8>)>> {
        let Some(path) = self.end_path(reference) else { return Ok(None) };
        let bytes = if_exists(fs::read(&path)).map_err(GitError::io("read", &path))?;
        Ok(bytes.map(|bytes| (path, bytes)))
    }

    /// Deletes the packs of a restore point and of its state after the task.
    pub(crate) fn delete_packs(&self, reference: &str) -> Result<()> {
        let mut packs = self.pack_files().into_iter().filter(|pack| pack.point == point_name(reference));
        packs.try_for_each(|pack| pack.delete())
    }

    /// Replaces a pack by a hard link to an equal pack of another restore point, if there is one. Packs with
    /// the same objects are equal, and their names end in the hash of their content.
    pub(crate) fn share_pack(&self, reference: &str, hash: &str) -> Result<()> {
        let own_name = format!("{}-{hash}.pack", point_name(reference));
        let packs = self.objects().join("pack");
        let suffix = format!("-{hash}.pack");
        let entries = fs::read_dir(&packs).into_iter().flatten().flatten();
        let mut others = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let Some(other) = others.find(|file| file.ends_with(&suffix) && *file != own_name) else {
            return Ok(());
        };
        let linked = packs.join(format!(".link-{own_name}"));
        let replaced = fs::hard_link(packs.join(&other), &linked)
            .and_then(|()| fs::rename(&linked, packs.join(&own_name)));
        match replaced {
            // The other pack was just deleted, or the file system has no hard links: retain our own copy.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => {
                let _ = fs::remove_file(&linked);
                Ok(())
            }
            replaced => replaced.map_err(GitError::io("link", packs.join(own_name))),
        }
    }

    /// Size on disk in bytes, including packs shared with other restore points.
    pub(crate) fn size(&self, reference: &str) -> u64 {
        self.sizes().remove(point_name(reference)).unwrap_or_default()
    }

    pub(crate) fn sizes(&self) -> BTreeMap<String, u64> {
        let merged = self.merged_points().unwrap_or_default().into_iter();
        let packs = self.pack_files().into_iter().map(|pack| (pack.point, pack.bytes));
        let ends = fs::read_dir(self.path.join("ends")).into_iter().flatten().flatten();
        let ends =
            ends.filter_map(|end| Some((end.file_name().into_string().ok()?, end.metadata().ok()?.len())));
        let mut sizes = BTreeMap::new();
        for (name, bytes) in merged.map(|(name, point)| (name, point.bytes)).chain(packs).chain(ends) {
            *sizes.entry(name).or_default() += bytes;
        }
        sizes
    }

    pub(crate) fn merged_lists(&self) -> impl Iterator<Item = PathBuf> {
        let lists = fs::read_dir(self.path.join(MERGED)).into_iter().flatten().flatten();
        lists.filter(|list| !list.file_name().as_encoded_bytes().starts_with(b".")).map(|list| list.path())
    }

    pub(crate) fn merged_points(&self) -> Result<MergedPoints> {
        let mut merged = MergedPoints::new();
        for list in self.merged_lists() {
            let bytes = fs::read(&list).map_err(GitError::io("read", list))?;
            let points: MergedPoints = serde_json::from_slice(&bytes).map_err(|_| UNREADABLE)?;
            points.into_iter().for_each(|(name, point)| add(&mut merged, name, point));
        }
        Ok(merged)
    }

    pub(crate) fn pack_files(&self) -> Vec<PackFile> {
        PackFile::all_in(&self.objects().join("pack"))
    }

    pub(crate) fn references(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path.join(PREFIX)).into_iter().flatten().flatten();
        let mut found: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .map(|name| format!("{PREFIX}{name}"))
            .filter(|reference| self.read(reference).is_some())
            .collect();
        found.sort();
        found
    }

    fn ref_path(&self, reference: &str) -> Option<PathBuf> {
        Some(self.path.join(PREFIX).join(safe_name(reference)?))
    }

    fn end_path(&self, reference: &str) -> Option<PathBuf> {
        Some(self.path.join("ends").join(safe_name(reference)?))
    }
}

/// The name of merged packs, in place of that of a restore point.
pub(crate) const MERGED: &str = "merged";

/// What merged packs hold, by the names of the restore points, deleted ones included.
pub(crate) type MergedPoints = BTreeMap<String, MergedPoint>;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct MergedPoint {
    /// The size that its own packs had.
    pub(crate) bytes: u64,
    pub(crate) objects: BTreeSet<String>,
}

/// Adds to what is known of a point.
pub(crate) fn add(points: &mut MergedPoints, name: String, more: MergedPoint) {
    let point = points.entry(name).or_default();
    point.bytes += more.bytes;
    point.objects.extend(more.objects);
}

pub(crate) const UNREADABLE: GitError = GitError::unexpected("pack-objects");

#[derive(Debug)]
pub(crate) struct PackFile {
    /// Without an ending.
    base: PathBuf,
    /// The name of the restore point that it was written for.
    pub(crate) point: String,
    pub(crate) hash: String,
    /// With its index.
    pub(crate) bytes: u64,
}

impl PackFile {
    pub(crate) fn all_in(directory: &Path) -> Vec<PackFile> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut packs: BTreeMap<PathBuf, PackFile> = BTreeMap::new();
        for entry in entries {
            let base = entry.path().with_extension("");
            if let Some(pack) = PackFile::named(&base) {
                packs.entry(base).or_insert(pack).bytes += entry.metadata().map_or(0, |found| found.len());
            }
        }
        packs.into_values().collect()
    }

    /// `None` if the name is not that of a pack.
    fn named(base: &Path) -> Option<PackFile> {
        let (owner, hash) = base.file_name()?.to_str()?.rsplit_once('-')?;
        let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let point = owner.strip_suffix(END).unwrap_or(owner).to_owned();
        is_hash.then(|| PackFile { base: base.to_owned(), point, hash: hash.to_owned(), bytes: 0 })
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.file("idx")
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.base.with_added_extension(ending)
    }

    /// The number of objects, from the header of the pack.
    pub(crate) fn object_count(&self) -> Result<usize> {
        let file = self.file("pack");
        let mut header = [0; 12];
        let read = fs::File::open(&file).and_then(|mut pack| pack.read_exact(&mut header));
        read.map_err(GitError::io("read", file))?;
        let [.., a, b, c, d] = header;
        Ok(u32::from_be_bytes([a, b, c, d]) as usize)
    }

    /// Copies it for a restore point to a store; the index, by which git finds it, last.
    pub(crate) fn copy_to(&self, store: &Store, point: &str) -> Result<()> {
        for ending in ["pack", "idx"] {
            let target = store.objects().join("pack").join(format!("{point}-{}.{ending}", self.hash));
            let copied =
                fs::read(self.file(ending)).and_then(|bytes| write_atomically(&target, &bytes, true));
            copied.map_err(GitError::io("create", target))?;
        }
        Ok(())
    }

    /// Deletes it, the index first: git reports an index without its pack.
    pub(crate) fn delete(&self) -> Result<()> {
        let files = ["idx", "rev", "pack"].map(|ending| self.file(ending));
        files.iter().try_for_each(|file| remove_file(file))
    }
}

/// The name of a restore point, if it can be a file name.
fn safe_name(reference: &str) -> Option<&str> {
    let name = reference.strip_prefix(PREFIX)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_safe = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_plain)
        && !name.contains("..");
    is_safe.then_some(name)
}

/// The beginning of the names of the packs of a state after a task.
pub(crate) fn end_name(reference: &str) -> String {
    format!("{}{END}", point_name(reference))
}

/// The name of a restore point, with which the names of its packs begin.
pub(crate) fn point_name(reference: &str) -> &str {
    reference.strip_prefix(PREFIX).unwrap_or(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creating_twice_fails_and_deleting_leaves_other_points() {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::of(temp.path());
        store.prepare("sha1").unwrap();
        store.prepare("sha1").unwrap();
        assert_eq!(fs::metadata(&store.path).unwrap().mode() & 0o777, 0o700);
        let (first, second) = ("refs/mcp-delegator/T-local-1", "refs/mcp-delegator/T-local-1.undo-1");
        let id = "a".repeat(40);
        for reference in [first, second] {
            let name = format!("{}-{id}.pack", point_name(reference));
            fs::write(store.objects().join("pack").join(name), "12345").unwrap();
            store.create(reference, &id).unwrap();
        }
        assert!(store.create(first, &id).is_err());
        assert_eq!((store.read(first), store.size(first)), (Some(id.clone()), 5));
        assert_eq!(store.references(), [first, second]);
        store.delete(first).unwrap();
        assert_eq!((store.read(first), store.size(first)), (None, 0));
        assert_eq!((store.read(second), store.size(second)), (Some(id), 5));
        for invalid in ["refs/mcp-delegator/../x", "refs/heads/main", "refs/mcp-delegator/a/b", "x"] {
            assert!(store.create(invalid, "x").is_err() && store.read(invalid).is_none());
        }
    }

    #[test]
    fn a_symlink_in_place_of_the_store_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/nowhere", temp.path().join(DIR_NAME)).unwrap();
        assert_ne!(Store::of(temp.path()).path, temp.path().join(DIR_NAME));
    }
}
