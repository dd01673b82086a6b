//! Determines what a diff changes in a work tree, and every conflict, before anything changes.
//!
//! The versions of each file are found and merged in a scratch git directory. Adds nothing to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::decide::{Change, Outcome, Pending, Situation};
use super::paths::TouchedPaths;
use super::report::{AppliedFile, ApplyError, ApplyReport, Conflict, ConflictReason};
use super::theirs::{Applied, apply_sections, conflicting_hunks, is_contained};
use super::versions::{Ours, candidates, checked_out_with_crlf, is_lf_text, to_crlf};
use crate::capture::{LeftOut, TreeState, capture_present};
use crate::diff::{ChangeKind, ContentMerge, FileDiff, join_replacements, merge_contents, split_files};
use crate::error::{GitError, Result};
use crate::files::Stamps;
use crate::records::{FileVersion, RepoPath, TreeFiles, display_path, is_regular, records};
use crate::repository::{Head, Opened, Store, open};
use crate::run::Git;
use crate::scratch::Scratch;
use crate::tree_writer::TreeWriter;

#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The work tree, or a directory in it. The paths of the diff are relative to the top of the work tree.
    pub work_tree: &'a Path,
    pub diff: &'a [u8],
    /// The id of the commit that the diff was made against, if the diff does not name the original versions.
    pub base_commit: Option<&'a str>,
    /// The store of the worktree that the diff comes from: it has original versions that the repository does
    /// not have.
    pub store: Option<&'a Path>,
}

#[derive(Debug)]
pub struct PreparedDiff {
    pub report: ApplyReport,
    pub(crate) scratch: Scratch,
    pub(crate) present: TreeState,
    pub(crate) head: Head,
    /// The new version of each file, byte for byte; `None` if it is removed.
    pub(crate) changes: BTreeMap<RepoPath, Option<FileVersion>>,
    /// What the touched paths were when they were read.
    pub(crate) stamps: Stamps,
    /// Set with the restore point.
    pub(crate) writer: Option<TreeWriter>,
}

impl PreparedDiff {
    pub fn top_level(&self) -> &Path {
        self.scratch.top()
    }
}

/// Checks what a diff would change. `temp_dir` is a directory of ours for temporary files.
pub fn prepare_diff(
    git: &Git,
    request: ApplyRequest<'_>,
    temp_dir: &Path,
) -> Result<PreparedDiff, ApplyError> {
    if request.diff.trim_ascii().is_empty() {
        return Err(ApplyError::EmptyDiff);
    }
    let Opened { repository, head, config, .. } = open(git, request.work_tree)?
        .ok_or_else(|| ApplyError::NoWorkTree { dir: request.work_tree.to_owned() })?;
    repository.refuse_if_locked()?;
    let scratch = Scratch::with_config(git, &repository, config, temp_dir)?;
    if let Some(store) = request.store {
        scratch.read_from(&Store::at(store))?;
    }
    let sections = split(request.diff, list_paths(&scratch, request.diff)?)?;
    let touched = TouchedPaths::of(&repository.top_level, &sections);
    let mut conflicts: Vec<Conflict> = sections.iter().filter_map(|section| touched.check(section)).collect();
    let valid: Vec<&FileDiff<'_>> =
        sections.iter().filter(|section| touched.check(section).is_none()).collect();
    let paths: BTreeSet<RepoPath> = valid.iter().flat_map(|section| section.paths()).cloned().collect();
    let stamps = paths.iter().map(|path| (path.clone(), scratch.stamp(path))).collect();
    let (present, now) = capture_present(&scratch, &paths)?;
    let valid = without_unreadable(valid, &present, &mut conflicts);
    let merger = Merger { scratch: &scratch, touched: &touched, now: &now };
    let merged = merger.merge(&valid, request.base_commit, conflicts)?;
    let (mut report, changes) = (merged.report, merged.changes);
    explain_existing_files(&scratch, &present, &mut report.conflicts)?;
    report.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(PreparedDiff { report, scratch, present, head, changes, stamps, writer: None })
}

