//! The target of a restore that reverts only what a task changed.
//!
//! For every file, directory, permission and index entry the states before and after the task and the present
//! one are compared (`three_way`). Later changes stay. Where they overlap with changes of the task, contents
//! are merged; what cannot be merged is listed, and the restore is refused. Changes that nothing attributes
//! to the agent stay, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::target::{
    HeadTarget, IndexEdits, IndexTarget, KeepReason, Overlap, OverlapPart, Target, Untouchable,
};
use crate::capture::{Directory, Survey, TreeState};
use crate::diff::{ContentMerge, Decision, FileDecision, decide, decide_file, merge_contents, resolve_mode};
use crate::error::Result;
use crate::files::{Stamp, file_mode};
use crate::index::{IndexEntry, IndexFile};
use crate::records::{FileVersion, RepoPath, TreeFiles, ancestors, display_path, is_regular, on_disk};
use crate::repository::Head;
use crate::restore_point::{EndState, RestorePoint, SavedState};
use crate::scratch::Scratch;

pub(crate) struct ThreeStates<'a> {
    pub(crate) before: &'a TreeFiles,
    pub(crate) saved: &'a SavedState,
    pub(crate) end: &'a EndState,
    pub(crate) now: &'a TreeFiles,
    pub(crate) present: &'a TreeState,
    pub(crate) untouchable: &'a Untouchable,
    pub(crate) top_level: &'a Path,
    /// Why a file stays that changed only later.
    pub(crate) later: KeepReason,
}

pub(crate) fn task_changes(
    scratch: &Scratch,
    point: &RestorePoint,
    states: &ThreeStates<'_>,
    head: &Head,
) -> Result<Target> {
    let mut files = FileTargets { files: states.now.clone(), ..FileTargets::default() };
    let paths: BTreeSet<&RepoPath> = states
        .before
        .keys()
        .chain(states.now.keys())
        .chain(states.end.changed.keys())
        .chain(states.end.unread.keys())
        .collect();
    for path in paths {
        files.add(states, path);
    }
    let mut index = IndexTargets::default();
    if let Some(after) = states.end.index.as_ref().filter(|_| states.end.agent.ran_commands) {
        index.compare(states, after);
    }
    let merges = files.merges.values().chain(index.merges.values().map(|(merge, _)| merge));
    let merged = merge_contents(scratch, &merges.cloned().collect())?;
    let mut merged_files = Vec::new();
    for (path, merge) in std::mem::take(&mut files.merges) {
        match merged.get(&merge) {
            Some(id) => {
                merged_files.push(display_path(&path));
                files.files.insert(path, (merge.mode, id.clone()));
            }
            None => files.overlap(&path, OverlapPart::File),
        }
    }
    for (path, (merge, entry)) in std::mem::take(&mut index.merges) {
        match merged.get(&merge).and_then(|id| entry.with_content(&merge.mode, id)) {
            Some(entry) => index.replace(&path, [&entry]),
            None => index.overlap(&path),
        }
    }
    let mut overlaps = files.overlaps;
    let directories = directory_targets(states, &files.files, &mut overlaps);
    let index_target = index.finish(states.saved, &mut overlaps);
    Ok(Target {
        survey: Survey { directories, other_modes: files.modes, ..Survey::default() },
        index: index_target,
        keep: files.keep,
        merged: merged_files,
        overlaps: overlaps.into_iter().collect(),
        head: head_target(point, states.end, head),
        files: files.files,
    })
}

fn head_target(point: &RestorePoint, end: &EndState, now: &Head) -> HeadTarget {
    let before = point.head();
    // After the task there was no repository, or another one.
    let Some(after) = &end.head else { return HeadTarget::Overlaps };
    match decide(&before, after, now) {
        Decision::Same | Decision::Later => HeadTarget::Unchanged,
        Decision::Revert | Decision::Overlap if !end.agent.moved_head => HeadTarget::NotByAgent,
        Decision::Revert => HeadTarget::Moves,
        Decision::Overlap => HeadTarget::Overlaps,
    }
}

#[derive(Default)]
struct FileTargets {
    files: TreeFiles,
    /// Permission bits of files that are written or whose permissions change.
    modes: BTreeMap<RepoPath, u32>,
    merges: BTreeMap<RepoPath, ContentMerge>,
    keep: Vec<(String, KeepReason)>,
    overlaps: BTreeSet<Overlap>,
}

