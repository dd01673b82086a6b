//! Creates a worktree: its git directory and branch, the files of the commit, then the user's uncommitted
//! changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::source::WorktreeError;
use super::start_store::Start;
use super::task_worktree::TaskWorktree;
use crate::capture::{LeftOut, Limits, Purpose, capture};
use crate::diff::{NewVersion, RawChange, raw_diff};
use crate::error::{GitError, Result};
use crate::file_version::FileVersion;
use crate::files::{copy_file, remove_empty_parents, remove_file};
use crate::records::{RepoPath, on_disk};
use crate::run::{Call, Git};
use crate::scratch::Scratch;
use crate::task_diff::TreeListing;

const CARRIED_INDEX: &str = "carried";

/// What a user should know about a new worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreatedWorktree {
    /// The repository has submodules, which are not checked out in the worktree.
    pub has_submodules: bool,
    /// The repository uses Git LFS; its files are pointers in the worktree.
    pub has_lfs_pointers: bool,
    pub is_sparse: bool,
}

impl TaskWorktree {
    /// Stores the uncommitted and untracked changes of the user's work tree, so that they are in the worktree
    /// when it is created. Returns what is not carried. `temp_dir` is a directory of ours.
    pub fn carry(&self, git: &Git, limits: Limits, temp_dir: &Path) -> Result<Vec<LeftOut>> {
        let scratch = Scratch::create(git, &self.source.repository, temp_dir)?;
        let captured = capture(&scratch, limits, &BTreeSet::new(), Purpose::Restore)?;
        self.start_store().save(&scratch, Start::Carried, &self.source.commit, &captured.tree)?;
        Ok(captured.files.left_out)
    }

    /// Creates the worktree. On an error it may be there in part; [`TaskWorktree::remove`] removes it.
    pub fn create(&self, git: &Git, temp_dir: &Path) -> Result<CreatedWorktree, WorktreeError> {
        if fs::symlink_metadata(&self.path).is_ok() || fs::symlink_metadata(self.git_dir()).is_ok() {
            return Err(WorktreeError::Exists { path: self.path.clone() });
        }
        self.add(git)?;
        let scratch = self.scratch(git, temp_dir)?;
        let is_sparse = self.check_out(&scratch)?;
        self.start_store().attach(&scratch)?;
        if let Some(carried) = self.start_store().tree(Start::Carried)? {
            self.write_carried(&scratch, &carried)?;
        }
        let attributes = fs::read(self.path.join(".gitattributes")).unwrap_or_default();
        Ok(CreatedWorktree {
            has_submodules: self.path.join(".gitmodules").exists(),
            has_lfs_pointers: attributes.windows(10).any(|window| window == b"filter=lfs"),
            is_sparse,
        })
    }

    /// Stores the state after the setup, so that what it changed is no change of the agent.
    pub fn record_setup(&self, git: &Git, temp_dir: &Path) -> Result<()> {
        let listed = self.list(git, temp_dir)?;
        let store = self.start_store();
        store.attach(&listed.scratch)?;
        store.save(&listed.scratch, Start::AfterSetup, &self.source.commit, &listed.tree)?;
        store.save_unread(&TreeListing { unread: listed.listing.unread, ..TreeListing::default() })
    }

    /// Writes the files of the commit and the index of the worktree. Returns whether the checkout is sparse.
    fn check_out(&self, scratch: &Scratch) -> Result<bool> {
        let git_dir = self.git_dir();
        let setting = |key: &str| {
            let call = Call::in_git_dir(&git_dir, ["config", "--type=bool", "--get", key]);
            let value = scratch.git.run_optional(&self.path, call);
            value.map(|value| value.is_some_and(|value| value.starts_with(b"true")))
        };
        let patterns = git_dir.join("info/sparse-checkout");
        let is_sparse = patterns.is_file() && setting("core.sparseCheckout")?;
        let index = self.private_file("index").unwrap_or_else(|| git_dir.join("index"));
        let args = ["read-tree", "--reset", "-u", &self.source.commit];
        let mut call = scratch.call(&index.to_string_lossy(), args);
        if is_sparse {
            let copy = scratch.path("info/sparse-checkout");
            fs::copy(&patterns, &copy).map_err(GitError::io("copy", &patterns))?;
            let is_cone = setting("core.sparseCheckoutCone")?;
            for setting in
                ["core.sparseCheckout=true".to_owned(), format!("core.sparseCheckoutCone={is_cone}")]
            {
                call.options.extend(["-c".into(), setting.into()]);
            }
        }
        // As many threads as there are processors.
        call.options.extend(["-c", "checkout.workers=0"].map(Into::into));
        scratch.run_call(call)?;
        copy_file(&index, &git_dir.join("index")).map_err(GitError::io("copy", index))?;
        Ok(is_sparse)
    }

    /// Writes what differs between the commit and the carried state; the index stays that of the commit.
    fn write_carried(&self, scratch: &Scratch, tree: &str) -> Result<()> {
        let options = ["-r", "--no-renames", &self.source.commit, tree];
        let changed = raw_diff(scratch, "none", "diff-tree", &options)?;
        let changed = changed.iter().filter(|change| !change.is_submodule);
        let changed: Vec<NewVersion> = changed.flat_map(RawChange::new_versions).collect();
        let written: Vec<(&RepoPath, &FileVersion)> =
            changed.iter().filter_map(|change| Some((&change.path, change.version.as_ref()?))).collect();
        for change in changed.iter().filter(|change| change.version.is_none()) {
            remove_file(&on_disk(&self.path, &change.path))?;
            remove_empty_parents(&self.path, &change.path);
        }
        scratch.fill_index(CARRIED_INDEX, written.into_iter())?;
        scratch.run(CARRIED_INDEX, ["checkout-index", "--all", "--force"], b"").map(drop)
    }
}
