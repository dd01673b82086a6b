//! Locates a repository and reads and changes its refs.
//!
//! These are the only operations on the repository itself; all others use [`crate::scratch`]. Nothing here may run a
//! git command that executes what the repository configures.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{Settings, read_settings};
use crate::error::GitError;
use crate::records::single_line;
use crate::run::{Call, Git};

/// A work tree and the repository behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    pub top_level: PathBuf,
    /// The git directory of this work tree: it holds HEAD and the index.
    pub git_dir: PathBuf,
    /// The git directory shared by all work trees: it holds objects and refs.
    pub common_dir: PathBuf,
    /// The hash function of object ids, as git names it; empty if the configuration has not been read.
    pub(crate) object_format: String,
}

/// Where HEAD points. Without `commit`, `branch` has no commit yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub commit: Option<String>,
    /// The full name of the branch; `None` when detached.
    pub branch: Option<String>,
}

/// Finds the work tree that contains `dir`; `None` outside a work tree and in a bare repository.
pub fn find_repository(git: &Git, dir: &Path) -> Result<Option<Repository>, GitError> {
    let call = Call::new([
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--absolute-git-dir",
        "--git-common-dir",
        "--show-object-format",
    ]);
    let output = match git.run(dir, &call) {
        Err(error) if error.is_no_work_tree() => return Ok(None),
        result => result?,
    };
    let unreadable = || GitError::UnexpectedOutput { command: "rev-parse" };
    // Paths are stored as JSON text, so they must be UTF-8.
    let output = str::from_utf8(&output).map_err(|_| unreadable())?;
    let lines: Vec<&str> = output.split_terminator('\n').collect();
    // A path that contains a line break would produce more lines.
    let [top_level, git_dir, common_dir, format] = lines.as_slice() else { return Err(unreadable()) };
    let found = Repository {
        top_level: top_level.into(),
        git_dir: git_dir.into(),
        common_dir: common_dir.into(),
        object_format: (*format).to_owned(),
    };
    // The configuration may place the work tree anywhere, even in the user's home directory. Refuse that.
    if std::fs::symlink_metadata(found.top_level.join(".git")).is_err() {
        return Err(GitError::WorkTreeElsewhere { top_level: found.top_level });
    }
    Ok(Some(found))
}

impl Repository {
    pub(crate) fn call<'a, S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Call<'a> {
        Call::in_git_dir(&self.git_dir, args)
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    pub fn head(&self, git: &Git) -> Result<Head, GitError> {
        let commit = self.resolve_ref(git, "HEAD")?;
        let branch = git.run_optional(&self.top_level, &self.call(["symbolic-ref", "--quiet", "HEAD"]))?;
        Ok(Head { commit, branch: branch.as_deref().map(single_line) })
    }

    /// The object a ref points to.
    pub(crate) fn resolve_ref(&self, git: &Git, reference: &str) -> Result<Option<String>, GitError> {
        let call = self.call(["rev-parse", "--verify", "--quiet", reference]);
        Ok(git.run_optional(&self.top_level, &call)?.as_deref().map(single_line))
    }

    /// Creates, moves or deletes refs in one transaction; `commands` has the format of `update-ref --stdin -z`.
    pub(crate) fn update_refs(&self, git: &Git, commands: &[u8], reason: &str) -> Result<(), GitError> {
        let call = self.call(["update-ref", "--no-deref", "-m", reason, "--stdin", "-z"]);
        git.run(&self.top_level, &Call { input: commands, ..call }).map(drop)
    }

    /// The work tree that has the branch checked out.
    pub(crate) fn worktree_of(&self, git: &Git, branch: &str) -> Result<Option<String>, GitError> {
        let call = self.call(["for-each-ref", "--format=%(worktreepath)", branch]);
        let path = single_line(&git.run(&self.top_level, &call)?);
        Ok(Some(path).filter(|path| !path.is_empty()))
    }

    /// The effective settings, including those of the user's own configuration.
    pub(crate) fn settings(&self, git: &Git) -> Result<Settings, GitError> {
        Ok(read_settings(git, &self.top_level, &self.git_dir)?.settings)
    }
}

pub(crate) fn operations_in_progress(repository: &Repository) -> Vec<&'static str> {
    let marker_files =
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];
    marker_files.into_iter().filter(|marker| repository.git_dir.join(marker).exists()).collect()
}

/// The configuration of a git directory of ours.
pub(crate) fn git_config(is_bare: bool, object_format: &str) -> String {
    let format = match object_format {
        "sha1" => "\trepositoryformatversion = 0\n".to_owned(),
        other => format!("\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {other}\n"),
    };
    format!("[core]\n\tbare = {is_bare}\n{format}")
}
