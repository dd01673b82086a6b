//! Paths as they are told: from the working directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where the working directory lies in the tree that is looked at.
#[derive(Debug, Clone)]
pub(super) struct TreePaths {
    pub(super) workdir: PathBuf,
    /// The top of the work tree; outside of git the working directory.
    pub(super) top: PathBuf,
}

impl TreePaths {
    /// A path from the top, told from the working directory.
    pub(super) fn from_tree(&self, from_top: &[u8]) -> PathBuf {
        self.from_absolute(&self.absolute(from_top))
    }

    pub(super) fn absolute(&self, from_top: &[u8]) -> PathBuf {
        self.top.join(OsStr::from_bytes(from_top))
    }

    pub(super) fn from_absolute(&self, path: &Path) -> PathBuf {
        let shared = self.workdir.components().zip(path.components()).take_while(|(a, b)| a == b).count();
        let up = self.workdir.components().count() - shared;
        std::iter::repeat_n(Component::ParentDir, up).chain(path.components().skip(shared)).collect()
    }

    /// A path as an agent gives it, told from the working directory; `None` if it lies outside of the tree.
    pub(super) fn from_claim(&self, claimed: &str) -> Option<PathBuf> {
        let path = normalized(&self.workdir.join(claimed));
        let path = if path.starts_with(&self.top) { path } else { resolved(&path)? };
        path.starts_with(&self.top).then(|| self.from_absolute(&path))
    }

    /// The same path from the top, as bytes.
    pub(super) fn in_tree(&self, relative: &Path) -> Option<Vec<u8>> {
        let path = normalized(&self.workdir.join(relative));
        Some(path.strip_prefix(&self.top).ok()?.as_os_str().as_bytes().to_vec())
    }
}

/// Without `.` and `..`, by the names alone.
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

/// The agent may have come by another way to the same folder.
fn resolved(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

/// For people and for the record: JSON has no place for bytes that are no text.
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
            assert_eq!(view.from_tree(from_top.as_bytes()), Path::new(expected), "{from_top}");
        }
        for (claimed, expected) in [
            ("src/x.rs", Some("src/x.rs")),
            ("./src/../x.rs", Some("x.rs")),
            ("/repo/crates/a/x", Some("x")),
            ("/repo/y", Some("../../y")),
            ("../../../repository/y", None),
            ("/elsewhere/y", None),
        ] {
            assert_eq!(view.from_claim(claimed).as_deref(), expected.map(Path::new), "{claimed}");
        }
        assert_eq!(view.in_tree(Path::new("../b")), Some(b"crates/b".to_vec()));
        assert_eq!(view.in_tree(Path::new("../../../b")), None);
    }

    #[test]
    fn claims_through_symlinks_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("repo")).unwrap();
        std::os::unix::fs::symlink(real.join("repo"), real.join("alias")).unwrap();
        let view = TreePaths { workdir: real.join("repo"), top: real.join("repo") };
        let claimed = real.join("alias/x");
        assert_eq!(view.from_claim(claimed.to_str().unwrap()).as_deref(), Some(Path::new("x")));
    }
}
