//! Decides what happens to each file of a diff. Pure.
//!
//! The base, the version that the task produced and the present version of a file are merged by the rules of
//! [`decide_file`], where these are the states after the task, before it, and now. Where a rename or a link
//! to another change makes this unclear, the base must match.

use super::paths::TouchedPaths;
use super::report::{Conflict, ConflictReason};
use super::theirs::Applied;
use super::versions::Ours;
use crate::diff::{ChangeKind, ContentMerge, FileDecision, FileDiff, decide_file};
use crate::records::{FileVersion, GITLINK, RepoPath, is_regular};

/// The changes of one part of a diff that has no conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Already,
    Change(Change),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) write: Option<(RepoPath, FileVersion)>,
    pub(crate) remove: Option<RepoPath>,
    pub(crate) merged: bool,
    /// A file in place of the written one is not merged: another change must remove it.
    pub(crate) needs_free_path: bool,
}

/// A part of the diff whose outcome may depend on a merge.
pub(crate) enum Pending<'a> {
    Done(Outcome),
    Merge(Situation<'a>, ContentMerge),
}

/// What is known about one part of a diff and the files it touches.
pub(crate) struct Situation<'a> {
    pub(crate) section: &'a FileDiff<'a>,
    pub(crate) applied: &'a Applied,
    pub(crate) ours: &'a Ours,
    pub(crate) touched: &'a TouchedPaths<'a>,
}

impl<'a> Situation<'a> {
    fn conflict<T>(path: &RepoPath, reason: ConflictReason) -> Result<T, Conflict> {
        Err(Conflict::new(path, reason))
    }

    fn at_source(&self) -> Option<&'a FileVersion> {
        self.section.source().and_then(|path| self.ours.get(path))
    }

    fn at_path(&self) -> Option<&'a FileVersion> {
        self.ours.get(&self.section.path)
    }

    fn base(&self) -> Option<&'a FileVersion> {
        self.applied.base.as_ref().map(|base| &base.version)
    }

    /// Whether another part of the diff creates the source or removes the target.
    fn is_linked(&self) -> bool {
        let ChangeKind::Renamed { from } = &self.section.kind else { return false };
        self.touched.targets.contains(from.as_slice())
            || self.touched.consumed.contains(self.section.path.as_slice())
    }

    /// The path whose present version is merged.
    pub(crate) fn merged_path(&self) -> &'a RepoPath {
        match self.section.source() {
            Some(source) if self.ours.get(source).is_some() => source,
            _ => &self.section.path,
        }
    }

    /// Decides, or finds what to merge first.
    pub(crate) fn decide(self) -> Result<Pending<'a>, Conflict> {
        let path = &self.section.path;
        if [self.at_source(), self.at_path()].into_iter().flatten().any(|(mode, _)| mode == GITLINK) {
            return Self::conflict(path, ConflictReason::Submodule);
        }
        if matches!(self.section.kind, ChangeKind::Added | ChangeKind::Deleted) || self.is_linked() {
            return self.outcome(None).map(Pending::Done);
        }
        let source = self.section.source().unwrap_or(path);
        let Some(ours) = self.ours.get(self.merged_path()) else {
            return Self::conflict(source, ConflictReason::Missing);
        };
        let content = match decide_file(self.applied.theirs.as_ref(), self.base(), Some(ours)) {
            FileDecision::Same | FileDecision::Later => Some((ours.clone(), false)),
            FileDecision::Revert => None,
            FileDecision::Combine(version) => Some((version, true)),
            FileDecision::Merge(merge) => return Ok(Pending::Merge(self, merge)),
            FileDecision::Overlap => return Self::conflict(source, ConflictReason::DoesNotMatch),
        };
        self.outcome(content).map(Pending::Done)
    }

    /// Decides, once the content is known; `None` stands for the version that the task produced.
    pub(crate) fn outcome(&self, content: Option<(FileVersion, bool)>) -> Result<Outcome, Conflict> {
        let path = &self.section.path;
        let theirs = || self.applied.theirs.clone().map(|theirs| (theirs, false));
        let Some((version, merged)) = content.or_else(theirs) else { return self.deletion() };
        let needs_free_path = self.section.kind == ChangeKind::Added;
        let write = |remove: Option<&RepoPath>| {
            let write = Some((path.clone(), version.clone()));
            Outcome::Change(Change { write, remove: remove.cloned(), merged, needs_free_path })
        };
        match (&self.section.kind, self.at_path()) {
            (ChangeKind::Renamed { from }, _) if self.is_linked() => self.linked_rename(from, &version),
            (ChangeKind::Renamed { from }, present) if self.at_source().is_some() => match present {
                None => Ok(write(Some(from))),
                // An earlier attempt was interrupted after it wrote the new file.
                Some(present) if *present == version => Ok(removal(from)),
                Some(_) => Self::conflict(path, ConflictReason::AlreadyExists),
            },
            (_, Some(present)) if *present == version => Ok(Outcome::Already),
            _ => Ok(write(None)),
        }
    }

    fn deletion(&self) -> Result<Outcome, Conflict> {
        let path = &self.section.path;
        let same_content = |ours: &FileVersion, base: &FileVersion| {
            ours.1 == base.1 && (ours.0 == base.0 || (is_regular(ours) && is_regular(base)))
        };
        match (self.at_path(), self.base()) {
            (None, _) => Ok(Outcome::Already),
            (Some(ours), Some(base)) if same_content(ours, base) => Ok(removal(path)),
            _ => Self::conflict(path, ConflictReason::ChangedAndDeleted),
        }
    }

    /// A rename whose source gets new content, or whose target is removed, by the same diff.
    fn linked_rename(&self, from: &RepoPath, theirs: &FileVersion) -> Result<Outcome, Conflict> {
        let path = &self.section.path;
        // Such a rename without ids, like two swapped files, looks the same before and after.
        if self.applied.base.as_ref().is_none_or(|base| !base.is_known) {
            return Self::conflict(path, ConflictReason::Ambiguous);
        }
        let is_source_done = self.at_source().is_none() || self.touched.targets.contains(from.as_slice());
        if self.at_path() == Some(theirs) && is_source_done {
            return Ok(Outcome::Already);
        }
        if self.at_source() != self.base() {
            let is_missing = self.at_source().is_none();
            let reason = if is_missing { ConflictReason::Missing } else { ConflictReason::DoesNotMatch };
            return Self::conflict(from, reason);
        }
        let write = Some((path.clone(), theirs.clone()));
        let remove = Some(from.clone());
        Ok(Outcome::Change(Change { write, remove, merged: false, needs_free_path: true }))
    }
}

fn removal(path: &RepoPath) -> Outcome {
    let remove = Some(path.clone());
    Outcome::Change(Change { write: None, remove, merged: false, needs_free_path: false })
}
