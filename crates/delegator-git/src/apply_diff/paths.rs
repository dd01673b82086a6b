//! Decides which paths a diff may touch.
//!
//! A path is refused if it leads out of the work tree, into a git directory or another repository, or through
//! a symbolic link, or if something that must stay is in its place. What the diff itself removes is not in
//! the way. Reads metadata only.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::report::{Conflict, ConflictReason};
use crate::diff::FileDiff;
use crate::files::contains_only;
use crate::records::{RepoPath, ancestors, on_disk};

/// The paths that a diff gives new content, and those whose old content it removes or replaces.
pub(crate) struct TouchedPaths<'a> {
    top_level: &'a Path,
    pub(crate) targets: BTreeSet<&'a [u8]>,
    pub(crate) consumed: BTreeSet<&'a [u8]>,
    repeated: BTreeSet<&'a [u8]>,
}

impl<'a> TouchedPaths<'a> {
    pub(crate) fn of(top_level: &'a Path, sections: &'a [FileDiff<'_>]) -> TouchedPaths<'a> {
        let mut touched = TouchedPaths {
            top_level,
            targets: BTreeSet::new(),
            consumed: BTreeSet::new(),
            repeated: BTreeSet::new(),
        };
        // A modified file is both, so any second change of a path is found.
        for section in sections {
            let is_new_target = section.target().is_none_or(|path| touched.targets.insert(path));
            let is_new_source = section.consumed().is_none_or(|path| touched.consumed.insert(path));
            if !is_new_target || !is_new_source {
                touched.repeated.insert(&section.path);
            }
        }
        touched
    }

    pub(crate) fn check(&self, section: &FileDiff<'_>) -> Option<Conflict> {
        let conflict = |path: &[u8], reason| Some(Conflict::new(path, reason));
        for path in section.paths() {
            if let Some(reason) = check_name(path) {
                return conflict(path, reason);
            }
        }
        if section.is_submodule() {
            return conflict(&section.path, ConflictReason::Submodule);
        }
        if section.lacks_content {
            return conflict(&section.path, ConflictReason::BinaryWithoutContent);
        }
        if self.repeated.contains(section.path.as_slice()) {
            return conflict(&section.path, ConflictReason::ChangedTwice);
        }
        let source = section.source().and_then(|path| self.check_parents(path).map(|reason| (path, reason)));
        let target = section.target().and_then(|path| self.check_target(path).map(|reason| (path, reason)));
        // What the diff replaces by a link or a file was a directory before, so its old content is missing,
        // not hidden.
        let source = source.filter(|(path, _)| !ancestors(path).any(|above| self.targets.contains(above)));
        target.or(source).and_then(|(path, reason)| conflict(path, reason))
    }

    fn check_parents(&self, path: &[u8]) -> Option<ConflictReason> {
        for above in ancestors(path) {
            let directory = on_disk(self.top_level, above);
            let Ok(found) = fs::symlink_metadata(&directory) else { return None };
            if !found.is_dir() && self.consumed.contains(above) {
                return None;
            }
            if found.is_symlink() {
                return Some(ConflictReason::BehindSymlink);
            }
            if !found.is_dir() {
                return Some(ConflictReason::FileInTheWay);
            }
            if is_repository(&directory) {
                return Some(ConflictReason::Submodule);
            }
        }
        None
    }

    fn check_target(&self, path: &[u8]) -> Option<ConflictReason> {
        if ancestors(path).any(|above| self.targets.contains(above)) {
            return Some(ConflictReason::FileInTheWay);
        }
        if let Some(reason) = self.check_parents(path) {
            return Some(reason);
        }
        let file = on_disk(self.top_level, path);
        let is_directory = fs::symlink_metadata(&file).is_ok_and(|found| found.is_dir());
        if !is_directory || contains_only(&file, path, &self.consumed) {
            return None;
        }
        let is_repository = is_repository(&file);
        Some(if is_repository { ConflictReason::Submodule } else { ConflictReason::DirectoryInTheWay })
    }
}

fn is_repository(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join(".git")).is_ok()
}

/// Checks the components of a path. Names that other file systems consider equal to `.git` are refused, too.
fn check_name(path: &RepoPath) -> Option<ConflictReason> {
    let mut reason = path.contains(&0).then_some(ConflictReason::OutsideWorkTree);
    for component in path.split(|byte| *byte == b'/') {
        if matches!(component, b"" | b"." | b"..") {
            reason = Some(ConflictReason::OutsideWorkTree);
        } else if component.eq_ignore_ascii_case(b".git") || component.eq_ignore_ascii_case(b"git~1") {
            reason = reason.or(Some(ConflictReason::GitDirectory));
        }
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\0b"] {
            assert_eq!(
                check_name(&path.as_bytes().to_vec()),
                Some(ConflictReason::OutsideWorkTree),
                "{path}"
            );
        }
        for path in [".git/config", "a/.GIT", "GIT~1/x"] {
            assert_eq!(check_name(&path.as_bytes().to_vec()), Some(ConflictReason::GitDirectory), "{path}");
        }
        assert_eq!(check_name(&b"a/.gitignore".to_vec()), None);
    }
}
