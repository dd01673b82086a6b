//! Decides whether a restore point is the only copy of some content.
//!
//! Cleaning may delete a restore point on its own only if every file in it is reachable from a branch, a tag or a
//! remote-tracking ref of the user's repository. If that is uncertain, the content counts as unique.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use crate::error::GitError;
use crate::listing::single_line;
use crate::restore_point::RestorePoint;
use crate::run::{Call, Git};

/// The user's refs that protect content from `git gc`.
const REFS: [&str; 3] = ["refs/heads", "refs/tags", "refs/remotes"];

/// Whether the restore point holds file content that no branch, tag or remote-tracking ref of the repository reaches.
/// Content that is only in commits older than the point's HEAD counts as unique.
pub fn holds_unique_content(git: &Git, point: &RestorePoint) -> Result<bool, GitError> {
    let directory = point.store.as_path();
    let in_repository =
        |args: Vec<&str>| Call { options: vec![git_dir(&point.repository)], ..Call::new(args) };
    if let Some(head) = &point.head {
        let contains = format!("--contains={head}");
        let args = [&["for-each-ref", "--count=1", "--format=%(refname)", &contains], &REFS[..]].concat();
        if git.run(&point.repository, &in_repository(args))?.is_empty() {
            return Ok(true);
        }
    }
    let mut blobs = BTreeSet::new();
    let list_blobs = ["ls-tree", "-r", "--object-only"];
    for part in ["tree", "index-tree", "blobs"] {
        let Some(tree) = part_tree(git, point, part)? else { continue };
        let call = Call {
            options: vec![git_dir(directory)],
            ..Call::new(list_blobs.into_iter().chain([tree.as_str()]))
        };
        let listed = git.run(directory, &Call { extra_output: 1 << 30, ..call })?;
        blobs.extend(String::from_utf8_lossy(&listed).lines().map(str::to_owned));
    }
    if let Some(head) = &point.head {
        let call = in_repository(vec!["ls-tree", "-r", "--object-only", head]);
        let listed = git.run(&point.repository, &Call { extra_output: 1 << 30, ..call })?;
        remove_all(&mut blobs, &listed);
    }
    if blobs.is_empty() {
        return Ok(false);
    }
    let exclude_head = point.head.as_ref().map(|head| format!("^{head}"));
    let mut args = vec!["rev-list", "--objects", "--no-object-names", "--branches", "--tags", "--remotes"];
    args.extend(exclude_head.as_deref());
    let reachable = git.run(&point.repository, &Call { extra_output: 1 << 30, ..in_repository(args) })?;
    remove_all(&mut blobs, &reachable);
    Ok(!blobs.is_empty())
}

fn remove_all(blobs: &mut BTreeSet<String>, listed: &[u8]) {
    for id in String::from_utf8_lossy(listed).lines() {
        blobs.remove(id);
    }
}

/// The id of one of the trees of the restore point; `None` if it has none.
fn part_tree(git: &Git, point: &RestorePoint, part: &str) -> Result<Option<String>, GitError> {
    match part {
        "tree" => return Ok(Some(point.tree.clone())),
        "index-tree" => return Ok(point.index_tree.clone()),
        _ => {}
    }
    let name = format!("{}:{part}", point.commit);
    let options = vec![git_dir(&point.store)];
    let call = Call { options, ..Call::new(["rev-parse", "--verify", "--quiet", &name]) };
    Ok(git.run_optional(&point.store, &call)?.as_deref().map(single_line))
}

fn git_dir(path: &Path) -> OsString {
    let mut option = OsString::from("--git-dir=");
    option.push(path);
    option
}
