//! Merges the contents of files whose three versions all differ, with `git merge-file`.
//!
//! The present version gets the change from `after` to `before` and retains its own. A merge with conflicts,
//! of binary or of large files has no result. New contents are written to the temporary object store only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;

use super::three_way::ContentMerge;
use crate::error::{GitError, Result};
use crate::scratch::Scratch;

/// A merge and its result.
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
        match scratch.run("none", &args, b"") {
            // The exit code is the number of conflicts, or negative for files that cannot be merged.
            Err(GitError::Failed { .. }) => {}
            content => merged.push((*merge, content?)),
        }
    }
    Ok(merged)
}
