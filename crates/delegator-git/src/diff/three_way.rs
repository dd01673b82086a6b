//! Decides, per value, what a restore of a task's changes does, and merges contents.
//!
//! Three states are known: before the task, after the task, and now. What only the task changed is reverted.
//! What only changed later is the user's work and stays. Where both changed, only the content of files can be
//! merged: `git merge-file` applies the change from `after` to `before` to the present version. A merge with
//! conflicts, of binary or of large files has no result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;

use crate::error::{GitError, Result, unless_failed};
use crate::records::{FileVersion, is_regular};
use crate::scratch::Scratch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is as it was before the task.
    Same,
    /// Only changed after the task: it stays.
    Later,
    /// Only the task changed it: it is reverted.
    Revert,
    /// The task changed it, and it was changed again.
    Overlap,
}

pub(crate) fn decide<T: PartialEq + ?Sized>(before: &T, after: &T, now: &T) -> Decision {
    if now == before {
        Decision::Same
    } else if after == before {
        Decision::Later
    } else if after == now {
        Decision::Revert
    } else {
        Decision::Overlap
    }
}

/// The value after the restore; `None` if the changes overlap.
pub(crate) fn resolve<T: PartialEq>(before: T, after: &T, now: T) -> Option<T> {
    match decide(&before, after, &now) {
        Decision::Same | Decision::Later => Some(now),
        Decision::Revert => Some(before),
        Decision::Overlap => None,
    }
}

/// The three versions of a regular file whose contents all differ, and its mode after the restore.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ContentMerge {
    pub(crate) mode: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) now: String,
}

impl ContentMerge {
    /// `versions` are those before, after and now.
    pub(crate) fn new(mode: String, versions: [&String; 3]) -> ContentMerge {
        let [before, after, now] = versions.map(String::clone);
        ContentMerge { mode, before, after, now }
    }

    /// The merge in the opposite direction.
    pub(crate) fn reversed(&self) -> ContentMerge {
        ContentMerge { before: self.after.clone(), after: self.before.clone(), ..self.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileDecision {
    Same,
    Later,
    Revert,
    /// Mode and content were changed by one side each.
    Combine(FileVersion),
    Merge(ContentMerge),
    Overlap,
}

pub(crate) fn decide_file(
    before: Option<&FileVersion>,
    after: Option<&FileVersion>,
    now: Option<&FileVersion>,
) -> FileDecision {
    match decide(&before, &after, &now) {
        Decision::Same => FileDecision::Same,
        Decision::Later => FileDecision::Later,
        Decision::Revert => FileDecision::Revert,
        Decision::Overlap => match (before, after, now) {
            (Some(before), Some(after), Some(now)) => combine(before, after, now),
            _ => FileDecision::Overlap,
        },
    }
}

fn combine(before: &FileVersion, after: &FileVersion, now: &FileVersion) -> FileDecision {
    if ![before, after, now].into_iter().all(is_regular) {
        return FileDecision::Overlap;
    }
    let Some(mode) = resolve(before.0.clone(), &after.0, now.0.clone()) else { return FileDecision::Overlap };
    match resolve(before.1.clone(), &after.1, now.1.clone()) {
        Some(id) => FileDecision::Combine((mode, id)),
        None => FileDecision::Merge(ContentMerge::new(mode, [&before.1, &after.1, &now.1])),
    }
}

/// The permission bits of a file that is restored or rewritten: those before the task, unless they were
/// changed later or are unknown. `None` if both changed them.
pub(crate) fn resolve_mode(before: Option<u32>, after: Option<u32>, now: Option<u32>) -> Option<Option<u32>> {
    match (before, after, now) {
        (Some(before), Some(after), Some(now)) => resolve(before, &after, now).map(Some),
        (before, _, None) => Some(before),
        (_, _, now) => Some(now),
    }
}

type Merged<'a> = (&'a ContentMerge, Vec<u8>);

/// The object ids of the merged contents; merges without a result are missing.
pub(crate) fn merge_contents(
    scratch: &Scratch,
    merges: &BTreeSet<ContentMerge>,
) -> Result<BTreeMap<ContentMerge, String>> {
    if merges.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = merges.iter().flat_map(|merge| [&merge.before, &merge.after, &merge.now]);
    let contents = scratch.read_small_blobs(&ids.collect())?;
    let merges: Vec<&ContentMerge> = merges.iter().collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let parts: Vec<_> = merges.chunks(merges.len().div_ceil(threads)).collect();
    let merged: Vec<Vec<Merged<'_>>> = std::thread::scope(|scope| {
        let start = |(number, part)| {
            let (contents, folder) = (&contents, scratch.path(&format!("merge-{number}")));
            scope.spawn(move || merge_each(scratch, part, contents, &folder))
        };
        let running: Vec<_> = parts.into_iter().enumerate().map(start).collect();
        let finished =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        finished.collect::<Result<Vec<_>>>()
    })?;
    let merged: Vec<Merged<'_>> = merged.into_iter().flatten().collect();
    let ids = scratch.write_blobs(merged.iter().map(|(_, content)| content.as_slice()))?;
    Ok(merged.into_iter().map(|(merge, _)| merge.clone()).zip(ids).collect())
}

