//! Index and work tree as trees, touching neither.
//!
//! The work tree's tree begins as a copy of the index; what differs from it on disk, and what git does not know yet and
//! does not ignore, is added as it lies there. A file git converts on its way in (line ends, Git LFS) is found by its
//! length, which then differs from that of the object, and is added as it lies there, too.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::listing::{GITLINK, RepoPath, changes, joined, line, on_disk, records, shown};
use crate::scratch::Scratch;

/// How much of what git does not know is copied.
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

/// A file that is not in a restore point, and will never be touched because of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: LeftOutReason,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    TooLarge,
    /// The files before it were enough.
    TooMuch,
    TooLate,
    Unreadable,
    /// Another repository, not a file.
    Repository,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Captured {
    /// The work tree.
    pub(crate) tree: String,
    /// The index; `None` while it has conflicts, which a tree cannot say.
    pub(crate) index_tree: Option<String>,
    pub(crate) modified: usize,
    pub(crate) untracked: usize,
    pub(crate) left_out: Vec<LeftOut>,
    /// Known to git and deliberately not on disk.
    pub(crate) sparse: BTreeSet<RepoPath>,
}

/// The index the work tree's tree is made in.
pub(crate) const WORK: &str = "index";
/// What differs between an index and the work tree; a submodule is not asked.
pub(crate) const RAW: [&str; 6] =
    ["diff-files", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];
const FILES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: u64 = 32 << 20;

/// `needed` are added whatever their size, ignored or not, if they are on disk.
pub(crate) fn capture(
    scratch: &Scratch,
    limits: Limits,
    needed: &BTreeSet<RepoPath>,
) -> Result<Captured, GitError> {
    scratch.copy_index(WORK)?;
    let index_tree = index_tree(scratch, WORK)?;
    let changed = changes(&scratch.run(WORK, RAW, b"")?, "diff-files")?;
    let known = Known::of(scratch)?;
    let untracked = scratch.run(WORK, ["ls-files", "-z", "--others", "--exclude-standard"], b"")?;
    let untracked: BTreeSet<RepoPath> = records(&untracked).map(<[u8]>::to_vec).collect();
    let mut gatherer = Gatherer::new(scratch, limits, needed);
    let mut gone = BTreeSet::new();
    let mut modified = BTreeSet::new();
    for change in changed.into_iter().filter(|change| change.old_mode != GITLINK) {
        modified.insert(change.path.clone());
        match change.status {
            b'D' => drop(gone.insert(change.path)),
            _ => gatherer.take_known(change.path)?,
        }
    }
    if !gone.is_empty() {
        let gone = joined(gone.iter().map(Vec::as_slice));
        scratch.run(WORK, ["update-index", "-z", "--force-remove", "--stdin"], &gone)?;
    }
    let converted =
        if scratch.converts || known.has_attributes { known.converted(scratch)? } else { Vec::new() };
    let ignored = needed.iter().filter(|path| !known.paths.contains(*path) && !untracked.contains(*path));
    for path in converted.iter().filter(|path| !modified.contains(*path)) {
        gatherer.disguised.push(path.clone());
        gatherer.take_if_small(path.clone())?;
    }
    for path in untracked.iter().chain(ignored) {
        gatherer.take_if_small(path.clone())?;
    }
    let left_out = gatherer.done()?;
    let tree = line(&scratch.run(WORK, ["write-tree", "--missing-ok"], b"")?);
    let (modified, untracked) = (modified.len(), untracked.len());
    Ok(Captured { tree, index_tree, modified, untracked, left_out, sparse: known.sparse })
}

/// An index as a tree; `None` while it has conflicts.
pub(crate) fn index_tree(scratch: &Scratch, index: &str) -> Result<Option<String>, GitError> {
    match scratch.run(index, ["write-tree", "--missing-ok"], b"") {
        Ok(tree) => Ok(Some(line(&tree))),
        Err(error) => match scratch.run(index, ["ls-files", "-z", "--unmerged"], b"")?.is_empty() {
            true => Err(error),
            false => Ok(None),
        },
    }
}

/// What the index knows.
struct Known {
    paths: BTreeSet<RepoPath>,
    sparse: BTreeSet<RepoPath>,
    /// Object and path of every plain file.
    files: Vec<(String, RepoPath)>,
    has_attributes: bool,
}