/// Lets git parse the diff and list one path per file.
fn list_paths(scratch: &Scratch, diff: &[u8]) -> Result<Vec<RepoPath>, ApplyError> {
    let listed = match scratch.run("none", ["apply", "--numstat", "-z", "--whitespace=nowarn", "-"], diff) {
        Err(GitError::Failed { stderr, .. }) if stderr.contains("No valid patches") => {
            return Err(ApplyError::NotADiff);
        }
        Err(GitError::Failed { stderr, .. }) => {
            let problem = stderr.trim_start_matches("error: ").to_owned();
            return Err(ApplyError::MalformedDiff { problem });
        }
        listed => listed?,
    };
    // Lines added TAB lines removed TAB path.
    let path = |record: &[u8]| Some(record.splitn(3, |byte| *byte == b'\t').nth(2)?.to_vec());
    let paths: Option<Vec<RepoPath>> = records(&listed).map(path).collect();
    Ok(paths.ok_or(GitError::unexpected("apply"))?)
}

/// Splits a diff. `paths` are the paths that git lists for it, one per file.
fn split(diff: &[u8], paths: Vec<RepoPath>) -> Result<Vec<FileDiff<'_>>, ApplyError> {
    let mut files = split_files(diff);
    if files.len() != paths.len() {
        let problem = format!("git finds {} files in it, and it has headers of {}", paths.len(), files.len());
        return Err(ApplyError::MalformedDiff { problem });
    }
    for (file, path) in files.iter_mut().zip(paths) {
        file.path = path;
    }
    Ok(join_replacements(diff, files))
}

/// Removes the sections of files whose present content could not be read.
fn without_unreadable<'a>(
    sections: Vec<&'a FileDiff<'a>>,
    present: &TreeState,
    conflicts: &mut Vec<Conflict>,
) -> Vec<&'a FileDiff<'a>> {
    let left_out = LeftOut::paths(&present.captured.files.left_out);
    let unreadable = |section: &FileDiff<'_>| {
        section.paths().find(|path| left_out.contains(display_path(path).as_str())).cloned()
    };
    let (unread, readable): (Vec<&FileDiff<'_>>, Vec<&FileDiff<'_>>) =
        sections.into_iter().partition(|section| unreadable(section).is_some());
    let paths = unread.into_iter().filter_map(unreadable);
    conflicts.extend(paths.map(|path| Conflict::new(&path, ConflictReason::Unreadable)));
    readable
}

/// Says of files in the way whether git tracks or ignores them.
fn explain_existing_files(scratch: &Scratch, present: &TreeState, conflicts: &mut [Conflict]) -> Result<()> {
    let tracked: BTreeSet<&RepoPath> = present.index.entries.iter().map(|entry| &entry.path).collect();
    let mut untracked: Vec<&mut Conflict> = conflicts
        .iter_mut()
        .filter(|conflict| {
            conflict.reason == ConflictReason::AlreadyExists && !tracked.contains(&conflict.path)
        })
        .collect();
    if untracked.is_empty() {
        return Ok(());
    }
    let paths: Vec<&[u8]> = untracked.iter().map(|conflict| conflict.path.as_slice()).collect();
    let ignored = scratch.ignored_in("none", scratch.top(), &paths)?;
    for conflict in &mut untracked {
        let is_ignored = ignored.contains(&conflict.path);
        conflict.reason = if is_ignored { ConflictReason::Ignored } else { ConflictReason::Untracked };
    }
    Ok(())
}

struct Merger<'a> {
    scratch: &'a Scratch,
    touched: &'a TouchedPaths<'a>,
    /// The files on disk, byte for byte.
    now: &'a TreeFiles,
}

#[derive(Default)]
struct Merged {
    report: ApplyReport,
    changes: BTreeMap<RepoPath, Option<FileVersion>>,
}

