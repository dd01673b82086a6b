//! Parses git's index file (versions 2, 3 and 4): all entries with stages and flags, and the trees named by
//! its cache.
//!
//! No git command prints all of this. The format is described in `git help format-index`. Damaged bytes are
//! an error, never a partial index.

use std::collections::BTreeSet;

use crate::error::{GitError, Result};
use crate::files::if_exists;
use crate::records::{FileVersion, RepoPath, TreeFiles, hex, parse_hex};
use crate::scratch::Scratch;

/// One entry, without the cached metadata of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) path: RepoPath,
    pub(crate) mode: u32,
    id: Vec<u8>,
    pub(crate) stage: u8,
    pub(crate) assume_unchanged: bool,
    pub(crate) skip_worktree: bool,
    pub(crate) intent_to_add: bool,
}

const GITLINK: u32 = 0o160_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR_FILE: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const FORMAT: u32 = 0o170_000;

impl IndexEntry {
    pub(crate) fn id(&self) -> String {
        hex(&self.id)
    }

    pub(crate) fn version(&self) -> FileVersion {
        (format!("{:o}", self.mode), self.id())
    }

    /// The same entry with another mode and content; `None` if they cannot be parsed.
    pub(crate) fn with_content(&self, mode: &str, id: &str) -> Option<IndexEntry> {
        Some(IndexEntry { mode: u32::from_str_radix(mode, 8).ok()?, id: parse_hex(id)?, ..self.clone() })
    }

    /// Whether the entry has a stage or flag that a tree entry cannot represent.
    pub(crate) fn is_special(&self) -> bool {
        self.stage != 0 || self.assume_unchanged || self.skip_worktree || self.intent_to_add
    }

    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == GITLINK
    }

    pub(crate) fn is_symlink(&self) -> bool {
        self.mode & FORMAT == SYMLINK
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & FORMAT == REGULAR_FILE
    }

    /// Whether it is collapsed to one entry in a sparse index.
    pub(crate) fn is_directory(&self) -> bool {
        self.mode == DIRECTORY
    }
}

/// An index: its bytes, if the file exists, and the parsed entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexFile {
    pub(crate) bytes: Option<Vec<u8>>,
    /// The file's modification time (seconds, nanoseconds), by which git decides which entries to compare
    /// again.
    pub(crate) modified: Option<(u64, u32)>,
    pub(crate) entries: Vec<IndexEntry>,
    /// Trees named by the cache extension, that of the whole index first if `is_cache_complete`.
    trees: Vec<Vec<u8>>,
    is_cache_complete: bool,
    is_split: bool,
}

impl IndexFile {
    /// Reads the index of the repository; a split index is joined to one file.
    pub(crate) fn read(scratch: &Scratch) -> Result<IndexFile> {
        let path = scratch.repository.index();
        let bytes = if_exists(std::fs::read(&path)).map_err(GitError::io("read", &path))?;
        let Some(bytes) = bytes else { return Ok(IndexFile::default()) };
        let modified = std::fs::metadata(&path).and_then(|found| found.modified()).ok();
        let modified = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = modified.map(|time| (time.as_secs(), time.subsec_nanos()));
        let index = IndexFile { modified, ..IndexFile::parse(bytes, scratch.id_bytes())? };
        if !index.is_split {
            return Ok(index);
        }
        let name = "whole";
        scratch.copy_index(name)?;
        scratch.run(name, ["update-index", "--no-split-index"], b"")?;
        Ok(IndexFile { modified, ..IndexFile::read_copy(scratch, name)? })
    }

    pub(crate) fn read_copy(scratch: &Scratch, name: &str) -> Result<IndexFile> {
        let path = scratch.path(name);
        let bytes = std::fs::read(&path).map_err(GitError::io("read", &path))?;
        IndexFile::parse(bytes, scratch.id_bytes())
    }

    pub(crate) fn parse(bytes: Vec<u8>, id_bytes: usize) -> Result<IndexFile> {
        let mut reader = Reader { bytes: &bytes, at: 0, id_bytes };
        let parsed = reader.index().ok_or(GitError::unexpected("index"))?;
        Ok(IndexFile { bytes: Some(bytes), ..parsed })
    }

    /// An index with exactly the files of a tree.
    pub(crate) fn of_tree(files: &TreeFiles) -> Result<IndexFile> {
        let entry = |(path, (mode, id)): (&RepoPath, &FileVersion)| {
            IndexEntry { path: path.clone(), ..IndexEntry::default() }.with_content(mode, id)
        };
        let entries = files.iter().map(entry).collect::<Option<_>>();
        let entries = entries.ok_or(GitError::unexpected("ls-tree"))?;
        Ok(IndexFile { entries, ..IndexFile::default() })
    }

