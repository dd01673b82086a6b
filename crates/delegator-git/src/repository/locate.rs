//! Locates a repository and reads and changes its HEAD and refs, usually with one git process.
//!
//! The git directory and HEAD are read here if they have the layout that git itself writes: a `.git`
//! directory or a linked worktree, and refs in files. git reads the configuration, which decides whether that
//! layout is valid. In every other case git answers all questions, so that no rule of git is repeated here
//! that depends on more than these files. Nothing here may run a git command that executes what the
//! repository configures.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::GitConfig;
use crate::error::{GitError, Result, WriteError};
use crate::files::{Stamp, exists, if_exists, read_regular};
use crate::records::{on_disk, output_text};
use crate::run::{Call, Git};

/// A larger file is left to git.
const MAX_SMALL_FILE: u64 = 4 << 10;
const MAX_PACKED_REFS: u64 = 4 << 20;

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
pub fn find_repository(git: &Git, dir: &Path) -> Result<Option<Repository>> {
    let call = Call::new([
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--absolute-git-dir",
        "--git-common-dir",
        "--show-object-format",
    ]);
    let output = match git.run(dir, call) {
        Err(error) if error.is_no_work_tree() => return Ok(None),
        result => result?,
    };
    let unreadable = || GitError::unexpected("rev-parse");
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
    if fs::symlink_metadata(found.top_level.join(".git")).is_err() {
        return Err(GitError::WorkTreeElsewhere { top_level: found.top_level });
    }
    Ok(Some(found))
}

/// A repository, its HEAD and its configuration at one moment.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) repository: Repository,
    pub(crate) head: Head,
    /// The stamp of the index file.
    pub(crate) index: Option<Stamp>,
    pub(crate) config: GitConfig,
    /// Stamps of the configuration files that made the layout valid; `None` if git found the repository.
    pub(crate) configuration: Option<ConfigurationStamps>,
}

/// Stamps of the repository's own configuration files.
pub(crate) type ConfigurationStamps = [Option<Stamp>; 2];

/// Finds the work tree that contains `dir`; `None` outside a work tree and in a bare repository.
pub(crate) fn open(git: &Git, dir: &Path) -> Result<Option<Opened>> {
    if let Some(opened) = find_layout(dir).and_then(|layout| open_layout(git, layout)) {
        return Ok(Some(opened));
    }
    let Some(repository) = find_repository(git, dir)? else { return Ok(None) };
    let head = repository.head(git)?;
    let config = GitConfig::read(git, &repository.top_level, &repository.git_dir)?;
    let index = Stamp::at(&repository.index());
    Ok(Some(Opened { repository, head, index, config, configuration: None }))
}

/// `None` if git must decide.
fn open_layout(git: &Git, layout: Repository) -> Option<Opened> {
    let configuration = layout.configuration();
    let config = GitConfig::read(git, &layout.top_level, &layout.git_dir).ok()?;
    let repository = Repository { object_format: config.object_format()?.to_owned(), ..layout };
    let head = repository.head(git).ok()?;
    let index = Stamp::at(&repository.index());
    Some(Opened { repository, head, index, config, configuration: Some(configuration) })
}

/// Searches `dir` and the directories above it like git, without reading its configuration. `None` if there
/// is no repository or git must decide.
pub(crate) fn find_layout(dir: &Path) -> Option<Repository> {
    let dir = dir.canonicalize().ok()?;
    let device = fs::metadata(&dir).ok()?.dev();
    for top_level in dir.ancestors() {
        // git does not search on another file system.
        if fs::metadata(top_level).ok()?.dev() != device || is_bare(top_level) {
            return None;
        }
        let dot_git = top_level.join(".git");
        match if_exists(fs::symlink_metadata(&dot_git)).ok()? {
            None => {}
            Some(found) if found.is_dir() => return with_git_dir(top_level, &dot_git),
            Some(found) if found.is_file() => {
                let target = read_regular(&dot_git, MAX_SMALL_FILE)?;
                let target = target.strip_prefix(b"gitdir: ")?.strip_suffix(b"\n")?;
                return with_git_dir(top_level, &on_disk(top_level, target));
            }
            Some(_) => return None,
        }
    }
    None
}

/// Whether the directory may be a git directory, in which there is no work tree.
fn is_bare(dir: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| fs::symlink_metadata(dir.join(name)).is_ok())
}

fn with_git_dir(top_level: &Path, git_dir: &Path) -> Option<Repository> {
    let git_dir = git_dir.canonicalize().ok()?;
    let file = git_dir.join("commondir");
    let common_dir = if exists(&file)? {
        let target = read_regular(&file, MAX_SMALL_FILE)?;
        on_disk(&git_dir, target.strip_suffix(b"\n")?).canonicalize().ok()?
    } else {
        git_dir.clone()
    };
    let is_valid = common_dir.join("objects").is_dir() && common_dir.join("refs").is_dir();
    // As with git's own answers: paths are stored as JSON text, and one path is one line.
    let is_text = [top_level, &git_dir, &common_dir]
        .iter()
        .all(|path| path.to_str().is_some_and(|path| !path.contains('\n')));
    let (top_level, object_format) = (top_level.to_owned(), String::new());
    (is_valid && is_text).then_some(Repository { top_level, git_dir, common_dir, object_format })
}

impl Repository {
    pub(crate) fn call<'a>(&self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Call<'a> {
        Call::in_git_dir(&self.git_dir, args)
    }

