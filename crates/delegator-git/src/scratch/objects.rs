//! Reads, writes and packs objects through a git directory of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::git_dir::Scratch;
use crate::error::GitError;
use crate::records::{parse_batch, single_line};

/// Larger files are not merged, so their content is not stored.
pub(crate) const MAX_MERGED_BYTES: u64 = 4 << 20;

/// Those of the objects that exist and can be read.
pub(crate) fn existing_objects(
    scratch: &Scratch,
    ids: BTreeSet<String>,
) -> Result<BTreeSet<String>, GitError> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let found = scratch.run("none", ["cat-file", "--buffer", "--batch-check"], input.as_bytes())?;
    let found = String::from_utf8_lossy(&found);
    let exists = |entry: &&str| !entry.ends_with(" missing");
    Ok(found.lines().filter(exists).filter_map(|entry| entry.split(' ').next()).map(str::to_owned).collect())
}

/// Every object of the trees that the tree `committed` does not have, as far as they exist.
pub(crate) fn differing_objects<'a>(
    scratch: &Scratch,
    committed: &'a str,
    trees: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<String>, GitError> {
    list_objects(scratch, trees.into_iter().chain(["--not", committed]))
}

/// What `git rev-list --objects` lists.
pub(crate) fn list_objects<'a>(
    scratch: &Scratch,
    args: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<String>, GitError> {
    let options = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any"];
    let listed = scratch.run("none", options.into_iter().chain(args), b"")?;
    Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
}

/// Writes a pack with these objects to the object directory `target` and returns its hash; `None` if there
/// are none. The agent's start waits for this, so time matters more than size: no deltas, low compression.
pub(crate) fn pack_into(
    scratch: &Scratch,
    target: &Path,
    name: &str,
    objects: &BTreeSet<String>,
) -> Result<Option<String>, GitError> {
    if objects.is_empty() {
        return Ok(None);
    }
    let packs = target.join("pack");
    fs::create_dir_all(&packs).map_err(GitError::io("create", &packs))?;
    // git writes no object that it can read elsewhere, such as in the store of restore points.
    let mut others = vec![scratch.path("objects"), scratch.repository_objects(), scratch.store().objects()];
    others.retain(|other| other != target);
    let base = packs.join(name);
    let input: String = objects.iter().map(|id| format!("{id}\n")).collect();
    let args = ["pack-objects", "--quiet", "--window=0", "--no-reuse-delta", "--compression=1"];
    let args = args.map(OsStr::new).into_iter().chain([base.as_os_str()]);
    Ok(Some(single_line(&scratch.run_in_objects(target, &others, args, input.as_bytes())?)))
}

/// Writes contents as objects and returns their ids.
pub(crate) fn write_blobs<'a>(
    scratch: &Scratch,
    contents: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<String>, GitError> {
    let (mut script, mut marks) = (Vec::new(), String::new());
    for (mark, content) in (1..).zip(contents) {
        script.extend(format!("blob\nmark :{mark}\ndata {}\n", content.len()).into_bytes());
        script.extend_from_slice(content);
        script.push(b'\n');
        marks += &format!("get-mark :{mark}\n");
    }
    if script.is_empty() {
        return Ok(Vec::new());
    }
    script.extend((marks + "done\n").into_bytes());
    scratch.import(&script)
}

/// Reads blobs that are small enough to be merged; others are missing in the result.
pub(crate) fn read_small_blobs(
    scratch: &Scratch,
    ids: &BTreeSet<&String>,
) -> Result<BTreeMap<String, Vec<u8>>, GitError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let all: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let sizes = scratch.run("none", ["cat-file", "--buffer", "--batch-check"], all.as_bytes())?;
    let sizes = String::from_utf8_lossy(&sizes);
    let is_small = |size: &str| size.parse::<u64>().is_ok_and(|size| size <= MAX_MERGED_BYTES);
    let small = sizes.lines().filter_map(|line| line.split_once(" blob "));
    let small: String = small.filter(|(_, size)| is_small(size)).map(|(id, _)| format!("{id}\n")).collect();
    let output = scratch.run("none", ["cat-file", "--buffer", "--batch"], small.as_bytes())?;
    let contents = parse_batch(&output)?;
    Ok(contents.into_iter().map(|(id, content)| (id.to_owned(), content.to_vec())).collect())
}
