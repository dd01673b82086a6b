//! Creates a worktree: its git directory with branch, configuration and refs of its own, the files of the
//! commit, then the user's uncommitted changes.
//!
//! Only settings that name no command are taken over. So hooks of the repository do not run when the agent
//! commits.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use super::source::WorktreeError;
use super::task_worktree::{AFTER_SETUP, CARRIED, TaskWorktree};
use crate::capture::{LeftOut, Limits, Purpose, capture};
use crate::diff::{NewVersion, RawChange, raw_diff};
use crate::error::{GitError, Result};
use crate::files::{copy_file, remove_empty_parents, remove_file};
use crate::records::{FileVersion, RepoPath, on_disk, records};
use crate::repository::git_config;
use crate::run::{Call, Git};
use crate::scratch::Scratch;

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
        self.save_start_tree(&scratch, CARRIED, &captured.tree)?;
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
        self.attach_start_objects(&scratch)?;
        if let Some(carried) = self.start_tree(CARRIED)? {
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
        self.attach_start_objects(&listed.scratch)?;
        self.save_start_tree(&listed.scratch, AFTER_SETUP, &listed.tree)?;
        self.save_unread_after_setup(listed.listing.unread)
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
        scratch.fill_index(CARRIED_INDEX, written)?;
        scratch.run(CARRIED_INDEX, ["checkout-index", "--all", "--force"], b"").map(drop)
    }
}

/// Settings of the repository that a commit, a comparison and a fetch need.
const SETTINGS: &str = "^(core\\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|excludesfile|\
                        sparsecheckout|sparsecheckoutcone)|user\\.(name|email)|remote\\..*\\.(url|fetch))$";

impl TaskWorktree {
    /// Creates the git directory and a top directory without files. No filter and no hook is run.
    pub(super) fn add(&self, git: &Git) -> Result<()> {
        let source = &self.source.repository;
        let command = format!("update {}\0{}\0\0", self.reference(), self.source.commit);
        source.update_refs(git, command.as_bytes(), "mcp-delegator: worktree created")?;
        let args = ["config", "-z", "--get-regexp", SETTINGS];
        let settings = source.run_optional(git, args)?.unwrap_or_default();
        let format = "--format=%(objectname) %(refname)";
        let args = ["for-each-ref", format, "refs/heads", "refs/remotes", "refs/tags"];
        let refs = source.run(git, args)?;
        let config = git_config(false, &source.object_format) + &config_text(&settings);
        self.write_git_dir(&config, &refs).map_err(GitError::io("create", self.git_dir()))
    }

    fn write_git_dir(&self, config: &str, refs: &[u8]) -> io::Result<()> {
        let (dir, common, source) = (self.git_dir(), self.common_dir(), &self.source.repository);
        let others =
            [common.join("info"), common.join("objects/info"), common.join("objects/pack"), dir.join("info")];
        for folder in self.commit_dirs().iter().chain(&others).chain([&self.path]) {
            fs::create_dir_all(folder)?;
        }
        let line = |prefix: &str, path: &Path| {
            [prefix.as_bytes(), path.as_os_str().as_encoded_bytes(), b"\n"].concat()
        };
        let folder = format!(" refs/heads/{}/", self.branch.split('/').next().unwrap_or_default());
        let is_other = |line: &&[u8]| !line.windows(folder.len()).any(|part| part == folder.as_bytes());
        let refs: Vec<u8> =
            refs.split_inclusive(|byte| *byte == b'\n').filter(is_other).flatten().copied().collect();
        let head = format!("ref: refs/heads/{}\n", self.branch);
        let files = [
            // Detached, because git refuses to check out a branch in two places.
            (common.join("HEAD"), format!("{}\n", self.source.commit).into_bytes()),
            (common.join("config"), config.into()),
            (common.join("objects/info/alternates"), line("", &source.common_dir.join("objects"))),
            (common.join("refs/heads").join(&self.branch), format!("{}\n", self.source.commit).into_bytes()),
            (common.join("packed-refs"), refs.clone()),
            (self.own_dir().join("refs"), refs),
            (dir.join("HEAD"), head.into_bytes()),
            (dir.join("commondir"), b"../..\n".to_vec()),
            (dir.join("gitdir"), line("", &self.path.join(".git"))),
            (self.path.join(".git"), line("gitdir: ", &dir)),
        ];
        for (path, bytes) in files {
            fs::write(path, bytes)?;
        }
        for (from, to) in [
            (source.common_dir.join("shallow"), common.join("shallow")),
            (source.common_dir.join("info/exclude"), common.join("info/exclude")),
            (source.git_dir.join("info/sparse-checkout"), dir.join("info/sparse-checkout")),
        ] {
            if from.is_file() {
                fs::copy(from, to)?;
            }
        }
        Ok(())
    }
}

/// The entries that `git config -z` printed, as a configuration file.
fn config_text(settings: &[u8]) -> String {
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let entry = |record: &[u8]| {
        let record = String::from_utf8_lossy(record);
        // A key without a value is true.
        let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
        let (section, name) = key.rsplit_once('.')?;
        let section = match section.split_once('.') {
            Some((section, part)) => format!("{section} \"{}\"", quote(part)),
            None => section.to_owned(),
        };
        Some(format!("[{section}]\n\t{name} = \"{}\"\n", quote(value)))
    };
    records(settings).filter_map(entry).collect()
}
