//! Finds what changed in a work tree since its [`Baseline`] was taken.
//!
//! ```text
//! our index ─▶ differs on disk? ─▶ gather files ─▶ tree ─▶ diff against the baseline's tree: renames, lines
//!                    └─▶ no: done
//! ```
//!
//! Work trees are compared, not commits: a file that was dirty before and was left alone is not a change, and
//! a file that was changed and then committed is one. If trees cannot be compared (the repository is gone, or
//! too many files changed), only names are reported.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use super::take::Baseline;
use crate::capture::{
    Differences, GatherResult, Gatherer, LeftOut, LeftOutReason, Limits, examine, survey_work_index,
};
use crate::diff::{ChangeKind, FileChange, NewVersion, RawChange, raw_diff};
use crate::error::Result;
use crate::files::{Stamp, identity_of};
use crate::index::{IndexFile, TrackedFiles, is_checked_out};
use crate::records::{RepoPath, with_trailing_slash};
use crate::repository::{GitSettings, Head, find_repository};
use crate::restore_point::{AgentChanges, EndRecord, RestorePoint, StoredIndex};
use crate::scratch::WORK_INDEX;

/// If more files than this changed, they are reported by name only.
const MAX_COMPARED_FILES: usize = 10_000;
/// Rename detection compares at most the square of this many pairs of deleted and added files.
const RENAME_LIMIT: &str = "-l300";
const MAX_SUBJECTS: usize = 20;
const MAX_SUBJECT_CHARS: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub files: Vec<FileChange>,
    /// Changed, or possibly changed, and not read.
    pub left_out: Vec<LeftOut>,
    /// Examined neither for the baseline nor now.
    pub not_examined: Vec<LeftOut>,
    /// Why renames and line counts are missing; `None` if they are present.
    pub names_only: Option<String>,
    pub index_changed: bool,
    pub head_before: Head,
    /// `None` if the repository is gone or is a different one.
    pub head_after: Option<Head>,
    pub commits: Commits,
    /// The present settings of the repository, if they differ.
    pub settings: Option<GitSettings>,
    /// The new version of every file whose content was compared; `None` if trees could not be compared.
    pub(crate) new_versions: Option<Vec<NewVersion>>,
    /// Files that changed and were not read, with their present stamp.
    pub(crate) unread: Vec<(RepoPath, Option<Stamp>)>,
}

/// Commits made since the baseline that are reachable from HEAD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commits {
    pub count: u64,
    pub subjects: Vec<String>,
    /// When the newest ones were made, in seconds since 1970.
    pub made_at: Vec<i64>,
}

impl Baseline {
    /// Compares the baseline with the present work tree. `since` is the time of the baseline in seconds since
    /// 1970: older commits were only fetched or checked out. May be called once, because changed files are
    /// added to the baseline's index.
    pub fn compare(&self, limits: Limits, since: i64) -> Result<Comparison> {
        let is_deleted = !self.scratch.repository.top_level.is_dir();
        let compared = if is_deleted { self.deleted_tree()? } else { self.compare_files(limits)? };
        let head_after = self.current_head();
        Ok(Comparison {
            not_examined: self.captured.not_examined.clone(),
            settings: self.settings.changed(),
            index_changed: self.is_index_changed().unwrap_or(false),
            commits: self.commits(head_after.as_ref(), since).unwrap_or_default(),
            head_before: self.head.clone(),
            head_after,
            ..compared
        })
    }

    /// The comparison with a work tree that was deleted as a whole, which git cannot examine.
    fn deleted_tree(&self) -> Result<Comparison> {
        let index = IndexFile::read_copy(&self.scratch, WORK_INDEX)?;
        let entries = index.entries.iter().filter(|entry| !entry.is_submodule() && !entry.skip_worktree);
        let version = |path: &RepoPath| NewVersion { path: path.clone(), version: None, existed: true };
        let versions: Vec<NewVersion> = entries.map(|entry| version(&entry.path)).collect();
        let unread = self.captured.unread.keys().filter(|path| !path.ends_with(b"/"));
        let unread: Vec<(RepoPath, Option<Stamp>)> = unread.map(|path| (path.clone(), None)).collect();
        let paths = versions.iter().map(|deleted| &deleted.path).chain(unread.iter().map(|(path, _)| path));
        Ok(Comparison {
            files: paths.map(|path| FileChange::unread(ChangeKind::Deleted, path)).collect(),
            new_versions: Some(versions),
            unread,
            ..Comparison::default()
        })
    }

