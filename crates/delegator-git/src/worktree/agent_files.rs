//! Reads the git directory of a worktree, which its agent can change at will: which files it tracks, its
//! commits, its objects.
//!
//! Reads regular files of limited size only, without following a link, and runs no git there: a pipe, a
//! planted link or garbage is the same as nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::task_worktree::TaskWorktree;
use crate::error::{GitError, Result};
use crate::files::read_regular;
use crate::index::IndexFile;
use crate::records::{RepoPath, is_object_id};
use crate::repository::Repository;
use crate::scratch::Scratch;

const MAX_INDEX: u64 = 256 << 20;
const MAX_REFS: u64 = 16 << 20;
/// The copy of the agent's objects in a git directory of ours.
const AGENT_OBJECTS: &str = "agent-objects";
/// Files of refs that are read.
const MAX_REF_FILES: usize = 10_000;

impl TaskWorktree {
    /// Files that the agent added to its index: ignored and large ones count as changes, too.
    pub(super) fn agent_tracked(&self, scratch: &Scratch) -> BTreeSet<RepoPath> {
        let bytes = read_regular(&self.git_dir().join("index"), MAX_INDEX);
        let index = bytes.and_then(|bytes| IndexFile::parse(bytes, scratch.id_bytes()).ok());
        let entries = index.map(|index| index.entries).unwrap_or_default();
        let is_file = |path: &RepoPath| {
            path.split(|byte| *byte == b'/')
                .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"))
        };
        let files = entries.into_iter().filter(|entry| entry.is_file() || entry.is_symlink());
        files.map(|entry| entry.path).filter(is_file).collect()
    }

    /// The commit that the agent ended with, if it is another than the one it started from.
    pub fn agent_head(&self) -> Option<String> {
        let own = Repository {
            top_level: self.path.clone(),
            git_dir: self.git_dir(),
            common_dir: self.common_dir(),
            ..self.source.repository.clone()
        };
        let head = own.head_on_disk()?;
        head.commit.filter(|commit| *commit != self.source.commit)
    }

    /// The commits of all refs that the worktree did not start with.
    pub(super) fn new_commits(&self) -> BTreeSet<String> {
        let Some(refs) = self.private_file("refs") else { return self.agent_head().into_iter().collect() };
        let (mut known, common_dir) = (ids_in(&refs), self.common_dir());
        known.insert(self.source.commit.clone());
        let mut files = vec![self.git_dir().join("HEAD"), common_dir.join("packed-refs")];
        files.extend(list_files(common_dir.join("refs"), MAX_REF_FILES));
        files.iter().flat_map(|file| ids_in(file)).filter(|id| !known.contains(id)).collect()
    }

    /// Makes the objects that the agent wrote readable for a git directory of ours: as links, or as copies.
    pub(super) fn attach_agent_objects(&self, scratch: &Scratch) -> Result<()> {
        let to = scratch.path(AGENT_OBJECTS);
        let shallow = self.source.repository.common_dir.join("shallow");
        let attached = (|| {
            if shallow.is_file() {
                fs::copy(shallow, scratch.path("shallow"))?;
            }
            if self.private_dir.is_none() {
                return Ok(());
            }
            fs::create_dir_all(&to)?;
            link_objects(&self.common_dir().join("objects"), &to)?;
            fs::create_dir_all(scratch.path("objects/info"))?;
            let alternates = scratch.path("objects/info/alternates");
            let mut file = fs::File::options().create(true).append(true).open(alternates)?;
            file.write_all(&[to.as_os_str().as_encoded_bytes(), b"\n"].concat())
        })();
        attached.map_err(GitError::io("copy objects to", to))
    }
}

/// Forgets the objects of the agent: some of them may not be what their names say.
pub(super) fn detach_agent_objects(scratch: &Scratch) {
    let _ = fs::remove_dir_all(scratch.path(AGENT_OBJECTS));
}

/// Links loose objects and packs; nothing else, so no list of further object directories.
fn link_objects(from: &Path, to: &Path) -> io::Result<()> {
    for file in list_files(from.to_owned(), usize::MAX) {
        let Ok(inside) = file.strip_prefix(from) else { continue };
        let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        let is_object = match parts.as_slice() {
            ["pack", name] => name.ends_with(".pack") || name.ends_with(".idx"),
            [first, rest] => is_object_id(&format!("{first}{rest}")),
            _ => false,
        };
        if is_object {
            let target = to.join(inside);
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            // A copy onto an earlier link would truncate the object of the agent.
            if !target.exists() && fs::hard_link(&file, &target).is_err() {
                fs::copy(&file, &target)?;
            }
        }
    }
    Ok(())
}

/// The regular files below a directory, up to a number.
fn list_files(dir: PathBuf, limit: usize) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![dir], Vec::new());
    while let Some(folder) = folders.pop() {
        let is_directory = fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir());
        let entries = is_directory.then(|| fs::read_dir(&folder).ok()).flatten();
        for entry in entries.into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() && files.len() < limit => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

fn ids_in(file: &Path) -> BTreeSet<String> {
    let bytes = read_regular(file, MAX_REFS).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().filter(|word| is_object_id(word)).map(str::to_owned).collect()
}
