//! Adds files to our copy of the index, in batches and within limits of size and time.
//!
//! A file that exceeds a limit is reported as left out, with its stamp, so that a comparison can still detect
//! a change. Never reads through a symbolic link.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::time::Instant;

use rustix::fs::{Access, access};

use super::left_out::{LeftOut, LeftOutReason, Limits};
use super::work_index::{WORK_INDEX, remove_from_index};
use crate::error::GitError;
use crate::records::{RepoPath, ancestors, display_path, join_records, on_disk};
use crate::scratch::Scratch;
use crate::stamp::Stamp;

const FILES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: u64 = 32 << 20;
/// Limits for ignored files: small settings files are worth a copy, data and media are not.
const IGNORED_FILE_BYTES: u64 = 1 << 20;
const IGNORED_TOTAL_BYTES: u64 = 20 << 20;

/// How many files were added, and which were left out.
#[derive(Debug, Default)]
pub(crate) struct GatherResult {
    pub(crate) count: usize,
    pub(crate) left_out: Vec<LeftOut>,
    /// Stamps of files whose content was not read.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
}

/// How many bytes a file and all files together may have, and how many were added.
struct Quota {
    file_bytes: u64,
    total_bytes: u64,
    used: u64,
}

/// Adds files to the work tree's index.
pub(crate) struct Gatherer<'a> {
    scratch: &'a Scratch,
    needed: &'a BTreeSet<RepoPath>,
    deadline: Instant,
    ignored: Quota,
    others: Quota,
    pending: Vec<RepoPath>,
    pending_bytes: u64,
    /// Pending files whose entry in the index has converted content, so git considers them unchanged.
    converted: BTreeSet<RepoPath>,
    result: GatherResult,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(scratch: &'a Scratch, limits: Limits, needed: &'a BTreeSet<RepoPath>) -> Gatherer<'a> {
        Gatherer {
            scratch,
            needed,
            deadline: Instant::now() + limits.time,
            ignored: Quota { file_bytes: IGNORED_FILE_BYTES, total_bytes: IGNORED_TOTAL_BYTES, used: 0 },
            others: Quota { file_bytes: limits.file_bytes, total_bytes: limits.total_bytes, used: 0 },
            pending: Vec::new(),
            pending_bytes: 0,
            converted: BTreeSet::new(),
            result: GatherResult::default(),
        }
    }

    /// Without metadata it is a repository, which is examined by itself, if at all, or in a directory without
    /// search permission.
    pub(crate) fn leave_out(&mut self, path: &[u8], reason: LeftOutReason, found: Option<&Metadata>) {
        let bytes = found.map_or(0, Metadata::len);
        self.result.left_out.push(LeftOut { path: display_path(path), reason, bytes });
        self.result.unread.insert(path.to_vec(), found.map(Stamp::of).unwrap_or_default());
    }

    /// Whether a parent directory is a symbolic link: then the path leads elsewhere and is no file of the
    /// tree.
    fn is_behind_symlink(&self, path: &[u8]) -> bool {
        let top = &self.scratch.repository.top_level;
        ancestors(path)
            .any(|above| fs::symlink_metadata(on_disk(top, above)).is_ok_and(|found| found.is_symlink()))
    }

    /// The metadata of the file if it can be read. An unreadable file is left out.
    fn readable_metadata(&mut self, path: &[u8]) -> Option<Metadata> {
        let file = on_disk(&self.scratch.repository.top_level, path);
        if self.is_behind_symlink(path) {
            return None;
        }
        // If a directory took the place of a file, its files have paths of their own.
        let found = fs::symlink_metadata(&file).ok().filter(|found| !found.is_dir())?;
        if found.is_symlink() || (found.is_file() && access(&file, Access::READ_OK).is_ok()) {
            return Some(found);
        }
        self.leave_out(path, LeftOutReason::Unreadable, Some(&found));
        None
    }

    /// Adds a changed tracked file whatever its size.
    pub(crate) fn add_tracked(&mut self, path: &RepoPath) -> Result<(), GitError> {
        match self.readable_metadata(path) {
            Some(found) => self.enqueue(path, found.len()),
            None => Ok(()),
        }
    }

    /// Adds a file whose entry in the index has converted content.
    pub(crate) fn add_converted(&mut self, path: &RepoPath) -> Result<(), GitError> {
        self.converted.insert(path.clone());
        self.add_if_small(path)
    }

    pub(crate) fn add_if_small(&mut self, path: &RepoPath) -> Result<(), GitError> {
        if path.ends_with(b"/") {
            self.leave_out(path, LeftOutReason::Repository, None);
            return Ok(());
        }
        self.add_within_quota(path, false)
    }

    pub(crate) fn add_ignored(&mut self, path: &RepoPath) -> Result<(), GitError> {
        self.add_within_quota(path, true)
    }

    fn add_within_quota(&mut self, path: &RepoPath, is_ignored: bool) -> Result<(), GitError> {
        let Some(found) = self.readable_metadata(path) else { return Ok(()) };
        let quota = if is_ignored { &mut self.ignored } else { &mut self.others };
        let size = found.len();
        let reason = if size > quota.file_bytes {
            Some(LeftOutReason::TooLarge)
        } else if quota.used + size > quota.total_bytes {
            Some(LeftOutReason::TooMuch)
        } else if Instant::now() > self.deadline {
            Some(LeftOutReason::TooLate)
        } else {
            None
        };
        if let Some(reason) = reason.filter(|_| !self.needed.contains(path)) {
            self.leave_out(path, reason, Some(&found));
            return Ok(());
        }
        quota.used += size;
        self.enqueue(path, size)
    }

    /// Records the stamp of a file without reading the file.
    pub(crate) fn record_stamp(&mut self, path: &RepoPath) {
        if let Some(stamp) = Stamp::at(&on_disk(&self.scratch.repository.top_level, path)) {
            self.result.unread.insert(path.clone(), stamp);
        }
    }

    fn enqueue(&mut self, path: &RepoPath, size: u64) -> Result<(), GitError> {
        self.pending.push(path.clone());
        self.pending_bytes += size;
        if self.pending.len() >= FILES_AT_ONCE || self.pending_bytes >= BYTES_AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), GitError> {
        // Files that are left out retain their converted entry.
        let converted = self.pending.iter().filter(|path| self.converted.contains(*path));
        remove_from_index(self.scratch, converted)?;
        self.converted.clear();
        let paths = join_records(&self.pending);
        self.result.count += self.pending.len();
        self.pending.clear();
        self.pending_bytes = 0;
        let add = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        self.scratch.run(WORK_INDEX, add, &paths).map(drop)
    }

    pub(crate) fn finish(mut self) -> Result<GatherResult, GitError> {
        if !self.pending.is_empty() {
            self.flush()?;
        }
        Ok(self.result)
    }
}