    fn compare_files(&self, limits: Limits) -> Result<Comparison> {
        let mut appeared = Vec::new();
        if self.captured.is_sparse {
            // Files outside the sparse checkout may have been written meanwhile.
            let tracked = TrackedFiles::read(&self.scratch)?;
            appeared = tracked.skipped_on_disk();
            tracked.unhide(&self.scratch)?;
        }
        let (differences, _) = examine(&self.scratch, false)?;
        let mut compared = if differences.changed_count() + differences.untracked.len() > MAX_COMPARED_FILES {
            self.changes_by_name(&differences, "too many files changed".to_owned())
        } else {
            self.compare_content(&differences, limits)?
        };
        if let Some(versions) = &mut compared.new_versions {
            let known: BTreeSet<RepoPath> = versions.iter().map(|known| known.path.clone()).collect();
            let appeared = appeared.into_iter().filter(|(path, _)| !known.contains(path));
            let new = |(path, version)| NewVersion { path, version: Some(version), existed: false };
            versions.extend(appeared.map(new));
        }
        Ok(compared)
    }

    fn compare_content(&self, differences: &Differences, limits: Limits) -> Result<Comparison> {
        // Before the index changes, from which the tree is written.
        let before = (!differences.is_empty()).then(|| self.trees.tree(&self.scratch));
        let gathered = self.gather_changes(differences, limits)?;
        let compared_trees = match before {
            Some(before) => before.and_then(|before| self.compare_trees(before, differences, &gathered)),
            None => Ok((Vec::new(), Vec::new())),
        };
        let mut compared = match compared_trees {
            Ok((files, versions)) => {
                Comparison { files, new_versions: Some(versions), ..Comparison::default() }
            }
            Err(error) => self.changes_by_name(differences, error.to_string()),
        };
        let unread = self.unread_changes(differences, &gathered);
        let stamp = |change: &FileChange| (change.path.clone(), self.scratch.stamp(&change.path));
        compared.unread = unread.iter().map(stamp).collect();
        let known: BTreeSet<RepoPath> = compared.files.iter().map(|file| file.path.clone()).collect();
        compared.files.extend(unread.into_iter().filter(|change| !known.contains(&change.path)));
        Ok(Comparison { left_out: gathered.left_out, ..compared })
    }

    /// Whether the file was not read for the baseline and its stamp is still the same.
    fn is_stamp_unchanged(&self, path: &RepoPath) -> bool {
        self.captured.unread.get(path).is_some_and(|before| self.scratch.stamp(path) == Some(*before))
    }

    fn gather_changes(&self, differences: &Differences, limits: Limits) -> Result<GatherResult> {
        self.scratch.update_index(WORK_INDEX, &["--force-remove"], &differences.deleted)?;
        let nothing = BTreeSet::new();
        let mut gatherer = Gatherer::new(&self.scratch, limits, &nothing);
        for path in differences.modified.iter().chain(&differences.untracked) {
            let is_known_repository = self.captured.unread.contains_key(path) && path.ends_with(b"/");
            // An unread file has no content to compare with, so it is skipped while its stamp is the same.
            if !is_known_repository && !self.is_stamp_unchanged(path) {
                gatherer.add_if_small(path)?;
            }
        }
        for path in differences.unreachable.iter().filter(|path| !self.captured.unread.contains_key(*path)) {
            gatherer.leave_out(path, LeftOutReason::Unreadable, None);
        }
        for path in self.captured.absent_submodules.iter().filter(|path| is_checked_out(&self.scratch, path))
        {
            gatherer.leave_out(&with_trailing_slash(path), LeftOutReason::Repository, None);
        }
        gatherer.finish()
    }

    fn compare_trees(
        &self,
        before: &str,
        differences: &Differences,
        gathered: &GatherResult,
    ) -> Result<(Vec<FileChange>, Vec<NewVersion>)> {
        if gathered.count == 0 && differences.deleted.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let tree = self.scratch.write_tree(WORK_INDEX)?;
        if tree == before {
            return Ok((Vec::new(), Vec::new()));
        }
        let options = ["-r", "--numstat", "-M", RENAME_LIMIT, "--no-textconv", before, &tree];
        let mut changes = raw_diff(&self.scratch, "none", "diff-tree", &options)?;
        changes.retain(|change| !change.is_submodule);
        let versions = changes.iter().flat_map(RawChange::new_versions).collect();
        let mut files: Vec<FileChange> = changes.into_iter().map(RawChange::into_file_change).collect();
        // The file existed but was not read for the baseline; now it is small enough.
        for file in files.iter_mut().filter(|file| self.captured.unread.contains_key(&file.path)) {
            (file.kind, file.lines) = (ChangeKind::Modified, None);
        }
        Ok((files, versions))
    }

    /// Reports changes without reading files. Files that were only touched are included.
    fn changes_by_name(&self, differences: &Differences, reason: String) -> Comparison {
        let changed = differences.modified.iter().filter(|path| !self.is_stamp_unchanged(path));
        let changed = changed.map(|path| FileChange::unread(ChangeKind::Modified, path));
        let gone = differences.deleted.iter().map(|path| FileChange::unread(ChangeKind::Deleted, path));
        let new = differences.untracked.iter().filter(|path| !path.ends_with(b"/"));
        let new = new.filter(|path| !self.captured.unread.contains_key(*path));
        let new = new.map(|path| FileChange::unread(ChangeKind::Added, path));
        let files = changed.chain(gone).chain(new).collect();
        Comparison { files, names_only: Some(reason), ..Comparison::default() }
    }

