//! The complete state of a work tree: what git captures, and what git does not record, which is directories,
//! including empty ones, and exact permission bits.
//!
//! The walk reads every directory that contains captured files. Other directories (empty, or with ignored
//! files only) are recorded by name. One that contains any file is *closed*: what is below it is not recorded
//! and never removed. When a limit is reached, the survey is partial and a restore removes less.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

use super::gather::Limits;
use super::work_tree::{Capture, Purpose, capture};
use crate::error::{Result, WriteError};
use crate::index::{IndexEntry, IndexFile};
use crate::records::{
    GITLINK, RepoPath, TreeFiles, ancestors, path_records, records, split_record, with_trailing_slash,
};
use crate::scratch::{Scratch, WORK_INDEX};

/// Limit for recorded directories without captured files. Beyond it the survey is partial.
const MAX_OTHER_DIRECTORIES: usize = 20_000;
/// Limit for files whose permissions differ from the usual ones.
const MAX_MODES: usize = 200_000;
const MODE_BITS: u32 = 0o7777;

/// More than for creating a restore point: a restore should be complete.
const SURVEY_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) mode: u32,
    pub(crate) is_closed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    pub(crate) directories: BTreeMap<RepoPath, Directory>,
    /// The permission bits of most files, 0 if unknown; `other_modes` lists the exceptions.
    pub(crate) usual_mode: u32,
    pub(crate) other_modes: BTreeMap<RepoPath, u32>,
    /// A limit was reached; what is not listed is unknown.
    pub(crate) is_partial: bool,
}

/// The directories of the captured tree.
#[derive(Debug, Default)]
struct KnownDirectories {
    with_files: BTreeSet<RepoPath>,
    /// Submodules and repositories inside the tree, which are not entered.
    repositories: BTreeSet<RepoPath>,
}

impl Survey {
    /// `usual_mode` is a guess at the permission bits of most files.
    fn take(top_level: &Path, known: &KnownDirectories, usual_mode: u32, time: Duration) -> Survey {
        let survey = Survey { usual_mode, ..Survey::default() };
        let mut walk = Walk { known, deadline: Instant::now() + time, survey, other_directories: 0 };
        walk.visit(top_level, Vec::new(), true);
        walk.survey
    }

    /// The recorded permission bits of a file; `None` if unknown.
    pub(crate) fn file_mode(&self, path: &[u8]) -> Option<u32> {
        let found = self.other_modes.get(path).copied();
        found.or_else(|| (!self.is_partial && self.usual_mode != 0).then_some(self.usual_mode))
    }

    /// Whether the content of a parent of this directory was not recorded.
    pub(crate) fn is_unrecorded(&self, directory: &[u8]) -> bool {
        let is_closed = |path: &RepoPath| self.directories.get(path).is_some_and(|found| found.is_closed);
        self.is_partial || ancestors(directory).any(|path| is_closed(&path.to_vec()))
    }

    /// `<mode>[*] path NUL`; the asterisk marks a closed directory.
    pub(crate) fn directories_to_bytes(&self) -> Vec<u8> {
        path_records(self.directories.iter().map(|(path, found)| {
            let mark = if found.is_closed { "*" } else { "" };
            (format!("{:o}{mark} ", found.mode), path)
        }))
    }

    /// The usual mode, then `<mode> path NUL`.
    pub(crate) fn modes_to_bytes(&self) -> Vec<u8> {
        let usual = (&RepoPath::new(), &self.usual_mode);
        let modes = std::iter::once(usual).chain(&self.other_modes);
        path_records(modes.map(|(path, mode)| (format!("{mode:o} "), path)))
    }

    pub(crate) fn parse(directories: &[u8], modes: &[u8], is_partial: bool) -> Option<Survey> {
        let mut survey = Survey { is_partial, ..Survey::default() };
        for record in records(directories) {
            let (mode, path) = split_record(record, b' ')?;
            let is_closed = mode.ends_with('*');
            let mode = u32::from_str_radix(mode.trim_end_matches('*'), 8).ok()?;
            survey.directories.insert(path.to_vec(), Directory { mode, is_closed });
        }
        for record in records(modes) {
            let (mode, path) = split_record(record, b' ')?;
            let mode = u32::from_str_radix(mode, 8).ok()?;
            match path {
                b"" => survey.usual_mode = mode,
                path => drop(survey.other_modes.insert(path.to_vec(), mode)),
            }
        }
        Some(survey)
    }
}

