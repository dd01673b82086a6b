//! Restore points: a work tree and its index as commits, kept by a ref of ours.
//!
//! ```text
//! refs/mcp-delegator/<name> ─▶ work tree ─▶ index ─▶ HEAD
//!                                  └──────────────▶ HEAD
//! ```
//!
//! It has the form of a stash, so git's own commands read it. Index and work tree are not touched by making one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::baseline::Baseline;
use crate::capture::{Captured, LeftOut, Limits, Purpose, capture};
use crate::error::GitError;
use crate::listing::line;
use crate::repository::{Head, find};
use crate::run::{Call, Git};
use crate::scratch::{Objects, Scratch};
use crate::stamp::Stamp;

/// Nobody can read a longer list, and a record has to be written.
const MOST_LEFT_OUT: usize = 100_000;

/// What is known of a restore point; all that is needed to bring it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePoint {
    pub reference: String,
    pub commit: String,
    /// The work tree.
    pub tree: String,
    /// The index; `None` when it had conflicts.
    pub index_tree: Option<String>,
    pub head: Option<String>,
    /// The full name of the branch HEAD was on.
    pub branch: Option<String>,
    pub staged: bool,
    /// Files that differed from the index.
    pub modified: usize,
    pub untracked: usize,
    pub left_out: Vec<LeftOut>,
    pub top_level: PathBuf,
    /// Where the refs and objects are.
    pub repository: PathBuf,
}

impl RestorePoint {
    pub fn is_dirty(&self) -> bool {
        self.staged || self.modified > 0 || self.untracked > 0 || self.index_tree.is_none()
    }
}

/// A restore point, and the same state for comparing later.
#[derive(Debug)]
pub struct Kept {
    pub point: RestorePoint,
    /// Why there is none may be asked, but the point is there all the same.
    pub baseline: Result<Baseline, GitError>,
}

/// Keeps the state of the work tree `dir` lies in; `None` where there is none. `place` is a directory of ours for
/// passing files, which has to stay as long as the baseline; `reference` a name that is not taken.
pub fn keep_restore_point(
    git: &Git,
    dir: &Path,
    place: &Path,
    reference: &str,
    limits: Limits,
) -> Result<Option<Kept>, GitError> {
    let Some(repository) = find(git, dir)? else { return Ok(None) };
    let head = repository.head(git)?;
    let scratch = Scratch::make(git, &repository, place, Objects::Kept)?;
    let index = Stamp::at(&repository.index());
    let mut captured = capture(&scratch, limits, &BTreeSet::new(), Purpose::Keep)?;
    let unread = std::mem::take(&mut captured.unread);
    let point = record(&scratch, &mut captured, head.clone(), reference)?;
    let baseline = Baseline::of(scratch, &captured, unread, (head, index));
    Ok(Some(Kept { point, baseline }))
}

/// Turns what was captured into commits, and keeps them. The list of what was left out goes with them.
pub(crate) fn record(
    scratch: &Scratch,
    captured: &mut Captured,
    head: Head,
    reference: &str,
) -> Result<RestorePoint, GitError> {
    let repository = &scratch.repository;
    if captured.left_out.len() > MOST_LEFT_OUT {
        return Err(GitError::TooManyLeftOut { count: captured.left_out.len() });
    }
    let commit = |tree: &str, parents: &[&String], what: &str| -> Result<String, GitError> {
        let message = format!("mcp-delegator: {what} before {reference}\n");
        let mut args = vec!["commit-tree", tree];
        for parent in parents {
            args.extend(["-p", parent.as_str()]);
        }
        Ok(line(&scratch.run("none", args, message.as_bytes())?))
    };
    let mut parents: Vec<&String> = head.commit.iter().collect();
    let index = match &captured.index_tree {
        Some(tree) => Some(commit(tree, &parents, "index")?),
        None => None,
    };
    parents.extend(&index);
    let kept = commit(&captured.tree, &parents, "work tree")?;
    let committed = committed_tree(scratch, &head)?;
    // Last: a ref is the promise that all of it is there.
    let command = format!("create {reference}\0{kept}\0");
    repository.update_refs(&scratch.git, command.as_bytes(), "mcp-delegator: restore point")?;
    Ok(RestorePoint {
        reference: reference.to_owned(),
        commit: kept,
        tree: captured.tree.clone(),
        staged: captured.index_tree.as_ref().is_some_and(|tree| Some(tree) != committed.as_ref()),
        index_tree: captured.index_tree.clone(),
        head: head.commit,
        branch: head.branch,
        modified: captured.modified,
        untracked: captured.untracked,
        left_out: std::mem::take(&mut captured.left_out),
        top_level: repository.top_level.clone(),
        repository: repository.common_dir.clone(),
    })
}

/// The tree of HEAD; before the first commit that is the empty one.
fn committed_tree(scratch: &Scratch, head: &Head) -> Result<Option<String>, GitError> {
    match &head.commit {
        Some(commit) => {
            let tree = format!("{commit}^{{tree}}");
            Ok(Some(line(&scratch.run("none", ["rev-parse", "--verify", "--quiet", &tree], b"")?)))
        }
        None => {
            let empty = scratch.run("none", ["hash-object", "-t", "tree", "--stdin"], b"")?;
            Ok(Some(line(&empty)))
        }
    }
}

/// Removes a ref of ours, if it still is what we made it. True if it was there.
pub fn drop_ref(git: &Git, repository: &Path, reference: &str, commit: &str) -> Result<bool, GitError> {
    let mut option = std::ffi::OsString::from("--git-dir=");
    option.push(repository);
    let call = |args: [&str; 4]| Call { options: vec![option.clone()], ..Call::new(args) };
    let found = git.ask(repository, &call(["rev-parse", "--verify", "--quiet", reference]))?;
    if found.as_deref().map(line).as_deref() != Some(commit) {
        return Ok(false);
    }
    let delete = Call {
        options: vec![option.clone()],
        ..Call::new(["update-ref", "--no-deref", "-d", reference, commit])
    };
    git.run(repository, &delete).map(|_| true)
}
