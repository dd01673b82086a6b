//! Computes the net effect of all file changes that the agent reported.
//!
//! A file added and then edited is added; one added and then deleted is in no list; one deleted and written
//! again is modified. A failed or unfinished patch changes nothing, but may have written some of its files,
//! so these are listed separately. Repeated changes, which occur after a reconnect, change nothing either.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::{ChangeKind, FileChange};

/// Bounds on the number of files and on the length of a path.
const MAX_FILES: usize = 2_000;
const MAX_PATH_BYTES: usize = 1_024;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOperations {
    pub added: Vec<String>,
    pub modified: Vec<String>,
    pub deleted: Vec<String>,
    /// Changes to files that exceed the bounds and are not listed.
    pub not_listed: u64,
    pub failed_patches: u64,
    /// Further files of patches that failed or did not end. The agent may have changed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempted: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Files {
    by_path: BTreeMap<String, Existence>,
    /// The files of all patches that were started or failed.
    attempted: BTreeSet<String>,
    not_listed: u64,
    pub(super) failed_patches: u64,
}

#[derive(Clone, Copy, Debug)]
struct Existence {
    existed_before: bool,
    exists_now: bool,
}

impl Files {
    pub(super) fn apply(&mut self, changes: &[FileChange<'_>]) {
        for change in changes {
            let path = change.path.resolve();
            if let Some(file) = self.by_path.get_mut(path.as_ref()) {
                file.exists_now = change.kind != ChangeKind::Delete;
            } else if self.by_path.len() < MAX_FILES && path.len() <= MAX_PATH_BYTES {
                let file = Existence {
                    existed_before: change.kind != ChangeKind::Add,
                    exists_now: change.kind != ChangeKind::Delete,
                };
                self.by_path.insert(path.into_owned(), file);
            } else {
                self.not_listed += 1;
            }
        }
    }

    pub(super) fn attempt(&mut self, changes: &[FileChange<'_>]) {
        for change in changes {
            let path = change.path.resolve();
            if self.attempted.len() < MAX_FILES && path.len() <= MAX_PATH_BYTES {
                self.attempted.insert(path.into_owned());
            }
        }
    }

    pub(super) fn report(&self) -> FileOperations {
        let attempted = self.attempted.iter().filter(|path| !self.by_path.contains_key(*path));
        let mut report = FileOperations {
            attempted: attempted.cloned().collect(),
            not_listed: self.not_listed,
            failed_patches: self.failed_patches,
            ..FileOperations::default()
        };
        for (path, file) in &self.by_path {
            let list = match (file.existed_before, file.exists_now) {
                (false, true) => &mut report.added,
                (true, true) => &mut report.modified,
                (true, false) => &mut report.deleted,
                (false, false) => continue,
            };
            list.push(path.clone());
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Text;

    fn after(kinds: &[ChangeKind]) -> FileOperations {
        let mut files = Files::default();
        for kind in kinds {
            files.apply(&[FileChange::of_path(Text::plain("f"), *kind)]);
        }
        files.report()
    }

    #[test]
    fn the_net_effect_of_repeated_changes_counts() {
        use ChangeKind::{Add, Delete, Update};
        let listed = |kinds: &[ChangeKind]| {
            let report = after(kinds);
            (report.added.len(), report.modified.len(), report.deleted.len())
        };
        assert_eq!(listed(&[Add, Update]), (1, 0, 0));
        assert_eq!(listed(&[Add, Add]), (1, 0, 0));
        assert_eq!(listed(&[Add, Update, Delete]), (0, 0, 0));
        assert_eq!(listed(&[Update, Delete]), (0, 0, 1));
        assert_eq!(listed(&[Delete, Add]), (0, 1, 0));
        assert_eq!(listed(&[Update, Update]), (0, 1, 0));
    }

    #[test]
    fn files_of_failed_and_unfinished_patches_are_listed_separately() {
        let change = |path| [FileChange::of_path(Text::plain(path), ChangeKind::Update)];
        let mut files = Files::default();
        for path in ["done", "failed", "open"] {
            files.attempt(&change(path));
        }
        files.apply(&change("done"));
        let report = files.report();
        assert_eq!(
            (report.modified, report.attempted),
            (vec!["done".into()], vec!["failed".into(), "open".into()])
        );
    }

    #[test]
    fn files_beyond_the_limit_are_counted() {
        let mut files = Files::default();
        for n in 0..MAX_FILES + 5 {
            files.apply(&[FileChange::of_path(Text::owned(format!("f{n}")), ChangeKind::Add)]);
        }
        assert_eq!((files.report().added.len(), files.report().not_listed), (MAX_FILES, 5));
    }
}