/// Merges one after the other; `folder` is for the versions of a file.
fn merge_each<'a>(
    scratch: &Scratch,
    merges: &[&'a ContentMerge],
    contents: &BTreeMap<String, Vec<u8>>,
    folder: &Path,
) -> Result<Vec<Merged<'a>>> {
    fs::create_dir_all(folder).map_err(GitError::io("create", folder))?;
    let mut merged = Vec::new();
    for merge in merges {
        let versions = [("now", &merge.now), ("after", &merge.after), ("before", &merge.before)];
        let mut args = vec!["merge-file".into(), "--stdout".into(), "--quiet".into()];
        for (name, id) in versions {
            let Some(content) = contents.get(id.as_str()) else { break };
            let file = folder.join(name);
            fs::write(&file, content).map_err(GitError::io("write", &file))?;
            args.push(file.into_os_string());
        }
        if args.len() < 6 {
            continue;
        }
        // The exit code is the number of conflicts, or negative for files that cannot be merged.
        let content = unless_failed(scratch.run("none", &args, b""))?;
        merged.extend(content.map(|content| (*merge, content)));
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_task_alone_changed_is_reverted() {
        for (before, after, now, expected) in [
            (1, 1, 1, Decision::Same),
            (1, 2, 1, Decision::Same),
            (1, 1, 2, Decision::Later),
            (1, 2, 2, Decision::Revert),
            (1, 2, 3, Decision::Overlap),
        ] {
            assert_eq!(decide(&before, &after, &now), expected, "{before} {after} {now}");
        }
    }

    #[test]
    fn regular_files_can_be_merged_and_others_overlap() {
        let file = |mode: &str, id: &str| Some((mode.to_owned(), id.to_owned()));
        let decide = |before: Option<FileVersion>, after: Option<FileVersion>, now: Option<FileVersion>| {
            decide_file(before.as_ref(), after.as_ref(), now.as_ref())
        };
        let (plain, executable, link) = ("100644", "100755", "120000");
        let merged = decide(file(plain, "b"), file(plain, "a"), file(executable, "n"));
        let ids = |mode: &str| ContentMerge {
            mode: mode.to_owned(),
            before: "b".to_owned(),
            after: "a".to_owned(),
            now: "n".to_owned(),
        };
        assert_eq!(merged, FileDecision::Merge(ids(executable)));
        // The task made it executable, the user changed its content.
        let combined = decide(file(plain, "b"), file(executable, "b"), file(executable, "n"));
        assert_eq!(combined, FileDecision::Combine(("100644".to_owned(), "n".to_owned())));
        for (before, after, now) in [
            (None, file(plain, "a"), file(plain, "n")),
            (file(plain, "b"), None, file(plain, "n")),
            (file(plain, "b"), file(plain, "a"), None),
            (file(plain, "b"), file(plain, "a"), file(link, "n")),
        ] {
            assert_eq!(decide(before, after, now), FileDecision::Overlap);
        }
        assert_eq!(decide(None, file(plain, "a"), None), FileDecision::Same);
    }

    #[test]
    fn permissions_set_later_stay() {
        assert_eq!(resolve_mode(Some(0o644), Some(0o600), Some(0o600)), Some(Some(0o644)));
        assert_eq!(resolve_mode(Some(0o644), Some(0o644), Some(0o600)), Some(Some(0o600)));
        assert_eq!(resolve_mode(Some(0o644), Some(0o600), Some(0o640)), None);
        assert_eq!(resolve_mode(Some(0o644), None, None), Some(Some(0o644)));
        assert_eq!(resolve_mode(Some(0o644), None, Some(0o600)), Some(Some(0o600)));
    }
}