    /// Whether some entries are in another file (split index) or collapsed to directories (sparse index).
    pub(crate) fn is_abridged(&self) -> bool {
        self.is_split || self.entries.iter().any(IndexEntry::is_directory)
    }

    /// The tree of the whole index, if git has written it before and no entry changed since.
    pub(crate) fn cached_tree(&self) -> Option<String> {
        self.trees.first().filter(|_| self.is_cache_complete).map(|id| hex(id))
    }

    /// Whether a tree cannot represent all entries.
    pub(crate) fn is_special(&self) -> bool {
        self.entries.iter().any(IndexEntry::is_special)
    }

    /// Objects that no tree can hold for this index: those of conflicts and intent-to-add entries.
    pub(crate) fn own_objects(&self) -> impl Iterator<Item = String> {
        let index_only = self.entries.iter().filter(|entry| entry.stage != 0 || entry.intent_to_add);
        index_only.filter(|entry| !entry.is_submodule()).map(IndexEntry::id)
    }

    /// Every object the index needs, except submodule commits, which are in another repository.
    pub(crate) fn objects(&self) -> BTreeSet<String> {
        let entries = self.entries.iter().filter(|entry| !entry.is_submodule());
        entries.map(IndexEntry::id).chain(self.trees.iter().map(|id| hex(id))).collect()
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    id_bytes: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn id(&mut self) -> Option<Vec<u8>> {
        self.take(self.id_bytes).map(<[u8]>::to_vec)
    }

    fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == end)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    fn index(&mut self) -> Option<IndexFile> {
        let is_index = self.take(4)? == b"DIRC";
        let version = self.number()?;
        if !is_index || !(2..=4).contains(&version) {
            return None;
        }
        let mut file = IndexFile::default();
        for _ in 0..self.number()? {
            let before = file.entries.last().map_or(&[][..], |entry| &entry.path);
            let entry = self.entry(version, before)?;
            file.entries.push(entry);
        }
        // The checksum follows the extensions.
        while self.at + self.id_bytes < self.bytes.len() {
            let name = self.take(4)?;
            let length = usize::try_from(self.number()?).ok()?;
            let bytes = self.take(length)?;
            match name {
                b"TREE" => {
                    (file.trees, file.is_cache_complete) = Reader { bytes, at: 0, ..*self }.trees()?;
                }
                b"link" => file.is_split = true,
                _ => {}
            }
        }
        Some(file)
    }

    fn entry(&mut self, version: u32, before: &[u8]) -> Option<IndexEntry> {
        let began = self.at;
        // Metadata of the file: two times, device and inode; after the mode, owner and size.
        self.take(24)?;
        let mode = self.number()?;
        self.take(12)?;
        let id = self.id()?;
        let flags = self.short()?;
        let extended = if flags & 0x4000 != 0 { self.short()? } else { 0 };
        let path = if version == 4 {
            let dropped = self.offset()?;
            let rest = self.until(0)?;
            [before.get(..before.len().checked_sub(dropped)?)?, rest].concat()
        } else {
            let path = self.until(0)?.to_vec();
            // Padded with NUL to a multiple of eight.
            let length = self.at - began;
            self.take(length.next_multiple_of(8) - length)?;
            path
        };
        Some(IndexEntry {
            path,
            mode,
            id,
            stage: u8::try_from((flags >> 12) & 3).ok()?,
            assume_unchanged: flags & 0x8000 != 0,
            skip_worktree: extended & 0x4000 != 0,
            intent_to_add: extended & 0x2000 != 0,
        })
    }

    /// The variable-length number of pack file offsets.
    fn offset(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
        }
        Some(value)
    }

    /// `path NUL entries SP subtrees LF [id]`; a negative count marks an invalid entry. Returns the ids, and
    /// whether all entries are valid.
    fn trees(&mut self) -> Option<(Vec<Vec<u8>>, bool)> {
        let (mut found, mut is_complete) = (Vec::new(), true);
        while self.at < self.bytes.len() {
            self.until(0)?;
            let is_known = !self.until(b' ')?.starts_with(b"-");
            self.until(b'\n')?;
            is_complete &= is_known;
            if is_known {
                found.push(self.id()?);
            }
        }
        Some((found, is_complete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_bytes_are_an_error() {
        for bytes in [b"".as_slice(), b"DIRC", b"DIRC\0\0\0\x02\0\0\0\x01", b"DIRC\0\0\0\x09\0\0\0\0"] {
            assert!(IndexFile::parse(bytes.to_vec(), 20).is_err(), "{bytes:?}");
        }
        let empty = [b"DIRC\0\0\0\x02\0\0\0\0".as_slice(), &[7; 20]].concat();
        assert_eq!(IndexFile::parse(empty, 20).unwrap().entries, []);
    }
}