impl Merger<'_> {
    fn merge(
        &self,
        sections: &[&FileDiff<'_>],
        base_commit: Option<&str>,
        conflicts: Vec<Conflict>,
    ) -> Result<Merged> {
        let mut ours = Ours::read(self.scratch, sections, self.now)?;
        let candidates = candidates(self.scratch, sections, base_commit, &ours)?;
        let mut applied = apply_sections(self.scratch, sections, &candidates)?;
        if !self.scratch.uses_executable_bits {
            ignore_executable_bits(sections, &mut applied, &mut ours);
        }
        let mut outcomes = Vec::new();
        for (section, applied) in sections.iter().zip(&applied) {
            outcomes.push(match applied {
                Some(applied) if self.is_ambiguous(section, applied, &ours)? => {
                    Err(Conflict::new(&section.path, ConflictReason::Ambiguous))
                }
                Some(applied) => Situation { section, applied, ours: &ours, touched: self.touched }.decide(),
                None => self.not_applicable(section, &ours)?.map(Pending::Done),
            });
        }
        let mut outcomes = self.finish(outcomes)?;
        for ((section, applied), outcome) in sections.iter().zip(&applied).zip(&mut outcomes) {
            self.name_hunks(section, applied.as_ref(), &ours, outcome)?;
        }
        let outcomes = sections.iter().copied().zip(outcomes).collect();
        self.collect(outcomes, &ours, conflicts)
    }

    /// Adds the hunks that are in conflict to a conflict of contents.
    fn name_hunks(
        &self,
        section: &FileDiff<'_>,
        applied: Option<&Applied>,
        ours: &Ours,
        outcome: &mut Result<Outcome, Conflict>,
    ) -> Result<()> {
        let Err(conflict) = outcome else { return Ok(()) };
        if conflict.reason != ConflictReason::DoesNotMatch || section.hunks.is_empty() {
            return Ok(());
        }
        let base = applied.and_then(|applied| applied.base.as_ref()).map(|base| &base.version);
        if let Some(now) = ours.get(&conflict.path).filter(|now| is_regular(now)) {
            conflict.hunks = conflicting_hunks(self.scratch, section, base, &conflict.path, now)?;
        }
        Ok(())
    }

    /// Whether the present file, taken as the base for lack of the original, may contain the change already.
    fn is_ambiguous(&self, section: &FileDiff<'_>, applied: &Applied, ours: &Ours) -> Result<bool> {
        let is_known = applied.base.as_ref().is_none_or(|base| base.is_known);
        let Some(version) =
            ours.get(&section.path).filter(|_| !is_known && section.kind == ChangeKind::Modified)
        else {
            return Ok(false);
        };
        Ok(!section.hunks.is_empty() && is_contained(self.scratch, section, &section.path, version)?)
    }

    /// Decides about a part that matches no version of its file.
    fn not_applicable(&self, section: &FileDiff<'_>, ours: &Ours) -> Result<Result<Outcome, Conflict>> {
        let (path, source) = (&section.path, section.source().unwrap_or(&section.path));
        let (at_path, at_source) = (ours.get(path), ours.get(source));
        let is_moved_away = matches!(section.kind, ChangeKind::Renamed { .. }) && at_source.is_none();
        let reason = match (&section.kind, at_path) {
            (ChangeKind::Deleted, None) => return Ok(Ok(Outcome::Already)),
            (ChangeKind::Deleted, Some(_)) => ConflictReason::ChangedAndDeleted,
            (ChangeKind::Modified | ChangeKind::Renamed { .. }, Some(version))
                if (section.kind == ChangeKind::Modified || is_moved_away)
                    && is_contained(self.scratch, section, path, version)? =>
            {
                return Ok(Ok(Outcome::Already));
            }
            _ if at_source.is_none() && section.source().is_some() => ConflictReason::Missing,
            _ => ConflictReason::DoesNotMatch,
        };
        Ok(Err(Conflict::new(source, reason)))
    }

    fn finish(&self, pending: Vec<Result<Pending<'_>, Conflict>>) -> Result<Vec<Result<Outcome, Conflict>>> {
        let merge = |pending: &Result<Pending<'_>, Conflict>| match pending {
            Ok(Pending::Merge(_, merge)) => Some(merge.clone()),
            _ => None,
        };
        let merges: BTreeSet<ContentMerge> = pending.iter().filter_map(merge).collect();
        let merged = merge_contents(self.scratch, &merges)?;
        let contained = self.contained(&merges)?;
        let mut outcomes = Vec::new();
        for pending in pending {
            outcomes.push(match pending {
                Err(conflict) => Err(conflict),
                Ok(Pending::Done(outcome)) => Ok(outcome),
                Ok(Pending::Merge(situation, merge)) => {
                    let is_contained = contained.contains(&merge);
                    self.resolve(&situation, merged.get(&merge), is_contained, merge)?
                }
            });
        }
        Ok(outcomes)
    }

    /// Decides about a file whose contents were merged, and whose present version may contain the change.
    fn resolve(
        &self,
        situation: &Situation<'_>,
        merged: Option<&String>,
        is_present: bool,
        merge: ContentMerge,
    ) -> Result<Result<Outcome, Conflict>> {
        let (section, path) = (situation.section, situation.merged_path());
        let is_in_place = *path == section.path;
        let present = (merge.mode.clone(), merge.now.clone());
        let reason = match merged {
            Some(id) if !is_present || !is_in_place || *id == merge.now => {
                return Ok(situation.outcome(Some(((merge.mode, id.clone()), true))));
            }
            None if !is_present => ConflictReason::DoesNotMatch,
            None if is_in_place && is_contained(self.scratch, section, path, &present)? => {
                return Ok(situation.outcome(Some((present, true))));
            }
            _ => ConflictReason::Ambiguous,
        };
        Ok(Err(Conflict::new(path, reason)))
    }

    /// Those of the merges whose present version contains the change already: without the change it is
    /// another version, which with the change is the present one. With repeated lines the merge itself does
    /// not always recognise this.
    fn contained(&self, merges: &BTreeSet<ContentMerge>) -> Result<BTreeSet<ContentMerge>> {
        let without = merge_contents(self.scratch, &merges.iter().map(ContentMerge::reversed).collect())?;
        let mut repeated = BTreeMap::new();
        for merge in merges {
            if let Some(id) = without.get(&merge.reversed()).filter(|id| **id != merge.now) {
                repeated.insert(ContentMerge { now: id.clone(), ..merge.clone() }, merge);
            }
        }
        let with = merge_contents(self.scratch, &repeated.keys().cloned().collect())?;
        let is_present =
            |(again, merge): &(&ContentMerge, &&ContentMerge)| with.get(*again) == Some(&merge.now);
        Ok(repeated.iter().filter(is_present).map(|(_, merge)| (*merge).clone()).collect())
    }

    /// Collects the report and the new versions, with the line endings that the files have on disk.
    fn collect(
        &self,
        outcomes: Vec<(&FileDiff<'_>, Result<Outcome, Conflict>)>,
        ours: &Ours,
        conflicts: Vec<Conflict>,
    ) -> Result<Merged> {
        let mut merged =
            Merged { report: ApplyReport { conflicts, ..ApplyReport::default() }, ..Merged::default() };
        let changes = outcomes.iter().filter_map(|(_, outcome)| match outcome {
            Ok(Outcome::Change(change)) => change.remove.clone(),
            _ => None,
        });
        let removed: BTreeSet<RepoPath> = changes.collect();
        let created =
            outcomes.iter().filter(|(section, outcome)| outcome.is_ok() && section.kind == ChangeKind::Added);
        let created: Vec<&RepoPath> = created.map(|(section, _)| &section.path).collect();
        let created_with_crlf = checked_out_with_crlf(self.scratch, &created);
        let mut with_crlf = BTreeSet::new();
        for (section, outcome) in outcomes {
            match outcome {
                Err(conflict) => merged.report.conflicts.push(conflict),
                Ok(Outcome::Already) => merged.report.already_applied.push(section.path.clone()),
                Ok(Outcome::Change(change)) => {
                    let path = &section.path;
                    if change.needs_free_path && self.now.contains_key(path) && !removed.contains(path) {
                        merged.report.conflicts.push(Conflict::new(path, ConflictReason::AlreadyExists));
                        continue;
                    }
                    let is_from_crlf = |path: &RepoPath| ours.with_crlf.contains(path);
                    let has_crlf = match section.kind {
                        ChangeKind::Added => created_with_crlf.contains(path),
                        _ => section.source().is_some_and(is_from_crlf) || is_from_crlf(path),
                    };
                    if has_crlf {
                        with_crlf.insert(path.clone());
                    }
                    merged.add(section, change);
                }
            }
        }
        if merged.report.conflicts.is_empty() {
            self.restore_crlf(&mut merged.changes, &with_crlf)?;
        } else {
            merged.changes.clear();
        }
        Ok(merged)
    }

    fn restore_crlf(
        &self,
        changes: &mut BTreeMap<RepoPath, Option<FileVersion>>,
        with_crlf: &BTreeSet<RepoPath>,
    ) -> Result<()> {
        let versions = changes.iter_mut().filter(|(path, _)| with_crlf.contains(*path));
        let versions: Vec<&mut FileVersion> = versions.filter_map(|(_, version)| version.as_mut()).collect();
        let contents = self.scratch.read_small_blobs(&versions.iter().map(|(_, id)| id).collect())?;
        let convert = |(mode, id): &&mut FileVersion| {
            let content =
                contents.get(id).filter(|content| mode.starts_with("100") && is_lf_text(content))?;
            Some(to_crlf(content))
        };
        let converted: Vec<Option<Vec<u8>>> = versions.iter().map(convert).collect();
        let mut ids = self.scratch.write_blobs(converted.iter().flatten().map(Vec::as_slice))?.into_iter();
        for (version, _) in versions.into_iter().zip(&converted).filter(|(_, content)| content.is_some()) {
            version.1 = ids.next().ok_or(GitError::unexpected("fast-import"))?;
        }
        Ok(())
    }
}

