//! Decides whether a restore point is the only copy of some content.
//!
//! Cleaning may delete a restore point on its own only if every file in it is reachable from a branch, a tag
//! or a remote-tracking ref of the user's repository. If that is uncertain, the content counts as unique.

use std::collections::BTreeSet;
use std::path::Path;

use super::point::RestorePoint;
use crate::error::Result;
use crate::records::output_text;
use crate::run::{Call, Git};

/// The user's refs that protect content from `git gc`.
const REFS: [&str; 3] = ["refs/heads", "refs/tags", "refs/remotes"];

/// Whether the restore point holds file content that no branch, tag or remote-tracking ref of the repository
/// reaches. Content that is only in commits older than the point's HEAD counts as unique.
pub fn holds_unique_content(git: &Git, point: &RestorePoint) -> Result<bool> {
    let run = |dir: &Path, args: &[&str]| {
        git.run(dir, Call { extra_output: 1 << 30, ..Call::in_git_dir(dir, args) })
    };
    if let Some(head) = &point.head {
        let contains = format!("--contains={head}");
        let args = [&["for-each-ref", "--count=1", "--format=%(refname)", &contains], &REFS[..]].concat();
        if run(&point.repository, &args)?.is_empty() {
            return Ok(true);
        }
    }
    let mut blobs = BTreeSet::new();
    for tree in point.index_tree.iter().chain([&point.tree]).chain(&index_blobs(git, point)?) {
        let listed = run(&point.store, &["ls-tree", "-r", "--object-only", tree])?;
        blobs.extend(String::from_utf8_lossy(&listed).lines().map(str::to_owned));
    }
    if let Some(head) = &point.head {
        remove_all(&mut blobs, &run(&point.repository, &["ls-tree", "-r", "--object-only", head])?);
    }
    if blobs.is_empty() {
        return Ok(false);
    }
    let exclude_head = point.head.as_ref().map(|head| format!("^{head}"));
    let mut args = vec!["rev-list", "--objects", "--no-object-names", "--branches", "--tags", "--remotes"];
    args.extend(exclude_head.as_deref());
    remove_all(&mut blobs, &run(&point.repository, &args)?);
    Ok(!blobs.is_empty())
}

fn remove_all(blobs: &mut BTreeSet<String>, listed: &[u8]) {
    for id in String::from_utf8_lossy(listed).lines() {
        blobs.remove(id);
    }
}

/// The tree of the objects that only the index file names; `None` if there are none.
fn index_blobs(git: &Git, point: &RestorePoint) -> Result<Option<String>> {
    let name = format!("{}:blobs", point.commit);
    let call = Call::in_git_dir(&point.store, ["rev-parse", "--verify", "--quiet", &name]);
    Ok(git.run_optional(&point.store, call)?.as_deref().map(output_text))
}
