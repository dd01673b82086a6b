//! Putting files into the work tree's index, some at a time, and only as many as there is time and room for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::time::Instant;

use rustix::fs::{Access, access};

use crate::capture::{LeftOut, LeftOutReason, Limits, WORK_INDEX, remove_from_index};
use crate::error::GitError;
use crate::listing::{RepoPath, display_path, join_records, on_disk};
use crate::scratch::Scratch;
use crate::stamp::Stamp;

const FILES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: u64 = 32 << 20;
/// Bounds for files that git ignores: small files of settings are worth a copy, data and media are not.
const IGNORED_FILE_BYTES: u64 = 1 << 20;
const IGNORED_TOTAL_BYTES: u64 = 20 << 20;

/// What was put in, and what was not.
#[derive(Debug, Default)]
pub(crate) struct GatherResult {
    pub(crate) count: usize,
    pub(crate) left_out: Vec<LeftOut>,
    /// The same files, as they could be seen from outside.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
}

/// Adds files to the work tree's index.
pub(crate) struct Gatherer<'a> {
    scratch: &'a Scratch,
    limits: Limits,
    needed: &'a BTreeSet<RepoPath>,
    started_at: Instant,
    total: u64,
    ignored_total: u64,
    pending: Vec<RepoPath>,
    pending_bytes: u64,
    /// Of those, files the index holds in another form and believes to be unchanged.
    converted: BTreeSet<RepoPath>,
    result: GatherResult,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(scratch: &'a Scratch, limits: Limits, needed: &'a BTreeSet<RepoPath>) -> Gatherer<'a> {
        Gatherer {
            scratch,
            limits,
            needed,
            started_at: Instant::now(),
            total: 0,
            ignored_total: 0,
            pending: Vec::new(),
            pending_bytes: 0,
            converted: BTreeSet::new(),
            result: GatherResult::default(),
        }
    }

    fn leave_out(&mut self, path: &[u8], reason: LeftOutReason, found: Option<&Metadata>) {
        let bytes = found.map_or(0, Metadata::len);
        self.result.left_out.push(LeftOut { path: display_path(path), reason, bytes });
        self.result.unread.insert(path.to_vec(), found.map(Stamp::of).unwrap_or_default());
    }

    /// Whether a directory above a path is a symbolic link: then the path leads elsewhere and names no file of the tree.
    fn is_behind_symlink(&self, path: &[u8]) -> bool {
        let top = &self.scratch.repository.top_level;
        let mut above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        above.any(|above| fs::symlink_metadata(on_disk(top, above)).is_ok_and(|found| found.is_symlink()))
    }

    /// The file, if it can be read.
    fn readable_metadata(&mut self, path: &[u8]) -> Option<Metadata> {
        let file = on_disk(&self.scratch.repository.top_level, path);
        if self.is_behind_symlink(path) {
            return None;
        }
        // A directory in the place of a file: the files in it have paths of their own.
        let found = fs::symlink_metadata(&file).ok().filter(|found| !found.is_dir())?;
        if found.is_symlink() || (found.is_file() && access(&file, Access::READ_OK).is_ok()) {
            return Some(found);
        }
        self.leave_out(path, LeftOutReason::Unreadable, Some(&found));
        None
    }

    /// A change of a file git knows is always taken.
    pub(crate) fn add_tracked(&mut self, path: &RepoPath) -> Result<(), GitError> {
        match self.readable_metadata(path) {
            Some(found) => self.enqueue(path, found.len()),
            None => Ok(()),
        }
    }

    /// A file the index holds in another form.
    pub(crate) fn add_converted(&mut self, path: &RepoPath) -> Result<(), GitError> {
        self.converted.insert(path.clone());
        self.add_if_small(path)
    }

    pub(crate) fn add_if_small(&mut self, path: &RepoPath) -> Result<(), GitError> {
        if path.ends_with(b"/") {
            self.leave_out_repository(path);
            return Ok(());
        }
        let Some(found) = self.readable_metadata(path) else { return Ok(()) };
        let size = found.len();
        let reason = if self.needed.contains(path) {
            None
        } else if size > self.limits.file_bytes {
            Some(LeftOutReason::TooLarge)
        } else if self.total + size > self.limits.total_bytes {
            Some(LeftOutReason::TooMuch)
        } else if self.started_at.elapsed() > self.limits.time {
            Some(LeftOutReason::TooLate)
        } else {
            None
        };
        match reason {
            Some(reason) => {
                self.leave_out(path, reason, Some(&found));
                Ok(())
            }
            None => {
                self.total += size;
                self.enqueue(path, size)
            }
        }
    }

    /// A repository inside the work tree is examined by itself, if at all.
    pub(crate) fn leave_out_repository(&mut self, path: &RepoPath) {
        self.leave_out(path, LeftOutReason::Repository, None);
    }

    /// A file in a directory that may not be entered.
    pub(crate) fn leave_out_unreadable(&mut self, path: &RepoPath) {
        self.leave_out(path, LeftOutReason::Unreadable, None);
    }

    /// A file that git ignores.
    pub(crate) fn add_ignored(&mut self, path: &RepoPath) -> Result<(), GitError> {
        let Some(found) = self.readable_metadata(path) else { return Ok(()) };
        let size = found.len();
        let reason = if size > IGNORED_FILE_BYTES {
            LeftOutReason::TooLarge
        } else if self.ignored_total + size > IGNORED_TOTAL_BYTES {
            LeftOutReason::TooMuch
        } else if self.started_at.elapsed() > self.limits.time {
            LeftOutReason::TooLate
        } else {
            self.ignored_total += size;
            return self.enqueue(path, size);
        };
        self.leave_out(path, reason, Some(&found));
        Ok(())
    }

    /// Records how a file looks from outside, without reading it.
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
        // What is left out stays in the form the index has.
        let converted = self.pending.iter().filter(|path| self.converted.contains(*path));
        remove_from_index(self.scratch, converted)?;
        self.converted.clear();
        let paths = join_records(self.pending.iter().map(Vec::as_slice));
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
