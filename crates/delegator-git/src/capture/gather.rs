//! Adds files to our copy of the index, in batches and within limits of size and time.
//!
//! A file that exceeds a limit is reported as left out, with its stamp, so that a comparison can still detect
//! a change. Never reads through a symbolic link.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::files::Stamp;
use crate::records::{RepoPath, ancestors, display_path};
use crate::scratch::{Scratch, WORK_INDEX};

const FILES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: u64 = 32 << 20;
/// Large files are stored once for all restore points. A restore point without such a file is written faster.
pub(crate) const LARGE_FILE_BYTES: u64 = 64 << 10;
/// Limits for ignored files: small settings files are worth a copy, data and media are not.
const IGNORED_FILE_BYTES: u64 = 1 << 20;
const IGNORED_TOTAL_BYTES: u64 = 20 << 20;

/// Limits for copying files that git does not track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub file_bytes: u64,
    pub total_bytes: u64,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 10 << 20, total_bytes: 200 << 20, time: Duration::from_secs(5) }
    }
}

/// A file that is not in a restore point. A restore never touches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: LeftOutReason,
    pub bytes: u64,
}

impl LeftOut {
    pub(crate) fn new(path: &[u8], reason: LeftOutReason, bytes: u64) -> LeftOut {
        LeftOut { path: display_path(path), reason, bytes }
    }

    pub(crate) fn paths(left_out: &[LeftOut]) -> BTreeSet<&str> {
        left_out.iter().map(|entry| entry.path.as_str()).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    TooLarge,
    /// The total size limit was reached by earlier files.
    TooMuch,
    TooLate,
    Unreadable,
    /// A repository, not a file.
    Repository,
    /// git ignores it, and it is beyond the limits of what is examined.
    Ignored,
    /// Its content before or after the change is not stored.
    NoContent,
    /// A branch whose commits change no file.
    Commits,
}

/// How many files were added, and which were left out.
#[derive(Debug, Default)]
pub(crate) struct GatherResult {
    pub(crate) count: usize,
    pub(crate) left_out: Vec<LeftOut>,
    /// Stamps of files whose content was not read.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
    /// Whether one of the added files is large.
    pub(crate) has_large_files: bool,
}

/// How many bytes a file and all files together may have, and how many were added.
struct Quota {
    file_bytes: u64,
    total_bytes: u64,
    used: u64,
}

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
        self.result.left_out.push(LeftOut::new(path, reason, found.map_or(0, Metadata::len)));
        self.result.unread.insert(path.to_vec(), found.map(Stamp::of).unwrap_or_default());
    }

    /// The metadata of the file if it can be read. An unreadable file is left out.
    fn readable_metadata(&mut self, path: &[u8]) -> Option<Metadata> {
        // Behind a link the path leads elsewhere and is no file of the tree.
        if ancestors(path).any(|above| self.scratch.on_disk(above).is_symlink()) {
            return None;
        }
        let file = self.scratch.on_disk(path);
        // If a directory took the place of a file, its files have paths of their own.
        let found = fs::symlink_metadata(&file).ok().filter(|found| !found.is_dir())?;
        if found.is_symlink() || (found.is_file() && access(&file, Access::READ_OK).is_ok()) {
            return Some(found);
        }
        self.leave_out(path, LeftOutReason::Unreadable, Some(&found));
        None
    }

    /// Adds a changed tracked file whatever its size.
    pub(crate) fn add_tracked(&mut self, path: &RepoPath) -> Result<()> {
        match self.readable_metadata(path) {
            Some(found) => self.enqueue(path, found.len()),
            None => Ok(()),
        }
    }

    /// Adds a file whose entry in the index has converted content.
    pub(crate) fn add_converted(&mut self, path: &RepoPath) -> Result<()> {
        self.converted.insert(path.clone());
        self.add_if_small(path)
    }

    pub(crate) fn add_if_small(&mut self, path: &RepoPath) -> Result<()> {
        if path.ends_with(b"/") {
            self.leave_out(path, LeftOutReason::Repository, None);
            return Ok(());
        }
        self.add_within_quota(path, false)
    }

    pub(crate) fn add_within_quota(&mut self, path: &RepoPath, is_ignored: bool) -> Result<()> {
        let Some(found) = self.readable_metadata(path) else { return Ok(()) };
        let quota = if is_ignored { &mut self.ignored } else { &mut self.others };
        let size = found.len();
        let reason = if size > quota.file_bytes {
            Some(LeftOutReason::TooLarge)
        } else if quota.used + size > quota.total_bytes {
            Some(LeftOutReason::TooMuch)
        } else {
            (Instant::now() > self.deadline).then_some(LeftOutReason::TooLate)
        };
        if let Some(reason) = reason.filter(|_| !self.needed.contains(path)) {
            self.leave_out(path, reason, Some(&found));
            return Ok(());
        }
        quota.used += size;
        self.enqueue(path, size)
    }

    pub(crate) fn record_stamp(&mut self, path: &RepoPath) {
        let stamp = self.scratch.stamp(path);
        self.result.unread.extend(stamp.map(|stamp| (path.clone(), stamp)));
    }

    fn enqueue(&mut self, path: &RepoPath, size: u64) -> Result<()> {
        self.pending.push(path.clone());
        self.pending_bytes += size;
        self.result.has_large_files |= size >= LARGE_FILE_BYTES;
        if self.pending.len() >= FILES_AT_ONCE || self.pending_bytes >= BYTES_AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        // Files that are left out retain their converted entry.
        let converted = self.pending.iter().filter(|path| self.converted.contains(*path));
        self.scratch.update_index(WORK_INDEX, &["--force-remove"], converted)?;
        self.converted.clear();
        self.pending_bytes = 0;
        self.result.count += self.pending.len();
        let pending = std::mem::take(&mut self.pending);
        self.scratch.update_index(WORK_INDEX, &["--add", "--remove", "--replace"], &pending)
    }

    pub(crate) fn finish(mut self) -> Result<GatherResult> {
        self.flush()?;
        Ok(self.result)
    }
}
