//! Putting files into the work tree's index, some at a time, and only as many as there is time and room for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::time::Instant;

use rustix::fs::{Access, access};

use crate::capture::{LeftOut, LeftOutReason, Limits, WORK, remove_from_index};
use crate::error::GitError;
use crate::listing::{RepoPath, joined, on_disk, shown};
use crate::scratch::Scratch;
use crate::stamp::Stamp;

const FILES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: u64 = 32 << 20;
/// Bounds for files that git ignores: small files of settings are worth a copy, data and media are not.
const IGNORED_FILE_BYTES: u64 = 1 << 20;
const IGNORED_TOTAL_BYTES: u64 = 20 << 20;

/// What was put in, and what was not.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
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
    began: Instant,
    total: u64,
    ignored_total: u64,
    waiting: Vec<RepoPath>,
    waiting_bytes: u64,
    /// Of those, files the index holds in another form and believes to be unchanged.
    disguised: BTreeSet<RepoPath>,
    gathered: Gathered,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(scratch: &'a Scratch, limits: Limits, needed: &'a BTreeSet<RepoPath>) -> Gatherer<'a> {
        Gatherer {
            scratch,
            limits,
            needed,
            began: Instant::now(),
            total: 0,
            ignored_total: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
            disguised: BTreeSet::new(),
            gathered: Gathered::default(),
        }
    }

    fn leave_out(&mut self, path: &[u8], reason: LeftOutReason, found: Option<&Metadata>) {
        let bytes = found.map_or(0, Metadata::len);
        self.gathered.left_out.push(LeftOut { path: shown(path), reason, bytes });
        self.gathered.unread.insert(path.to_vec(), found.map(Stamp::of).unwrap_or_default());
    }

    /// Whether a directory above a path is a symbolic link: then the path leads elsewhere and names no file of the tree.
    fn is_behind_a_link(&self, path: &[u8]) -> bool {
        let top = &self.scratch.repository.top_level;
        let mut above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        above.any(|above| fs::symlink_metadata(on_disk(top, above)).is_ok_and(|found| found.is_symlink()))
    }

    /// The file, if it can be read.
    fn readable(&mut self, path: &[u8]) -> Option<Metadata> {
        let place = on_disk(&self.scratch.repository.top_level, path);
        if self.is_behind_a_link(path) {
            return None;
        }
        // A directory in the place of a file: the files in it have paths of their own.
        let found = fs::symlink_metadata(&place).ok().filter(|found| !found.is_dir())?;
        if found.is_symlink() || (found.is_file() && access(&place, Access::READ_OK).is_ok()) {
            return Some(found);
        }
        self.leave_out(path, LeftOutReason::Unreadable, Some(&found));
        None
    }

    /// A change of a file git knows is always taken.
    pub(crate) fn take_known(&mut self, path: &RepoPath) -> Result<(), GitError> {
        match self.readable(path) {
            Some(found) => self.take(path, found.len()),
            None => Ok(()),
        }
    }

    /// A file the index holds in another form.
    pub(crate) fn take_disguised(&mut self, path: &RepoPath) -> Result<(), GitError> {
        self.disguised.insert(path.clone());
        self.take_if_small(path)
    }

    pub(crate) fn take_if_small(&mut self, path: &RepoPath) -> Result<(), GitError> {
        if path.ends_with(b"/") {
            self.leave_out_repository(path);
            return Ok(());
        }
        let Some(found) = self.readable(path) else { return Ok(()) };
        let size = found.len();
        let refused = if self.needed.contains(path) {
            None
        } else if size > self.limits.file_bytes {
            Some(LeftOutReason::TooLarge)
        } else if self.total + size > self.limits.total_bytes {
            Some(LeftOutReason::TooMuch)
        } else if self.began.elapsed() > self.limits.time {
            Some(LeftOutReason::TooLate)
        } else {
            None
        };
        match refused {
            Some(reason) => {
                self.leave_out(path, reason, Some(&found));
                Ok(())
            }
            None => {
                self.total += size;
                self.take(path, size)
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
    pub(crate) fn take_ignored(&mut self, path: &RepoPath) -> Result<(), GitError> {
        let Some(found) = self.readable(path) else { return Ok(()) };
        let size = found.len();
        let reason = if size > IGNORED_FILE_BYTES {
            LeftOutReason::TooLarge
        } else if self.ignored_total + size > IGNORED_TOTAL_BYTES {
            LeftOutReason::TooMuch
        } else if self.began.elapsed() > self.limits.time {
            LeftOutReason::TooLate
        } else {
            self.ignored_total += size;
            return self.take(path, size);
        };
        self.leave_out(path, reason, Some(&found));
        Ok(())
    }

    /// Records how a file looks from outside, without reading it.
    pub(crate) fn stamp(&mut self, path: &RepoPath) {
        if let Some(stamp) = Stamp::at(&on_disk(&self.scratch.repository.top_level, path)) {
            self.gathered.unread.insert(path.clone(), stamp);
        }
    }

    fn take(&mut self, path: &RepoPath, size: u64) -> Result<(), GitError> {
        self.waiting.push(path.clone());
        self.waiting_bytes += size;
        if self.waiting.len() >= FILES_AT_ONCE || self.waiting_bytes >= BYTES_AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), GitError> {
        // What is left out stays in the form the index has.
        let disguised = self.waiting.iter().filter(|path| self.disguised.contains(*path));
        remove_from_index(self.scratch, disguised)?;
        self.disguised.clear();
        let paths = joined(self.waiting.iter().map(Vec::as_slice));
        self.gathered.count += self.waiting.len();
        self.waiting.clear();
        self.waiting_bytes = 0;
        let add = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        self.scratch.run(WORK, add, &paths).map(drop)
    }

    pub(crate) fn done(mut self) -> Result<Gathered, GitError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        Ok(self.gathered)
    }
}