    /// Changes of files that were not read for the baseline or are not read now.
    fn unread_changes(&self, differences: &Differences, gathered: &GatherResult) -> Vec<FileChange> {
        let now = gathered.unread.keys().filter(|path| !path.ends_with(b"/"));
        let now = now.map(|path| {
            let is_new = differences.untracked.contains(path) && !self.captured.unread.contains_key(path);
            FileChange::unread(if is_new { ChangeKind::Added } else { ChangeKind::Modified }, path)
        });
        let before = self.captured.unread.iter().filter(|(path, _)| !path.ends_with(b"/"));
        let changed = before.filter_map(|(path, stamp)| match self.scratch.stamp(path) {
            None => Some(FileChange::unread(ChangeKind::Deleted, path)),
            Some(now) if now != *stamp && !gathered.unread.contains_key(path) => {
                Some(FileChange::unread(ChangeKind::Modified, path))
            }
            Some(_) => None,
        });
        now.chain(changed).collect()
    }

    fn current_head(&self) -> Option<Head> {
        let before = &self.scratch.repository;
        let is_same = identity_of(&before.common_dir) == self.identity;
        if is_same && fs::symlink_metadata(before.top_level.join(".git")).is_err() {
            // Only the git directory of a submodule outlives its work tree; from there git does not find it.
            return before.head_on_disk();
        }
        let configuration = self.configuration.as_ref().filter(|_| is_same);
        if let Some(head) = configuration.and_then(|known| before.head_again(known)) {
            return Some(head);
        }
        let now = find_repository(&self.scratch.git, &before.top_level).ok().flatten()?;
        let is_same = now.top_level == before.top_level
            && now.common_dir == before.common_dir
            && identity_of(&now.common_dir) == self.identity;
        is_same.then(|| now.head(&self.scratch.git).ok()).flatten()
    }

    fn is_index_changed(&self) -> Result<bool> {
        if Stamp::at(&self.scratch.repository.index()) == self.index {
            return Ok(false);
        }
        self.scratch.copy_index("after")?;
        Ok(self.scratch.write_tree_unless_conflicts("after")? != *self.trees.index_tree(&self.scratch)?)
    }

    fn commits(&self, after: Option<&Head>, since: i64) -> Result<Commits> {
        let before = self.head.commit.as_deref();
        let after = after.and_then(|head| head.commit.as_deref()).filter(|after| before != Some(*after));
        let Some(after) = after else { return Ok(Commits::default()) };
        let since = format!("--max-age={since}");
        let exclude_head = before.map(|commit| format!("^{commit}"));
        let args = ["rev-list", "--no-commit-header", "--format=%ct %s", &since, after].into_iter();
        let listed = self.scratch.read("none", args.chain(exclude_head.as_deref()))?;
        let newest: Vec<(&str, &str)> =
            listed.lines().take(MAX_SUBJECTS).filter_map(|line| line.split_once(' ')).collect();
        let truncate = |subject: &str| subject.chars().take(MAX_SUBJECT_CHARS).collect();
        Ok(Commits {
            count: listed.lines().count() as u64,
            made_at: newest.iter().filter_map(|(time, _)| time.parse().ok()).collect(),
            subjects: newest.into_iter().map(|(_, subject)| truncate(subject)).collect(),
        })
    }

    /// Stores the state after the task, so that a restore can revert the task's changes only. Returns false
    /// if there is no restore point of this baseline, or if the changed files are known by name only.
    pub fn store_end_state(
        &self,
        compared: &Comparison,
        agent: &AgentChanges,
        time: Duration,
    ) -> Result<bool> {
        let (Some(point), Some(versions)) = (&self.point, &compared.new_versions) else { return Ok(false) };
        let scratch = &self.scratch;
        let survey = survey_work_index(scratch, time)?;
        let index = self.index_after(point, compared)?;
        let record = EndRecord {
            versions,
            unread: &compared.unread,
            survey: &survey,
            index: index.as_ref(),
            head: compared.head_after.clone(),
            agent,
        };
        record.store(scratch, point).map(|()| true)
    }

    /// The index after the task, if it differs from the one in the restore point.
    fn index_after(&self, point: &RestorePoint, compared: &Comparison) -> Result<Option<IndexFile>> {
        if Stamp::at(&self.scratch.repository.index()) == self.index {
            return Ok(None);
        }
        let index = IndexFile::read(&self.scratch)?;
        // A tree represents both completely, and the trees are equal.
        let is_as_before = point.index == StoredIndex::Tree && !compared.index_changed && !index.is_special();
        Ok((!is_as_before).then_some(index))
    }
}
