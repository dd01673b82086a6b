//! Merges the contents of files whose three versions all differ, with `git merge-file`.
//!
//! The present version gets the change from `after` to `before` and retains its own. A merge with conflicts, of binary or of large
//! files has no result. New contents are written to the temporary object store only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::end_state::MAX_MERGED_BYTES;
use crate::error::GitError;
use crate::listing::single_line;
use crate::scratch::Scratch;
use crate::three_way::ContentMerge;

/// The object ids of the merged contents; merges without a result are missing.
pub(crate) fn merge_contents(
    scratch: &Scratch,
    merges: &BTreeSet<ContentMerge>,
) -> Result<BTreeMap<ContentMerge, String>, GitError> {
    let mut merged = BTreeMap::new();
    if merges.is_empty() {
        return Ok(merged);
    }
    let ids = merges.iter().flat_map(|merge| [&merge.before, &merge.after, &merge.now]);
    let contents = read_small_blobs(scratch, &ids.collect())?;
    let folder = scratch.path("merge");
    fs::create_dir_all(&folder).map_err(GitError::io("create", &folder))?;
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
        let content = match scratch.run("none", &args, b"") {
            // The exit code is the number of conflicts, or negative for files that cannot be merged.
            Err(GitError::Failed { .. }) => continue,
            content => content?,
        };
        let id = scratch.run("none", ["hash-object", "-w", "--no-filters", "--stdin"], &content)?;
        merged.insert(merge.clone(), single_line(&id));
    }
    Ok(merged)
}

/// Reads blobs that are small enough to be merged; others are missing in the result.
pub(crate) fn read_small_blobs(
    scratch: &Scratch,
    ids: &BTreeSet<&String>,
) -> Result<BTreeMap<String, Vec<u8>>, GitError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let unreadable = || GitError::UnexpectedOutput { command: "cat-file" };
    let list = |ids: &mut dyn Iterator<Item = &str>| ids.map(|id| format!("{id}\n")).collect::<String>();
    let all = list(&mut ids.iter().map(|id| id.as_str()));
    let sizes = scratch.run_large(["cat-file", "--buffer", "--batch-check"], all.as_bytes())?;
    let sizes = String::from_utf8_lossy(&sizes);
    let is_small = |size: &str| size.parse::<u64>().is_ok_and(|size| size <= MAX_MERGED_BYTES);
    let small = sizes.lines().filter_map(|line| line.split_once(" blob "));
    let small: Vec<&str> = small.filter(|(_, size)| is_small(size)).map(|(id, _)| id).collect();
    let output =
        scratch.run_large(["cat-file", "--buffer", "--batch"], list(&mut small.into_iter()).as_bytes())?;
    let mut contents = BTreeMap::new();
    let mut rest = output.as_slice();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = str::from_utf8(&rest[..end]).map_err(|_| unreadable())?;
        let (id, size) = header.split_once(" blob ").ok_or_else(unreadable)?;
        let size: usize = size.parse().map_err(|_| unreadable())?;
        let (content, after) = rest[end + 1..].split_at_checked(size).ok_or_else(unreadable)?;
        contents.insert(id.to_owned(), content.to_vec());
        rest = after.get(1..).ok_or_else(unreadable)?;
    }
    Ok(contents)
}
