//! The files of git directories that decide which programs git runs: configuration, hooks, attributes, links.
//!
//! A change of them changes what the user's next git command does. They are small, so their contents are
//! recorded before a task, compared after it, and written back by a restore: in the repository of a work
//! tree, its linked worktrees and its submodules. What is large or not text is compared by its metadata and
//! cannot be restored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::locate::{Repository, find_layout};
use crate::files::{Stamp, if_exists, read_regular};

const FILES: [&str; 5] = ["config", "config.worktree", "commondir", "info/attributes", "info/exclude"];
/// Directories that are protected as a whole; a link in place of one is a change.
const FOLDERS: [&str; 2] = ["hooks", "info"];
const MAX_FILE_BYTES: u64 = 64 << 10;
const MAX_TOTAL_BYTES: u64 = 1 << 20;
/// Git directories of linked worktrees and submodules, and files in `hooks`.
const MAX_ENTRIES: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSettings {
    top_level: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    files: BTreeMap<PathBuf, SettingsFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SettingsFile {
    Text {
        mode: u32,
        text: String,
    },
    Link(PathBuf),
    /// Not stored: its metadata.
    Other(String),
}

impl GitSettings {
    pub(crate) fn read(repository: &Repository) -> GitSettings {
        let Repository { top_level, git_dir, common_dir, .. } = repository.clone();
        GitSettings { top_level, git_dir, common_dir, files: BTreeMap::new() }.read_again()
    }

    /// The present settings of the same repository.
    #[must_use]
    pub fn read_again(&self) -> GitSettings {
        let mut paths: BTreeSet<PathBuf> = BTreeSet::from([self.top_level.join(".git")]);
        for dir in git_dirs(&self.git_dir, &self.common_dir) {
            paths.extend(FILES.iter().chain(&FOLDERS).map(|name| dir.join(name)));
            let hooks = dir.join("hooks");
            // git never runs the samples.
            let is_sample = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sample");
            paths.extend(entries(&hooks).filter(|path| !is_sample(path)));
        }
        let mut left = MAX_TOTAL_BYTES;
        let files = paths.into_iter().filter(|path| path.to_str().is_some());
        let files = files.filter_map(|path| SettingsFile::read(&path, &mut left).map(|file| (path, file)));
        GitSettings { files: files.collect(), ..self.clone() }
    }

    /// The settings that differ from these; `None` if none do, or if the repository or its work tree is gone.
    pub fn changed(&self) -> Option<GitSettings> {
        let is_there = self.common_dir.join("HEAD").exists() && self.top_level.is_dir();
        let now = is_there.then(|| self.read_again())?;
        (now.files != self.files).then_some(now)
    }

    pub fn differing_files<'a>(&'a self, other: &'a GitSettings) -> impl Iterator<Item = &'a PathBuf> {
        let all: BTreeSet<&PathBuf> = self.files.keys().chain(other.files.keys()).collect();
        all.into_iter().filter(|path| self.files.get(*path) != other.files.get(*path))
    }

    /// Whether the file is in the same state in both.
    pub fn agrees_on(&self, path: &Path, other: &GitSettings) -> bool {
        self.files.get(path) == other.files.get(path)
    }

    /// Whether the content of the file, or that it did not exist, is known.
    pub fn is_stored(&self, path: &Path) -> bool {
        !matches!(self.files.get(path), Some(SettingsFile::Other(_)))
    }

    pub fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Writes a file as it is in these settings, or removes it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        match self.files.get(path) {
            Some(SettingsFile::Text { mode, text }) => {
                fs::create_dir_all(folder)?;
                let mut file = tempfile::Builder::new().prefix(".mcp-delegator-").tempfile_in(folder)?;
                file.write_all(text.as_bytes())?;
                file.as_file().set_permissions(Permissions::from_mode(*mode))?;
                file.as_file().sync_all()?;
                file.persist(path).map(drop).map_err(|error| error.error)
            }
            Some(SettingsFile::Link(target)) => {
                fs::create_dir_all(folder)?;
                if_exists(fs::remove_file(path))?;
                symlink(target, path)
            }
            Some(SettingsFile::Other(_)) => Ok(()),
            None => if_exists(fs::remove_file(path)).map(drop),
        }
    }
}

impl SettingsFile {
    /// `None` if it does not exist or is a directory. `left` are the bytes that may still be stored.
    fn read(path: &Path, left: &mut u64) -> Option<SettingsFile> {
        let found = fs::symlink_metadata(path).ok().filter(|found| !found.is_dir())?;
        let other = || SettingsFile::Other(Stamp::of(&found).to_text());
        if found.is_symlink() {
            let target = fs::read_link(path).ok().filter(|target| target.to_str().is_some());
            return Some(target.map_or_else(other, SettingsFile::Link));
        }
        let text = read_regular(path, MAX_FILE_BYTES.min(*left));
        Some(match text.and_then(|text| String::from_utf8(text).ok()) {
            Some(text) => {
                *left -= text.len() as u64;
                SettingsFile::Text { mode: found.permissions().mode() & 0o7777, text }
            }
            None => other(),
        })
    }
}

/// What is in a directory; nothing if it is a symbolic link.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_dir = fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
    let entries = is_dir.then(|| fs::read_dir(folder).ok()).flatten();
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).take(MAX_ENTRIES)
}

/// The git directories of a repository, of its linked worktrees and of its submodules.
fn git_dirs(git_dir: &Path, common_dir: &Path) -> BTreeSet<PathBuf> {
    let mut dirs = BTreeSet::from([git_dir.to_owned(), common_dir.to_owned()]);
    dirs.extend(entries(&common_dir.join("worktrees")));
    let mut folders = vec![common_dir.join("modules")];
    let mut visited = 0;
    while let Some(folder) = folders.pop().filter(|_| visited < MAX_ENTRIES) {
        visited += 1;
        for path in entries(&folder) {
            if path.join("HEAD").exists() {
                folders.push(path.join("modules"));
                dirs.insert(path);
            } else {
                // The name of a submodule may contain slashes.
                folders.push(path);
            }
        }
    }
    dirs
}

/// The existing settings that an enclosed agent which works in `dir` must not change; nothing where git would
/// have to be asked. Links are left out: the agent could not write through them, and git replaces them.
pub fn protected_settings(dir: &Path) -> BTreeSet<PathBuf> {
    let Some(layout) = find_layout(dir) else { return BTreeSet::new() };
    let dirs = git_dirs(&layout.git_dir, &layout.common_dir);
    let settings = dirs.iter().flat_map(|dir| FILES.iter().chain(&FOLDERS).map(|name| dir.join(name)));
    let is_real = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
    let is_setting = |path: &PathBuf| is_real(path) && !dirs.contains(path);
    settings.chain([layout.top_level.join(".git")]).filter(is_setting).collect()
}
