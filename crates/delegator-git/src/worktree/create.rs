//! Creates a worktree: its git directory and branch, the files of the commit, then the user's uncommitted changes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::TaskWorktree;
use super::source::WorktreeError;
use super::start_store::Start;
use crate::apply_diff::remove_empty_parents;
use crate::capture::{LeftOut, Limits, Purpose, capture};
use crate::diff::parse_new_versions;
use crate::error::GitError;
use crate::listing::{RepoPath, on_disk};
use crate::restore_target::fill_index;
use crate::run::Git;
use crate::scratch::Scratch;
use crate::state::FileVersion;

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
    /// Stores the uncommitted and untracked changes of the user's work tree, so that they are in the worktree when it is
    /// created. Returns what is not carried. `temp_dir` is a directory of ours.
    pub fn carry(&self, git: &Git, limits: Limits, temp_dir: &Path) -> Result<Vec<LeftOut>, GitError> {
        let scratch = Scratch::create(git, &self.source.repository(), temp_dir)?;
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
        let scratch = Scratch::create(git, &self.repository(), temp_dir)?;
        let is_sparse = self.check_out(&scratch)?;
        self.start_store().attach(&scratch)?;
        if let Some(carried) = self.start_store().tree(Start::Carried)? {
            self.write_carried(&scratch, &carried)?;
        }
        // Where git writes the branch when it commits.
        for dir in self.commit_dirs() {
            fs::create_dir_all(&dir).map_err(GitError::io("create", dir))?;
        }
        let attributes = fs::read(self.path.join(".gitattributes")).unwrap_or_default();
        Ok(CreatedWorktree {
            has_submodules: self.path.join(".gitmodules").exists(),
            has_lfs_pointers: attributes.windows(10).any(|window| window == b"filter=lfs"),
            is_sparse,
        })
    }

    /// Stores the state after the setup, so that what it changed is no change of the agent.
    pub fn record_setup(&self, git: &Git, limits: Limits, temp_dir: &Path) -> Result<(), GitError> {
        let scratch = Scratch::create(git, &self.repository(), temp_dir)?;
        self.start_store().attach(&scratch)?;
        let captured = capture(&scratch, limits, &BTreeSet::new(), Purpose::Restore)?;
        self.start_store().save(&scratch, Start::AfterSetup, &self.source.commit, &captured.tree)
    }

    /// Creates git directory and branch, but no files: no filter and no hook is run.
    fn add(&self, git: &Git) -> Result<(), GitError> {
        let source = self.source.repository();
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).map_err(GitError::io("create", parent))?;
        let mut call = source.call(["worktree", "add", "--quiet", "--no-checkout", "-b", &self.branch]);
        call.args.push((&self.path).into());
        call.args.push((&self.source.commit).into());
        git.run(&source.top_level, &call).map(drop)
    }

    /// Writes the files of the commit and the index of the worktree. Returns whether the checkout is sparse.
    fn check_out(&self, scratch: &Scratch) -> Result<bool, GitError> {
        let repository = self.repository();
        let setting = |key: &str| {
            let call = repository.call(["config", "--type=bool", "--get", key]);
            Ok::<bool, GitError>(
                scratch.git.run_optional(&self.path, &call)?.is_some_and(|value| value.starts_with(b"true")),
            )
        };
        let patterns = repository.git_dir.join("info/sparse-checkout");
        let is_sparse = setting("core.sparseCheckout")? && patterns.is_file();
        let index = repository.index();
        let mut call = scratch.call(
            &index.to_string_lossy(),
            ["read-tree", "--reset", "-u", &self.source.commit],
            &self.path,
        );
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
        scratch.git.run(&self.path, &call)?;
        Ok(is_sparse)
    }

    /// Writes what differs between the commit and the carried state; the index stays that of the commit.
    fn write_carried(&self, scratch: &Scratch, tree: &str) -> Result<(), GitError> {
        let args =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", &self.source.commit, tree];
        let changed = parse_new_versions(&scratch.run_large(args, b"")?)?;
        let written: Vec<(&RepoPath, &FileVersion)> =
            changed.iter().filter_map(|change| Some((&change.path, change.version.as_ref()?))).collect();
        for change in changed.iter().filter(|change| change.version.is_none()) {
            let file = on_disk(&self.path, &change.path);
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(GitError::io("remove", file)(error));
                }
                _ => remove_empty_parents(&self.path, &change.path),
            }
        }
        fill_index(scratch, CARRIED_INDEX, written.into_iter())?;
        scratch.run(CARRIED_INDEX, ["checkout-index", "--all", "--force"], b"").map(drop)
    }
}