impl Known {
    fn of(scratch: &Scratch) -> Result<Known, GitError> {
        let unreadable = || GitError::Unreadable { command: "ls-files" };
        let listed = scratch.run(WORK, ["ls-files", "-z", "-t", "--stage"], b"")?;
        let mut known = Known {
            paths: BTreeSet::new(),
            sparse: BTreeSet::new(),
            files: Vec::new(),
            has_attributes: false,
        };
        // `H 100644 <id> 0<TAB>path`
        for record in records(&listed) {
            let at = record.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
            let facts = std::str::from_utf8(&record[..at]).map_err(|_| unreadable())?;
            let path = record[at + 1..].to_vec();
            let words: Vec<&str> = facts.split(' ').collect();
            let [tag, mode, id, stage] = words.as_slice() else { return Err(unreadable()) };
            if *tag == "S" {
                known.sparse.insert(path.clone());
            } else if mode.starts_with("100") && *stage == "0" {
                known.files.push(((*id).to_owned(), path.clone()));
            }
            known.has_attributes |= path == b".gitattributes" || path.ends_with(b"/.gitattributes");
            known.paths.insert(path);
        }
        Ok(known)
    }

    /// Files that are longer or shorter than their objects.
    fn converted(&self, scratch: &Scratch) -> Result<Vec<RepoPath>, GitError> {
        let mut ids = Vec::new();
        for (id, _) in &self.files {
            ids.extend_from_slice(id.as_bytes());
            ids.push(b'\n');
        }
        let told = scratch.run(WORK, ["cat-file", "--batch-check=%(objectsize)"], &ids)?;
        let sizes = String::from_utf8_lossy(&told);
        let top = &scratch.repository.top_level;
        let differs = |size: &str, path: &RepoPath| {
            fs::symlink_metadata(on_disk(top, path))
                .is_ok_and(|found| found.is_file() && size.parse() != Ok(found.len()))
        };
        let files = sizes.lines().zip(&self.files);
        Ok(files.filter(|(size, (_, path))| differs(size, path)).map(|(_, (_, path))| path.clone()).collect())
    }
}

/// Adds files to the work tree's index, some at a time.
struct Gatherer<'a> {
    scratch: &'a Scratch,
    limits: Limits,
    needed: &'a BTreeSet<RepoPath>,
    began: Instant,
    total: u64,
    waiting: Vec<RepoPath>,
    waiting_bytes: u64,
    /// Of those, files the index holds in another form and believes to be unchanged.
    disguised: Vec<RepoPath>,
    left_out: Vec<LeftOut>,
}

impl<'a> Gatherer<'a> {
    fn new(scratch: &'a Scratch, limits: Limits, needed: &'a BTreeSet<RepoPath>) -> Gatherer<'a> {
        Gatherer {
            scratch,
            limits,
            needed,
            began: Instant::now(),
            total: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
            disguised: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn leave_out(&mut self, path: &[u8], reason: LeftOutReason, bytes: u64) {
        self.left_out.push(LeftOut { path: shown(path), reason, bytes });
    }

    /// The file, if it can be read.
    fn readable(&mut self, path: &[u8]) -> Option<Metadata> {
        let place = on_disk(&self.scratch.repository.top_level, path);
        let found = fs::symlink_metadata(&place).ok()?;
        if found.is_symlink() || (found.is_file() && access(&place, Access::READ_OK).is_ok()) {
            return Some(found);
        }
        self.leave_out(path, LeftOutReason::Unreadable, found.len());
        None
    }

    /// A change of a file git knows is always taken.
    fn take_known(&mut self, path: RepoPath) -> Result<(), GitError> {
        match self.readable(&path) {
            Some(found) => self.take(path, found.len()),
            None => Ok(()),
        }
    }

    fn take_if_small(&mut self, path: RepoPath) -> Result<(), GitError> {
        if path.ends_with(b"/") {
            self.leave_out(&path, LeftOutReason::Repository, 0);
            return Ok(());
        }
        let Some(found) = self.readable(&path) else { return Ok(()) };
        let size = found.len();
        let refused = if self.needed.contains(&path) {
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
                self.leave_out(&path, reason, size);
                Ok(())
            }
            None => {
                self.total += size;
                self.take(path, size)
            }
        }
    }

    fn take(&mut self, path: RepoPath, size: u64) -> Result<(), GitError> {
        self.waiting.push(path);
        self.waiting_bytes += size;
        if self.waiting.len() >= FILES_AT_ONCE || self.waiting_bytes >= BYTES_AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), GitError> {
        // What is left out stays in the form the index has.
        let disguised = self.disguised.iter().filter(|path| self.waiting.contains(path));
        let disguised = joined(disguised.map(Vec::as_slice));
        self.disguised.clear();
        if !disguised.is_empty() {
            self.scratch.run(WORK, ["update-index", "-z", "--force-remove", "--stdin"], &disguised)?;
        }
        let paths = joined(self.waiting.iter().map(Vec::as_slice));
        self.waiting.clear();
        self.waiting_bytes = 0;
        let add = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        self.scratch.run(WORK, add, &paths).map(drop)
    }

    fn done(mut self) -> Result<Vec<LeftOut>, GitError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        Ok(self.left_out)
    }
}