impl Merged {
    fn add(&mut self, section: &FileDiff<'_>, change: Change) {
        self.report.files.push(AppliedFile {
            path: section.path.clone(),
            change: section.kind.clone(),
            merged: change.merged,
        });
        if let Some(path) = change.remove {
            self.changes.entry(path).or_insert(None);
        }
        if let Some((path, version)) = change.write {
            self.changes.insert(path, Some(version));
        }
    }
}

/// Without executable bits on disk, a change of them cannot be applied to the work tree and is ignored.
fn ignore_executable_bits(sections: &[&FileDiff<'_>], applied: &mut [Option<Applied>], ours: &mut Ours) {
    for (section, applied) in sections.iter().zip(applied) {
        let Some(Applied { base: Some(base), theirs: Some((mode, _)) }) = applied else { continue };
        if mode.starts_with("100") && base.version.0.starts_with("100") {
            base.version.0.clone_from(mode);
            section.paths().for_each(|path| ours.set_mode(path, mode));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_in_which_git_finds_other_files_is_refused() {
        let diff = b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n--- a/plain\n+++ b/plain\n@@ -0,0 +1 @@\n+x\n";
        let paths = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        assert_eq!(split(diff, paths(&["x", "plain"])).unwrap()[0].path, b"x");
        assert!(matches!(split(diff, paths(&["a"])), Err(ApplyError::MalformedDiff { .. })));
    }
}
