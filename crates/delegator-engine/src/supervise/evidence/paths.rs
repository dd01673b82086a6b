//! Converts between paths relative to the top of a tree and paths relative to the working directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, Clone)]
pub(super) struct TreePaths {
    pub(super) workdir: PathBuf,
    /// The top of the work tree; outside of git the working directory.
    pub(super) top: PathBuf,
}

impl TreePaths {
    /// A path relative to the top, made relative to the working directory.
    pub(super) fn relative_path(&self, from_top: &[u8]) -> PathBuf {
        self.relative_path_of(&self.absolute(from_top))
    }

    pub(super) fn absolute(&self, from_top: &[u8]) -> PathBuf {
        self.top.join(OsStr::from_bytes(from_top))
    }

    pub(super) fn relative_path_of(&self, path: &Path) -> PathBuf {
        let shared = self.workdir.components().zip(path.components()).take_while(|(a, b)| a == b).count();
        let up = self.workdir.components().count() - shared;
        std::iter::repeat_n(Component::ParentDir, up).chain(path.components().skip(shared)).collect()
    }

    /// A path as the agent reports it, made relative to the working directory; `None` outside of the tree.
    pub(super) fn claimed_path(&self, claimed: &str) -> Option<PathBuf> {
        let path = normalized(&self.workdir.join(claimed));
        let path = if path.starts_with(&self.top) { path } else { resolved(&path)? };
        path.starts_with(&self.top).then(|| self.relative_path_of(&path))
    }

    /// A path relative to the working directory, made relative to the top.
    pub(super) fn tree_path(&self, relative: &Path) -> Option<Vec<u8>> {
        let path = normalized(&self.workdir.join(relative));
        Some(path.strip_prefix(&self.top).ok()?.as_os_str().as_bytes().to_vec())
    }
}

/// A name relative to a directory, made relative to the working directory.
pub(crate) fn relative_name(workdir: &Path, directory: &Path, name: &str) -> String {
    let paths = TreePaths { workdir: workdir.to_owned(), top: directory.to_owned() };
    display_path(&paths.relative_path_of(&normalized(&directory.join(name))))
}

/// Removes `.` and `..` lexically.
fn normalized(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(straight.pop()),
            other => straight.push(other),
        }
    }
    straight
}

/// Resolves links in the parent directory: the agent may have used another path to it.
fn resolved(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

/// Lossy: JSON cannot represent bytes that are not UTF-8.
pub(super) fn display_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_working_directory() {
        let view = TreePaths { workdir: "/repo/crates/a".into(), top: "/repo".into() };
        for (from_top, expected) in [
            ("crates/a/src/x.rs", "src/x.rs"),
            ("crates/ab/x", "../ab/x"),
            ("README", "../../README"),
            ("crates/a", ""),
        ] {
            assert_eq!(view.relative_path(from_top.as_bytes()), Path::new(expected), "{from_top}");
        }
        for (claimed, expected) in [
            ("src/x.rs", Some("src/x.rs")),
            ("./src/../x.rs", Some("x.rs")),
            ("/repo/crates/a/x", Some("x")),
            ("/repo/y", Some("../../y")),
            ("../../../repository/y", None),
            ("/elsewhere/y", None),
        ] {
            assert_eq!(view.claimed_path(claimed).as_deref(), expected.map(Path::new), "{claimed}");
        }
        assert_eq!(view.tree_path(Path::new("../b")), Some(b"crates/b".to_vec()));
        assert_eq!(view.tree_path(Path::new("../../../b")), None);
    }

    #[test]
    fn claims_through_symlinks_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("repo")).unwrap();
        std::os::unix::fs::symlink(real.join("repo"), real.join("alias")).unwrap();
        let view = TreePaths { workdir: real.join("repo"), top: real.join("repo") };
        let claimed = real.join("alias/x");
        assert_eq!(view.claimed_path(claimed.to_str().unwrap()).as_deref(), Some(Path::new("x")));
    }
}
