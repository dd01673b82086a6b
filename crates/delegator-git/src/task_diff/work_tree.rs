//! What a task changed in its checkout, as a diff against the commit that it started from.
//!
//! The files of the work tree are listed before the agent starts ([`TreeListing`]) and compared afterwards.
//! The diff has only paths that differ between the two, each compared with the commit. Commits of the agent
//! make no difference: its files count. The agent owns the git directory too: if that is no longer usable,
//! one of the mirror takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::listing::{TreeListing, revert_setup_edits, store_edited_files};
use super::stored::{DiffText, tree_diff};
use crate::capture::{Ignored, LeftOut, LeftOutReason, Limits, Purpose, capture, is_derived};
use crate::error::{GitError, Result};
use crate::files::Stamp;
use crate::records::{RepoPath, display_path, on_disk, output_text};
use crate::remote::{Mirror, RemoteAccess, RemoteError, RemoteUrl};
use crate::repository::{Repository, Store, author, find_repository};
use crate::run::{Call, Git};
use crate::scratch::Scratch;

/// Larger files that git does not track are not part of a diff.
const LIMITS: Limits = Limits { file_bytes: 20 << 20, total_bytes: 200 << 20, time: Duration::from_secs(60) };
/// The largest pack with the commits of an agent.
const MAX_PACK_BYTES: usize = 2 << 30;
/// The index in which the tree of the changes is built.
const INDEX: &str = "changes";

#[derive(Debug)]
pub struct WorkTreeDiff {
    /// A unified diff with full object ids and binary files; empty if nothing changed.
    pub diff: DiffText,
    /// Changed files that are not in it, by path.
    pub left_out: Vec<LeftOut>,
    /// Changed files in which the diff also has what the setup script had changed.
    pub with_setup_edits: Vec<String>,
    pub(crate) scratch: Scratch,
    tree: String,
    /// Takes the place of an unusable git directory, until the changes are pushed.
    _git_dir: Option<TempDir>,
}

/// A branch, and the commit for what the agent has not committed.
#[derive(Debug, Clone, Copy)]
pub struct NewCommit<'a> {
    pub branch: &'a str,
    pub message: &'a str,
    /// Seconds since 1970. The same time makes the same commit, so that a push can be repeated.
    pub time_sec: u64,
}

/// The commits that the changes of a task are added to.
pub(crate) struct History<'a> {
    pub(crate) git: &'a Git,
    /// The git directory whose configuration names the author; without one, that of the user.
    pub(crate) source: Option<&'a Path>,
    pub(crate) base: &'a str,
    /// The last commit of the agent, whose objects the git directory of ours can read.
    pub(crate) head: Option<&'a str>,
}

#[derive(Debug, Clone, Copy)]
pub struct TaskCheckout<'a> {
    /// The top of its work tree.
    pub dir: &'a Path,
    /// The commit that it started from.
    pub base: &'a str,
    /// A directory of ours for the contents that differed from this commit before the agent started.
    pub store: &'a Path,
}

impl TaskCheckout<'_> {
    fn repository(&self, git: &Git) -> Result<Repository> {
        let missing = || GitError::io("find the repository of", self.dir)(io::ErrorKind::NotFound.into());
        find_repository(git, self.dir)?.filter(|found| found.top_level == self.dir).ok_or_else(missing)
    }
}

impl TreeListing {
    /// Lists the work tree before the agent starts. `temp_dir` is a directory of ours.
    pub fn take(git: &Git, checkout: &TaskCheckout<'_>, temp_dir: &Path) -> Result<TreeListing> {
        let Listed { scratch, listing, .. } = list(git, &checkout.repository(git)?, temp_dir)?;
        store_edited_files(&scratch, checkout.base, &listing.files, checkout.store)?;
        Ok(listing)
    }
}

/// The files of a work tree, and the git directory of ours that has their objects.
pub(crate) struct Listed {
    pub(crate) scratch: Scratch,
    pub(crate) listing: TreeListing,
    pub(crate) tree: String,
    /// Why files were not read, by their displayed path.
    reasons: BTreeMap<String, LeftOut>,
}