impl FileTargets {
    fn add(&mut self, states: &ThreeStates<'_>, path: &RepoPath) {
        let (before, now) = (states.before.get(path), states.now.get(path));
        let after = states.end.changed.get(path).map_or(before, Option::as_ref);
        let decision = match states.end.unread.get(path) {
            Some(_) if before.is_none() && now.is_none() => {
                // It is not known whether the file is as before: it was not captured then, or cannot be
                // captured now.
                let reason = states.untouchable.reason(path, [None, None]);
                return self.keep.extend(reason.map(|reason| (display_path(path), reason)));
            }
            Some(_) if before == now => FileDecision::Same,
            // The content after the task is unknown, but the stamp shows whether the file changed since.
            Some(stamp) if Stamp::at(&on_disk(states.top_level, path)) == *stamp => FileDecision::Revert,
            Some(_) => FileDecision::Overlap,
            None => decide_file(before, after, now),
        };
        let keep = match decision {
            FileDecision::Same => return self.add_mode(states, path, [before, after, now]),
            FileDecision::Later => {
                // A file that was left out before may have changed at any time.
                Some(states.untouchable.reason(path, [before, now]).unwrap_or(states.later))
            }
            _ => states.untouchable.reason(path, [before, now]).or_else(|| {
                let is_unattributed = states.end.agent.unattributed.contains(path);
                is_unattributed.then_some(KeepReason::NotByAgent)
            }),
        };
        if let Some(reason) = keep {
            self.keep.push((display_path(path), reason));
            if decision == FileDecision::Later {
                self.add_mode(states, path, [before, after, now]);
            }
            return;
        }
        match decision {
            FileDecision::Revert => match before {
                Some(version) => drop(self.files.insert(path.clone(), version.clone())),
                None => drop(self.files.remove(path)),
            },
            FileDecision::Combine(version) => drop(self.files.insert(path.clone(), version)),
            FileDecision::Merge(merge) => drop(self.merges.insert(path.clone(), merge)),
            FileDecision::Overlap => return self.overlap(path, OverlapPart::File),
            FileDecision::Same | FileDecision::Later => {}
        }
        if before.is_some_and(is_regular) {
            let now_mode = file_mode(states.top_level, path);
            let after_mode =
                after.filter(|after| is_regular(after)).and_then(|_| states.end.survey.file_mode(path));
            match resolve_mode(states.saved.survey.file_mode(path), after_mode, now_mode) {
                Some(mode) => self.modes.extend(mode.map(|mode| (path.clone(), mode))),
                None => self.overlap(path, OverlapPart::Permissions),
            }
        }
    }

    /// Reverts permissions that the task changed, of a file whose content stays.
    fn add_mode(&mut self, states: &ThreeStates<'_>, path: &RepoPath, versions: [Option<&FileVersion>; 3]) {
        let is_attributed = states.end.agent.ran_commands && !states.end.agent.unattributed.contains(path);
        if !is_attributed || !versions.into_iter().all(|version| version.is_some_and(is_regular)) {
            return;
        }
        let before = states.saved.survey.file_mode(path);
        let (after, now) = (states.end.survey.file_mode(path), file_mode(states.top_level, path));
        let (Some(before), Some(after), Some(now)) = (before, after, now) else { return };
        match decide(&before, &after, &now) {
            Decision::Revert => drop(self.modes.insert(path.clone(), before)),
            Decision::Overlap => self.overlap(path, OverlapPart::Permissions),
            Decision::Same | Decision::Later => {}
        }
    }

    fn overlap(&mut self, path: &RepoPath, part: OverlapPart) {
        self.overlaps.insert(Overlap::new(path, part));
    }
}

fn directory_targets(
    states: &ThreeStates<'_>,
    files: &TreeFiles,
    overlaps: &mut BTreeSet<Overlap>,
) -> BTreeMap<RepoPath, Directory> {
    let (before, after) = (&states.saved.survey, &states.end.survey);
    let present = &states.present.survey.directories;
    let mut directories = present.clone();
    let changed: BTreeSet<&[u8]> = states.end.changed.keys().flat_map(|path| ancestors(path)).collect();
    let is_attributed = |path: &RepoPath| states.end.agent.ran_commands || changed.contains(path.as_slice());
    // Directories of restored files that do not exist now.
    let written = files.iter().filter(|(path, version)| states.now.get(*path) != Some(*version));
    for above in written.flat_map(|(path, _)| ancestors(path)) {
        if let (Some(old), false) = (before.directories.get(above), directories.contains_key(above)) {
            directories.insert(above.to_vec(), *old);
        }
    }
    for (path, old) in before.directories.iter().filter(|(path, _)| is_attributed(path)) {
        match (after.directories.get(path), present.get(path)) {
            (Some(end), Some(now)) if states.end.agent.ran_commands => {
                match decide(&old.mode, &end.mode, &now.mode) {
                    Decision::Revert => drop(directories.insert(path.clone(), *old)),
                    Decision::Overlap => {
                        overlaps.insert(Overlap::new(path, OverlapPart::Permissions));
                    }
                    Decision::Same | Decision::Later => {}
                }
            }
            // Not if the directory above was removed later.
            (None, None)
                if !after.is_unrecorded(path)
                    && ancestors(path).last().is_none_or(|above| directories.contains_key(above)) =>
            {
                directories.insert(path.clone(), *old);
            }
            _ => {}
        }
    }
    remove_new_directories(states, &mut directories, is_attributed);
    directories
}

