//! Lists ignored files that existed before a task: `.env`, local settings, data.
//!
//! An agent can overwrite them like any other file, and git has no copy. Directories that only tools fill
//! ([`TOOL_DIRECTORIES`]) are skipped: they are large, change with every build and can be rebuilt. All other
//! ignored files are listed within limits; a directory beyond the limits is reported as not examined.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::gather::{LeftOut, LeftOutReason};
use crate::error::Result;
use crate::records::{RepoPath, display_path, on_disk, records};
use crate::scratch::{Scratch, WORK_INDEX};

/// Names of directories that only tools fill.
pub const TOOL_DIRECTORIES: [&str; 12] = [
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".cache",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
];

/// Endings of files that compilers and editors leave beside others.
const DERIVED_ENDINGS: [&str; 6] = [".o", ".obj", ".pyc", ".class", ".swp", ".tmp"];

const MAX_FILES: usize = 2_000;
/// Limits for entries visited: in one directory that git ignores as a whole, and in all of them together.
const MAX_VISITED: usize = 2_000;
const MAX_VISITED_IN_ALL: usize = 20_000;

#[derive(Debug, Default)]
pub(crate) struct Ignored {
    pub(crate) files: BTreeSet<RepoPath>,
    /// Repositories inside ignored directories; each path ends in a slash.
    pub(crate) repositories: Vec<RepoPath>,
    pub(crate) not_examined: Vec<LeftOut>,
}

impl Ignored {
    pub(crate) fn list(scratch: &Scratch) -> Result<Ignored> {
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let listed = scratch.run(WORK_INDEX, args, b"")?;
        Ok(Ignored::examine(scratch.top(), records(&listed)))
    }

    /// Examines what git lists as ignored: files, and directories that end in a slash.
    pub(crate) fn examine<'a>(top_level: &Path, listed: impl IntoIterator<Item = &'a [u8]>) -> Ignored {
        let listed = listed.into_iter().filter(|path| !is_in_tool_directory(path));
        let (directories, files): (Vec<&[u8]>, Vec<&[u8]>) = listed.partition(|path| path.ends_with(b"/"));
        let mut ignored = Ignored::default();
        for path in files {
            if ignored.files.len() < MAX_FILES {
                ignored.files.insert(path.to_vec());
            } else {
                ignored.mark_not_examined(first_component(path));
            }
        }
        let mut visits_left = MAX_VISITED_IN_ALL;
        for directory in directories {
            let may_visit = MAX_VISITED.min(visits_left);
            let (files, repositories) = (Vec::new(), Vec::new());
            let mut walk = Walk { top: top_level, remaining: may_visit, files, repositories };
            let is_complete = walk.visit(directory);
            visits_left -= may_visit - walk.remaining;
            if is_complete && ignored.files.len() + walk.files.len() <= MAX_FILES {
                ignored.files.extend(walk.files);
                ignored.repositories.extend(walk.repositories);
            } else {
                ignored.mark_not_examined(directory);
            }
        }
        ignored
    }

    fn mark_not_examined(&mut self, path: &[u8]) {
        if self.not_examined.last().is_none_or(|last| last.path != display_path(path)) {
            self.not_examined.push(LeftOut::new(path, LeftOutReason::Ignored, 0));
        }
    }
}

/// Whether the path is below a tool directory or, if it ends in a slash, is one.
pub(crate) fn is_in_tool_directory(path: &[u8]) -> bool {
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    // The last part is the file name, or empty after the slash of a directory.
    parts.pop();
    parts.iter().any(|part| is_tool_directory(part))
}

/// Whether a program can create the file again from others, so that its loss does not matter.
pub(crate) fn is_derived(path: &[u8]) -> bool {
    DERIVED_ENDINGS.iter().any(|ending| path.ends_with(ending.as_bytes()))
}

pub(crate) fn is_tool_directory(name: &[u8]) -> bool {
    TOOL_DIRECTORIES.iter().any(|known| known.as_bytes() == name)
}

fn first_component(path: &[u8]) -> &[u8] {
    path.iter().position(|byte| *byte == b'/').map_or(path, |at| &path[..=at])
}

/// A bounded walk through one ignored directory.
struct Walk<'a> {
    top: &'a Path,
    remaining: usize,
    files: Vec<RepoPath>,
    repositories: Vec<RepoPath>,
}

impl Walk<'_> {
    /// `directory` ends in a slash. Returns false if the limit was reached or a directory could not be read.
    fn visit(&mut self, directory: &[u8]) -> bool {
        let mut directories = vec![directory.to_vec()];
        while let Some(directory) = directories.pop() {
            let path_on_disk = on_disk(self.top, &directory);
            if fs::symlink_metadata(path_on_disk.join(".git")).is_ok() {
                self.repositories.push(directory);
                continue;
            }
            let Ok(entries) = fs::read_dir(&path_on_disk) else { return false };
            for entry in entries {
                let Some(remaining) = self.remaining.checked_sub(1) else { return false };
                self.remaining = remaining;
                let Ok(entry) = entry else { return false };
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                let path = [directory.as_slice(), name.as_bytes()].concat();
                if kind.is_dir() && !is_tool_directory(name.as_bytes()) {
                    directories.push([path.as_slice(), b"/"].concat());
                } else if kind.is_file() || kind.is_symlink() {
                    self.files.push(path);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_directories_are_known_by_name_at_any_depth() {
        for (path, expected) in [
            ("target/", true),
            ("a/node_modules/", true),
            ("a/__pycache__/b.pyc", true),
            ("target", false),
            ("data/", false),
            ("targets/x", false),
        ] {
            assert_eq!(is_in_tool_directory(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(first_component(b"a/b/c"), b"a/");
        assert_eq!(first_component(b"a"), b"a");
    }
}