impl Listed {
    /// Adds ignored files that a person would miss, so that their changes are named.
    pub(crate) fn add_ignored(&mut self, ignored: Ignored) {
        let top_level = self.scratch.top();
        let files = ignored.files.into_iter().filter_map(|path| {
            let stamp = Stamp::at(&on_disk(top_level, &path))?;
            (stamp.size > 0 && !is_derived(&path)).then_some((path, stamp))
        });
        let others = ignored.repositories.into_iter().map(|path| {
            let stamp = Stamp::of_directory(&on_disk(top_level, &path));
            (path, stamp)
        });
        // What is beyond the limits has no stamp: only that it is new is noticed.
        let unexamined = ignored.not_examined.into_iter().map(|file| (file.path.into(), Stamp::default()));
        let found: Vec<(RepoPath, Stamp)> = files.chain(others).chain(unexamined).collect();
        for (path, stamp) in found {
            let file = LeftOut::new(&path, LeftOutReason::Ignored, stamp.size);
            self.reasons.insert(file.path.clone(), file);
            self.listing.unread.insert(path, stamp);
        }
    }

    fn left_out(&self, path: &RepoPath) -> LeftOut {
        let known = self.reasons.get(&display_path(path)).cloned();
        known.unwrap_or_else(|| LeftOut::new(path, LeftOutReason::Repository, 0))
    }
}

fn list(git: &Git, repository: &Repository, temp_dir: &Path) -> Result<Listed> {
    list_in(Scratch::create(git, repository, temp_dir)?, &BTreeSet::new())
}

/// Lists the files of a work tree: like a restore, all tracked files, small untracked ones, and the `needed`
/// ones.
pub(crate) fn list_in(scratch: Scratch, needed: &BTreeSet<RepoPath>) -> Result<Listed> {
    let captured = capture(&scratch, LIMITS, needed, Purpose::Restore)?;
    let mut unread = captured.files.unread;
    for (path, stamp) in unread.iter_mut().filter(|(path, _)| path.ends_with(b"/")) {
        *stamp = Stamp::of_directory(&scratch.on_disk(path));
    }
    let listing = TreeListing { files: scratch.tree_files(&captured.tree)?, unread };
    let reasons =
        captured.files.left_out.into_iter().map(|left_out| (left_out.path.clone(), left_out)).collect();
    Ok(Listed { scratch, listing, tree: captured.tree, reasons })
}

impl WorkTreeDiff {
    /// What changed in the work tree since `before`, relative to the commit that it started from, which the
    /// mirror has.
    pub fn take(
        git: &Git,
        checkout: &TaskCheckout<'_>,
        mirror: &Mirror,
        before: &TreeListing,
        temp_dir: &Path,
    ) -> Result<WorkTreeDiff> {
        let compare = |repository: &Repository| {
            let after = list(git, repository, temp_dir)?;
            after.scratch.read_from(&Store::at(checkout.store))?;
            WorkTreeDiff::since(after, checkout.base, before)
        };
        match checkout.repository(git).and_then(|repository| compare(&repository)) {
            Err(error) if may_be_damage(&error) => {
                let (git_dir, repository) =
                    mirror.create_git_dir(git, checkout.base, checkout.dir, temp_dir)?;
                Ok(WorkTreeDiff { _git_dir: Some(git_dir), ..compare(&repository)? })
            }
            found => found,
        }
    }

    /// What changed since `before`, relative to the commit or tree `base`. The git directory of ours can read
    /// both.
    pub(crate) fn since(after: Listed, base: &str, before: &TreeListing) -> Result<WorkTreeDiff> {
        let top_level = after.scratch.repository.top_level.clone();
        let mut changes = after.listing.changes_since(before, |path| Stamp::at(&on_disk(&top_level, path)));
        let left_out = changes.left_out.iter().map(|path| after.left_out(path)).collect();
        let scratch = after.scratch;
        let with_setup_edits = revert_setup_edits(&scratch, base, &before.files, &mut changes.files)?;
        scratch.run(INDEX, ["read-tree", base], b"")?;
        scratch.edit_index(INDEX, changes.files.iter().map(|(path, version)| (path, version.as_ref())))?;
        let tree = scratch.write_tree(INDEX)?;
        let diff = tree_diff(&scratch, base, &tree, &["--find-renames"])?;
        Ok(WorkTreeDiff { diff, left_out, with_setup_edits, scratch, tree, _git_dir: None })
    }