struct Walk<'a> {
    known: &'a KnownDirectories,
    deadline: Instant,
    survey: Survey,
    other_directories: usize,
}

impl Walk<'_> {
    /// `path` is relative to the top of the work tree, and empty for the top itself.
    fn visit(&mut self, dir: &Path, path: RepoPath, has_files: bool) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(CWD, dir, flags, Mode::empty());
        let Some((mut entries, fd)) = opened.ok().and_then(|fd| Some((Dir::read_from(&fd).ok()?, fd))) else {
            self.mark_closed(&path);
            return;
        };
        let mut subdirectories = Vec::new();
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || (has_files && name == b".git") {
                continue;
            }
            if name == b".git" {
                self.mark_closed(&path);
                return;
            }
            let (mut kind, mut mode) = (entry.file_type(), None);
            if kind == FileType::Unknown || kind == FileType::Directory || (has_files && kind.is_file()) {
                let Ok(found) = statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
                kind = FileType::from_raw_mode(found.st_mode);
                mode = Some(found.st_mode & MODE_BITS);
            }
            let child_path =
                || if path.is_empty() { name.to_vec() } else { [&path, b"/".as_slice(), name].concat() };
            match (kind, mode) {
                (FileType::Directory, Some(mode)) => subdirectories.push((child_path(), mode)),
                _ if !has_files => {
                    self.mark_closed(&path);
                    return;
                }
                (FileType::RegularFile, Some(mode)) if mode != self.survey.usual_mode => {
                    self.survey.is_partial |= self.survey.other_modes.len() >= MAX_MODES;
                    if !self.survey.is_partial {
                        self.survey.other_modes.insert(child_path(), mode);
                    }
                }
                _ => {}
            }
        }
        drop((entries, fd));
        for (child, mode) in subdirectories {
            self.record_directory(dir, child, mode);
        }
    }

    fn record_directory(&mut self, parent: &Path, path: RepoPath, mode: u32) {
        let has_files = self.known.with_files.contains(&path);
        self.other_directories += usize::from(!has_files);
        if self.other_directories > MAX_OTHER_DIRECTORIES || Instant::now() > self.deadline {
            self.survey.is_partial = true;
            return;
        }
        let is_closed = self.known.repositories.contains(&path);
        self.survey.directories.insert(path.clone(), Directory { mode, is_closed });
        if !is_closed {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            self.visit(&parent.join(OsStr::from_bytes(name)), path, has_files);
        }
    }

    fn mark_closed(&mut self, path: &RepoPath) {
        if let Some(found) = self.survey.directories.get_mut(path) {
            found.is_closed = true;
        }
    }
}

#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) captured: Capture,
    pub(crate) index: IndexFile,
    pub(crate) survey: Survey,
    /// Index entries that are not on disk, because of a sparse checkout or `skip-worktree`; a directory ends
    /// in a slash.
    pub(crate) absent: BTreeSet<RepoPath>,
    /// Files that a restore is about to write. An undo must examine them even if they are ignored.
    pub(crate) about_to_write: Vec<RepoPath>,
}

/// Surveys the directories of the files in our copy of the index.
pub(crate) fn survey_work_index(scratch: &Scratch, time: Duration) -> Result<Survey> {
    let index = IndexFile::read_copy(scratch, WORK_INDEX)?;
    let files = index.entries.iter().map(|entry| (&entry.path, entry.is_submodule()));
    Ok(take_survey(scratch, files, time))
}

/// Surveys the directories of the files of a tree.
pub(crate) fn survey_tree(scratch: &Scratch, files: &TreeFiles) -> Survey {
    take_survey(scratch, files.iter().map(|(path, (mode, _))| (path, mode == GITLINK)), SURVEY_TIME)
}