    pub(crate) fn run(&self, git: &Git, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Result<Vec<u8>> {
        git.run(&self.top_level, self.call(args))
    }

    /// Exit code 1 means "no result".
    pub(crate) fn run_optional(
        &self,
        git: &Git,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> Result<Option<Vec<u8>>> {
        git.run_optional(&self.top_level, self.call(args))
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// Fails if another git command changes the index.
    pub(crate) fn refuse_if_locked(&self) -> Result<(), WriteError> {
        let lock = self.git_dir.join("index.lock");
        if fs::symlink_metadata(&lock).is_ok() {
            return Err(WriteError::IndexLocked { top_level: self.top_level.clone(), lock });
        }
        Ok(())
    }

    /// The operations that are in progress, by the names of git's own files.
    pub(crate) fn operations_in_progress(&self) -> Vec<&'static str> {
        let markers =
            ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];
        markers.into_iter().filter(|marker| self.git_dir.join(marker).exists()).collect()
    }

    fn configuration(&self) -> ConfigurationStamps {
        [self.common_dir.join("config"), self.git_dir.join("config.worktree")].map(|file| Stamp::at(&file))
    }

    pub fn head(&self, git: &Git) -> Result<Head> {
        if let Some(head) = self.head_on_disk() {
            return Ok(head);
        }
        let commit = self.resolve_ref(git, "HEAD")?;
        let branch = self.run_optional(git, ["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(Head { commit, branch: branch.as_deref().map(output_text) })
    }

    /// The present HEAD of a repository that was opened before, without a git process; `None` if git must
    /// decide.
    pub(crate) fn head_again(&self, configuration: &ConfigurationStamps) -> Option<Head> {
        let layout = find_layout(&self.top_level)?;
        let now = Repository { object_format: self.object_format.clone(), ..layout };
        if now == *self && now.configuration() == *configuration { now.head_on_disk() } else { None }
    }

    /// HEAD and the branch it points to, read from files; `None` if git must decide.
    pub(crate) fn head_on_disk(&self) -> Option<Head> {
        let digits = if self.object_format == "sha256" { 64 } else { 40 };
        let head = read_regular(&self.git_dir.join("HEAD"), MAX_SMALL_FILE)?;
        if let Some(commit) = parse_id(&head, digits) {
            return Some(Head { commit: Some(commit), branch: None });
        }
        let branch = head.strip_prefix(b"ref: ")?.strip_suffix(b"\n")?;
        let branch = std::str::from_utf8(branch).ok().filter(|branch| is_plain_branch(branch))?;
        let file = self.common_dir.join(branch);
        let commit = if exists(&file)? {
            Some(parse_id(&read_regular(&file, MAX_SMALL_FILE)?, digits)?)
        } else {
            self.packed_ref(branch, digits)?
        };
        Some(Head { commit, branch: Some(branch.to_owned()) })
    }

    /// The commit of a branch in `packed-refs`: `Some(None)` if it is not there, `None` if git must decide.
    fn packed_ref(&self, branch: &str, digits: usize) -> Option<Option<String>> {
        let file = self.common_dir.join("packed-refs");
        if !exists(&file)? {
            return Some(None);
        }
        let packed = read_regular(&file, MAX_PACKED_REFS)?;
        let suffix = [b" ", branch.as_bytes()].concat();
        let mut lines = packed.split(|byte| *byte == b'\n');
        match lines.find_map(|line| line.strip_suffix(suffix.as_slice())) {
            None => Some(None),
            Some(id) => parse_id(&[id, b"\n"].concat(), digits).map(Some),
        }
    }

    pub(crate) fn resolve_ref(&self, git: &Git, reference: &str) -> Result<Option<String>> {
        let id = self.run_optional(git, ["rev-parse", "--verify", "--quiet", reference])?;
        Ok(id.as_deref().map(output_text))
    }

    /// Creates, moves or deletes refs in one transaction; `commands` has the format of
    /// `update-ref --stdin -z`.
    pub(crate) fn update_refs(&self, git: &Git, commands: &[u8], reason: &str) -> Result<()> {
        let call = self.call(["update-ref", "--no-deref", "-m", reason, "--stdin", "-z"]);
        git.run(&self.top_level, Call { input: commands, ..call }).map(drop)
    }

    /// The work tree that has the branch checked out.
    pub(crate) fn worktree_of(&self, git: &Git, branch: &str) -> Result<Option<String>> {
        let path = output_text(&self.run(git, ["for-each-ref", "--format=%(worktreepath)", branch])?);
        Ok(Some(path).filter(|path| !path.is_empty()))
    }
}

/// A branch name that git accepts without exception, and that is one path below the git directory.
fn is_plain_branch(branch: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'#');
    let is_plain_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(is_plain)
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    branch.strip_prefix("refs/heads/").is_some_and(|name| name.split('/').all(is_plain_part))
}

/// An object id followed by a line break.
fn parse_id(line: &[u8], digits: usize) -> Option<String> {
    let id = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id = id.len() == digits && id.bytes().all(is_digit) && id.bytes().any(|byte| byte != b'0');
    is_id.then(|| id.to_owned())
}

/// The configuration of a git directory of ours.
pub(crate) fn git_config(is_bare: bool, object_format: &str) -> String {
    let format = match object_format {
        "sha1" => "\trepositoryformatversion = 0\n".to_owned(),
        other => format!("\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {other}\n"),
    };
    format!("[core]\n\tbare = {is_bare}\n{format}")
}