    /// Pushes the changes to a branch that does not exist, or has this commit already.
    pub fn push(
        &self,
        access: &RemoteAccess,
        url: &RemoteUrl,
        base: &str,
        commit: NewCommit<'_>,
    ) -> Result<(), RemoteError> {
        let git = access.git();
        let head = self.scratch.repository.head(&git).ok().and_then(|head| head.commit);
        let head = head.as_deref().filter(|head| *head != base);
        let pushed = self.last_commit(&History { git: &git, source: None, base, head }, &commit)?;
        access.push(&self.scratch, url, &format!("{pushed}:refs/heads/{}", commit.branch))
    }

    /// Adds the commits to the repository of the work tree. Returns the last one.
    pub(crate) fn store_commit(&self, history: &History<'_>, commit: &NewCommit<'_>) -> Result<String> {
        let id = self.last_commit(history, commit)?;
        let scratch = &self.scratch;
        let range = ["--objects", "--no-object-names", id.as_str(), "--not", history.base];
        let objects = scratch.run("none", ["rev-list"].iter().chain(&range), b"")?;
        let call = scratch.call("none", ["pack-objects", "--quiet", "--stdout", "--compression=1"]);
        let pack = scratch.run_call(Call { input: &objects, extra_output: MAX_PACK_BYTES, ..call })?;
        // git computes the ids from the content, so an object of the agent cannot pass for another.
        let objects = scratch.repository_objects();
        scratch.run_in_objects(&objects, &[], ["index-pack", "--stdin"], &pack)?;
        scratch.run_in_objects(&objects, &[], ["rev-list", "--quiet"].iter().chain(&range), b"")?;
        Ok(id)
    }

    /// The commits of the agent, if its history continues that of `base`, with one commit on top if they do
    /// not end in the state of the diff.
    fn last_commit(&self, history: &History<'_>, commit: &NewCommit<'_>) -> Result<String> {
        match self.agent_commit(history) {
            Some((head, tree)) if tree == self.tree => Ok(head.to_owned()),
            agent => self.commit(history, agent.map_or(history.base, |(head, _)| head), commit),
        }
    }

    /// Whether a commit is the one that [`WorkTreeDiff::store_commit`] would add, whenever it was made.
    pub(crate) fn is_last_commit(&self, history: &History<'_>, id: &str, message: &str) -> bool {
        let parent = match self.agent_commit(history) {
            Some((head, tree)) if tree == self.tree => return id == head,
            agent => agent.map_or(history.base, |(head, _)| head),
        };
        let found = self.scratch.run("none", ["log", "-1", "--format=%T %P%n%B", id], b"");
        let found = found.map(|found| String::from_utf8_lossy(&found).trim().to_owned());
        found.is_ok_and(|found| found == format!("{} {parent}\n{}", self.tree, message.trim()))
    }

    /// The commit that the agent ended with and its tree; `None` if it made none, or if its history does not
    /// contain `base`. The agent owns its objects, so whatever prevents this is no error.
    fn agent_commit<'a>(&self, history: &History<'a>) -> Option<(&'a str, String)> {
        let head = history.head?;
        let top_level = self.scratch.top();
        let run = |args: &[&str]| history.git.run(top_level, self.scratch.call("none", args)).ok();
        run(&["merge-base", "--is-ancestor", history.base, head])?;
        let tree = run(&["rev-parse", "--verify", "--quiet", &format!("{head}^{{tree}}")])?;
        Some((head, output_text(&tree)))
    }

    /// Commits the state of the diff on top of `parent`.
    fn commit(&self, history: &History<'_>, parent: &str, commit: &NewCommit<'_>) -> Result<String> {
        let mut call = self.scratch.call("none", ["commit-tree", &self.tree, "-p", parent, "-F", "-"]);
        call.variables.extend(author(history.git, history.source)?);
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            call.variables.push((name, format!("@{} +0000", commit.time_sec).into()));
        }
        let call = Call { input: commit.message.as_bytes(), ..call };
        Ok(output_text(&history.git.run(self.scratch.top(), call)?))
    }
}

/// Whether the cause may be the git directory.
fn may_be_damage(error: &GitError) -> bool {
    use GitError::{Failed, Io, UnexpectedOutput, WorkTreeElsewhere};
    matches!(error, Failed { .. } | UnexpectedOutput { .. } | WorkTreeElsewhere { .. } | Io { .. })
}
