//! Artifacts: the changed files at the end of a task, with size and SHA-256. A path is resolved from the top
//! of its tree without following links, and its type is checked first: a pipe, a device or a link is never
//! opened.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Attribution;
use super::paths::{TreePaths, display_path};

#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    files: usize,
    file_bytes: u64,
    total_bytes: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { files: 200, file_bytes: 10 << 20, total_bytes: 64 << 20 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub path: String,
    pub size: u64,
    pub sha256: Option<String>,
    pub not_hashed: Option<NotHashed>,
    pub attribution: Attribution,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotHashed {
    TooLarge,
    /// The byte budget of all files together is used up.
    TooMuch,
    Unreadable,
}

/// Collects the regular files among changed paths, within one budget for all trees.
#[derive(Debug)]
pub(super) struct Artifacts<'a> {
    pub(super) found: Vec<Artifact>,
    /// Changed files beyond the budget.
    pub(super) not_listed: u64,
    budget: Budget,
    bytes_left: u64,
    attributions: &'a BTreeMap<String, Attribution>,
}

impl<'a> Artifacts<'a> {
    pub(super) fn new(budget: Budget, attributions: &'a BTreeMap<String, Attribution>) -> Artifacts<'a> {
        Artifacts { found: Vec::new(), not_listed: 0, budget, bytes_left: budget.total_bytes, attributions }
    }

    /// Adds the paths that are below the working directory.
    pub(super) fn add_below(&mut self, workdir: &OwnedFd, paths: &[PathBuf]) {
        let is_below = |path: &&PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
        for path in paths.iter().filter(is_below) {
            self.add(workdir, path, path);
        }
    }

    /// Adds the paths (relative to the working directory) that are in another tree.
    pub(super) fn add_in_tree(&mut self, view: &TreePaths, paths: &[PathBuf]) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(top) = open(&view.top, flags, Mode::empty()) else { return };
        for path in paths.iter().filter(|path| path.starts_with("..")) {
            if let Some(tree_path) = view.tree_path(path) {
                self.add(&top, Path::new(OsStr::from_bytes(&tree_path)), path);
            }
        }
    }

    fn add(&mut self, root: &OwnedFd, path: &Path, listed_as: &Path) {
        if self.found.len() >= self.budget.files {
            self.not_listed += 1;
            return;
        }
        let Ok((descriptor, size)) = open_regular(root, path) else { return };
        let digest = if size > self.budget.file_bytes {
            Err(NotHashed::TooLarge)
        } else if size > self.bytes_left {
            Err(NotHashed::TooMuch)
        } else {
            self.bytes_left -= size;
            sha256(&descriptor, size).map_err(|_| NotHashed::Unreadable)
        };
        let (sha256, not_hashed) = match digest {
            Ok(digest) => (Some(digest), None),
            Err(reason) => (None, Some(reason)),
        };
        let path = display_path(listed_as);
        let attribution = self.attributions.get(&path).copied().unwrap_or(Attribution::Unknown);
        self.found.push(Artifact { path, size, sha256, not_hashed, attribution });
    }
}

/// A path descriptor (`O_PATH`) of a regular file, and the size of the file.
fn open_regular(root: &OwnedFd, path: &Path) -> io::Result<(OwnedFd, u64)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut descriptor = root.try_clone()?;
    for name in path.components() {
        descriptor = openat(descriptor.as_fd(), name.as_os_str(), flags, Mode::empty())?;
    }
    let stat = fstat(&descriptor)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((descriptor, u64::try_from(stat.st_size).unwrap_or(0))),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Hashes exactly `size` bytes: bytes that are appended meanwhile do not count.
fn sha256(descriptor: &OwnedFd, size: u64) -> io::Result<String> {
    let name = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(open(name, flags, Mode::empty())?).take(size);
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => {
                total += count as u64;
                digest.update(&buffer[..count]);
            }
        }
    }
    if total != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Budget = Budget { files: 9, file_bytes: 100, total_bytes: 350 };

    fn collect(root: &Path, paths: &[&str]) -> (Vec<(String, u64, bool)>, u64) {
        let workdir =
            open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let attributions = BTreeMap::new();
        let mut artifacts = Artifacts::new(SMALL, &attributions);
        artifacts.add_below(&workdir, &paths);
        let facts = |file: Artifact| (file.path, file.size, file.sha256.is_some());
        (artifacts.found.into_iter().map(facts).collect(), artifacts.not_listed)
    }

    #[test]
    fn only_regular_files_below_the_root_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("dir")).unwrap();
        std::fs::write(folder.path().join("outside"), "secret").unwrap();
        std::fs::write(root.join("dir/file"), "text").unwrap();
        std::fs::write(root.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("../outside", root.join("link")).unwrap();
        std::os::unix::fs::symlink("..", root.join("way-out")).unwrap();
        // Opening this would block until a writer comes.
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), 0o600.into()).unwrap();
        let paths = [
            "dir/file",
            "empty",
            "dir",
            "link",
            "way-out/outside",
            "../outside",
            "/etc/passwd",
            "fifo",
            "none",
        ];
        let (found, _) = collect(&root, &paths);
        assert_eq!(found, [("dir/file".to_owned(), 4, true), ("empty".to_owned(), 0, true)]);
    }

    #[test]
    fn files_beyond_the_budget_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let sparse = |name: &str, size: u64| File::create(root.join(name)).unwrap().set_len(size).unwrap();
        sparse("giant", 1 << 40);
        assert_eq!(collect(root, &["giant"]).0, [("giant".to_owned(), 1 << 40, false)]);
        let names: Vec<String> = (0..12).map(|n| format!("f{n:02}")).collect();
        names.iter().for_each(|name| sparse(name, 100));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (found, not_listed) = collect(root, &names);
        let hashed: Vec<bool> = found.iter().map(|(_, _, hashed)| *hashed).collect();
        assert_eq!(hashed, [true, true, true, false, false, false, false, false, false]);
        assert_eq!(not_listed, 3);
    }

    #[test]
    fn a_file_that_changes_its_length_has_no_digest() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "text").unwrap();
        let descriptor =
            open(folder.path().join("f"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        assert!(sha256(&descriptor, 5).is_err(), "the file is shorter");
        assert_eq!(sha256(&descriptor, 4).unwrap().len(), 64);
        assert_eq!(sha256(&descriptor, 2).unwrap().len(), 64, "appended bytes do not count");
    }
}