/// Each file has its path and whether it is a submodule.
fn take_survey<'a>(
    scratch: &Scratch,
    files: impl Iterator<Item = (&'a RepoPath, bool)>,
    time: Duration,
) -> Survey {
    let mut known = KnownDirectories::default();
    for (path, is_submodule) in files {
        if is_submodule {
            known.repositories.insert(path.clone());
        }
        for above in ancestors(path) {
            if !known.with_files.contains(above) {
                known.with_files.insert(above.to_vec());
            }
        }
    }
    // git creates HEAD with the same umask as files of the work tree.
    let head_file = fs::metadata(scratch.repository.git_dir.join("HEAD"));
    let usual_mode = head_file.map_or(0o644, |found| found.permissions().mode() & 0o666);
    Survey::take(scratch.top(), &known, usual_mode, time)
}

impl TreeState {
    pub(crate) fn new(scratch: &Scratch, captured: Capture, index: IndexFile, survey: Survey) -> TreeState {
        let skipped = index.entries.iter().filter(|entry| entry.skip_worktree);
        let absent = skipped.filter(|entry| fs::symlink_metadata(scratch.on_disk(&entry.path)).is_err());
        let path = |entry: &IndexEntry| {
            let lacks_slash = entry.is_directory() && !entry.path.ends_with(b"/");
            if lacks_slash { with_trailing_slash(&entry.path) } else { entry.path.clone() }
        };
        let absent = absent.map(path).collect();
        TreeState { captured, index, survey, absent, about_to_write: Vec::new() }
    }

    /// What was staged meanwhile is in no restore point.
    pub(crate) fn refuse_if_index_changed(&self, scratch: &Scratch) -> Result<(), WriteError> {
        if IndexFile::read(scratch)?.entries != self.index.entries {
            return Err(WriteError::ConcurrentChange { what: "the index".to_owned() });
        }
        Ok(())
    }
}

/// Whether a file is among the entries that are not on disk.
pub(crate) fn is_absent(absent: &BTreeSet<RepoPath>, path: &[u8]) -> bool {
    let is_below = |above: &[u8]| absent.contains([above, b"/"].concat().as_slice());
    absent.contains(path) || (!absent.is_empty() && ancestors(path).any(is_below))
}

/// Captures the present state; also returns the files of its tree that are on disk.
pub(crate) fn capture_present(
    scratch: &Scratch,
    needed: &BTreeSet<RepoPath>,
) -> Result<(TreeState, TreeFiles)> {
    let index = IndexFile::read(scratch)?;
    let captured = capture(scratch, Limits::default(), needed, Purpose::Restore)?;
    let mut now = scratch.tree_files(&captured.tree)?;
    let present = TreeState::new(scratch, captured, index, survey_tree(scratch, &now));
    now.retain(|path, _| !is_absent(&present.absent, path));
    Ok((present, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_modes_round_trip() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        for directory in ["src", "empty/deep", "ignored/below", ".git/objects"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for (file, mode) in [("src/a", 0o644), ("src/b", 0o644), ("src/c", 0o600), ("ignored/o", 0o600)] {
            fs::write(top.join(file), "x").unwrap();
            fs::set_permissions(top.join(file), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(top.join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
        let known = KnownDirectories { with_files: [b"src".to_vec()].into(), repositories: BTreeSet::new() };
        let survey = Survey::take(top, &known, 0o644, Duration::from_secs(60));
        let names: Vec<&[u8]> = survey.directories.keys().map(Vec::as_slice).collect();
        assert_eq!(names, [b"empty".as_slice(), b"empty/deep", b"ignored", b"src"]);
        assert_eq!(survey.directories[b"empty".as_slice()], Directory { mode: 0o700, is_closed: false });
        assert!(survey.is_unrecorded(b"ignored/below") && !survey.is_unrecorded(b"empty/other"));
        assert_eq!((survey.file_mode(b"src/a"), survey.file_mode(b"src/c")), (Some(0o644), Some(0o600)));
        let stored = Survey::parse(&survey.directories_to_bytes(), &survey.modes_to_bytes(), false);
        assert_eq!(stored.unwrap(), survey);
    }
}