/// Removes directories that the task created, unless one that stays is below.
fn remove_new_directories(
    states: &ThreeStates<'_>,
    directories: &mut BTreeMap<RepoPath, Directory>,
    is_attributed: impl Fn(&RepoPath) -> bool,
) {
    let before = &states.saved.survey;
    let is_new = |path: &RepoPath| {
        !before.directories.contains_key(path)
            && states.end.survey.directories.contains_key(path)
            && !before.is_unrecorded(path)
    };
    let new: Vec<RepoPath> =
        directories.keys().rev().filter(|path| is_new(path) && is_attributed(path)).cloned().collect();
    // The innermost come first.
    for path in new {
        let below = [path.as_slice(), b"/"].concat();
        let is_needed =
            directories.range(below.clone()..).next().is_some_and(|(other, _)| other.starts_with(&below));
        if !is_needed {
            directories.remove(&path);
        }
    }
}

/// The index entries after the restore that differ from the present ones.
#[derive(Default)]
struct IndexTargets {
    edits: IndexEdits,
    merges: BTreeMap<RepoPath, (ContentMerge, IndexEntry)>,
    overlaps: BTreeSet<RepoPath>,
    /// Entries were changed after the task.
    has_later_changes: bool,
}

impl IndexTargets {
    fn compare(&mut self, states: &ThreeStates<'_>, after: &IndexFile) {
        let (before, after) = (by_path(&states.saved.index), by_path(after));
        let now = by_path(&states.present.index);
        let paths: BTreeSet<&RepoPath> =
            before.keys().chain(after.keys()).chain(now.keys()).copied().collect();
        for path in paths {
            let entries =
                |index: &BTreeMap<&RepoPath, Vec<IndexEntry>>| index.get(path).cloned().unwrap_or_default();
            let (before, after, now) = (entries(&before), entries(&after), entries(&now));
            let is_attributed = !states.end.agent.unattributed.contains(path);
            match decide(&before, &after, &now) {
                Decision::Same => {}
                Decision::Revert if is_attributed => self.replace(path, &before),
                Decision::Overlap if is_attributed => self.merge(path, &before, &after, &now),
                Decision::Later | Decision::Revert | Decision::Overlap => self.has_later_changes = true,
            }
        }
    }

    fn replace<'a>(&mut self, path: &RepoPath, entries: impl IntoIterator<Item = &'a IndexEntry>) {
        self.edits.paths.insert(path.clone());
        self.edits.entries.extend(entries.into_iter().cloned());
    }

    fn merge(&mut self, path: &RepoPath, before: &[IndexEntry], after: &[IndexEntry], now: &[IndexEntry]) {
        self.has_later_changes = true;
        let version = |entries: &[IndexEntry]| match entries {
            [entry] if !entry.is_special() => Some(entry.version()),
            _ => None,
        };
        let [before, after, merged] = [before, after, now].map(version);
        match (decide_file(before.as_ref(), after.as_ref(), merged.as_ref()), now) {
            (FileDecision::Combine((mode, id)), [entry]) => match entry.with_content(&mode, &id) {
                Some(entry) => self.replace(path, [&entry]),
                None => self.overlap(path),
            },
            (FileDecision::Merge(merge), [entry]) => {
                self.merges.insert(path.clone(), (merge, entry.clone()));
            }
            _ => self.overlap(path),
        }
    }

    fn overlap(&mut self, path: &RepoPath) {
        self.overlaps.insert(path.clone());
    }

    fn finish(mut self, saved: &SavedState, overlaps: &mut BTreeSet<Overlap>) -> IndexTarget {
        if self.edits.paths.is_empty() && self.overlaps.is_empty() {
            return IndexTarget::Unchanged;
        }
        if !self.has_later_changes {
            // Exact, with every flag.
            return IndexTarget::Saved(saved.index.clone());
        }
        // git has no command that writes these entries alone.
        let unwritable =
            self.edits.entries.iter().filter(|entry| entry.intent_to_add || entry.is_directory());
        let unwritable: Vec<RepoPath> = unwritable.map(|entry| entry.path.clone()).collect();
        self.overlaps.extend(unwritable);
        overlaps.extend(self.overlaps.iter().map(|path| Overlap::new(path, OverlapPart::Index)));
        IndexTarget::Edited(self.edits)
    }
}

fn by_path(index: &IndexFile) -> BTreeMap<&RepoPath, Vec<IndexEntry>> {
    let mut paths: BTreeMap<&RepoPath, Vec<IndexEntry>> = BTreeMap::new();
    for entry in &index.entries {
        paths.entry(&entry.path).or_default().push(entry.clone());
    }
    paths
}
