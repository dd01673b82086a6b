//! Finds a repository with its HEAD and its settings, usually with one git process.
//!
//! The git directory and HEAD are read here if they have the layout that git itself writes: a `.git` directory or a linked
//! worktree, and refs in files. git reads the configuration, which decides whether that layout is valid. In every other
//! case git answers all questions, so that no rule of git is repeated here that depends on more than these files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::config::{Settings, read_settings};
use super::locate::{Head, Repository, find_repository};
use crate::error::GitError;
use crate::files::read_regular;
use crate::records::on_disk;
use crate::run::Git;
use crate::stamp::Stamp;

/// A larger file is left to git.
const MAX_SMALL_FILE: u64 = 4 << 10;
const MAX_PACKED_REFS: u64 = 4 << 20;

/// A repository, its HEAD and its settings at one moment.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) repository: Repository,
    pub(crate) head: Head,
    pub(crate) settings: Settings,
    /// Stamps of the configuration files that made the layout valid; `None` if git found the repository.
    pub(crate) configuration: Option<ConfigurationStamps>,
}

/// Stamps of the repository's own configuration files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigurationStamps([Option<Stamp>; 2]);

impl ConfigurationStamps {
    fn read(layout: &Repository) -> ConfigurationStamps {
        ConfigurationStamps([
            Stamp::at(&layout.common_dir.join("config")),
            Stamp::at(&layout.git_dir.join("config.worktree")),
        ])
    }
}

/// Finds the work tree that contains `dir`; `None` outside a work tree and in a bare repository.
pub(crate) fn open(git: &Git, dir: &Path) -> Result<Option<Opened>, GitError> {
    if let Some(opened) = find_layout(dir).and_then(|layout| open_layout(git, layout)) {
        return Ok(Some(opened));
    }
    let Some(repository) = find_repository(git, dir)? else { return Ok(None) };
    let head = repository.head(git)?;
    let settings = repository.settings(git)?;
    Ok(Some(Opened { repository, head, settings, configuration: None }))
}

/// `None` if git must decide.
fn open_layout(git: &Git, layout: Repository) -> Option<Opened> {
    let configuration = ConfigurationStamps::read(&layout);
    let read = read_settings(git, &layout.top_level, &layout.git_dir).ok()?;
    let format = read.format.as_ref()?;
    let repository = Repository { object_format: format.object_format.to_owned(), ..layout };
    let head = match format.has_ref_files {
        true => repository.head_on_disk()?,
        false => repository.head(git).ok()?,
    };
    Some(Opened { repository, head, settings: read.settings, configuration: Some(configuration) })
}

impl Opened {
    /// The present HEAD of a repository that was opened before, without a git process; `None` if git must decide.
    pub(crate) fn head_again(before: &Repository, configuration: &ConfigurationStamps) -> Option<Head> {
        let layout = find_layout(&before.top_level)?;
        let now = Repository { object_format: before.object_format.clone(), ..layout };
        let is_same = now == *before && ConfigurationStamps::read(&now) == *configuration;
        if is_same { now.head_on_disk() } else { None }
    }
}

/// Searches `dir` and the directories above it like git, without reading its configuration. `None` if there is no repository or
/// git must decide.
pub(crate) fn find_layout(dir: &Path) -> Option<Repository> {
    let dir = dir.canonicalize().ok()?;
    let device = fs::metadata(&dir).ok()?.dev();
    for top_level in dir.ancestors() {
        // git does not search on another file system.
        if fs::metadata(top_level).ok()?.dev() != device || is_bare(top_level) {
            return None;
        }
        let dot_git = top_level.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
            Ok(found) if found.is_dir() => return with_git_dir(top_level, &dot_git),
            Ok(found) if found.is_file() => {
                let target = read_regular(&dot_git, MAX_SMALL_FILE, false)?;
                let target = target.strip_prefix(b"gitdir: ")?.strip_suffix(b"\n")?;
                return with_git_dir(top_level, &on_disk(top_level, target));
            }
            Ok(_) => return None,
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
    let common_dir = match fs::symlink_metadata(git_dir.join("commondir")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => git_dir.clone(),
        Err(_) => return None,
        Ok(_) => {
            let target = read_regular(&git_dir.join("commondir"), MAX_SMALL_FILE, false)?;
            on_disk(&git_dir, target.strip_suffix(b"\n")?).canonicalize().ok()?
        }
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
    /// HEAD and the branch it points to, read from files; `None` if git must decide.
    pub(crate) fn head_on_disk(&self) -> Option<Head> {
        let digits = if self.object_format == "sha256" { 64 } else { 40 };
        let head = read_regular(&self.git_dir.join("HEAD"), MAX_SMALL_FILE, false)?;
        if let Some(commit) = parse_id(&head, digits) {
            return Some(Head { commit: Some(commit), branch: None });
        }
        let branch = head.strip_prefix(b"ref: ")?.strip_suffix(b"\n")?;
        let branch = std::str::from_utf8(branch).ok().filter(|branch| is_plain_branch(branch))?;
        let file = self.common_dir.join(branch);
        let commit = match fs::symlink_metadata(&file) {
            Ok(_) => Some(parse_id(&read_regular(&file, MAX_SMALL_FILE, false)?, digits)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.packed_ref(branch, digits)?,
            Err(_) => return None,
        };
        Some(Head { commit, branch: Some(branch.to_owned()) })
    }

    /// The commit of a branch in `packed-refs`: `Some(None)` if it is not there, `None` if git must decide.
    fn packed_ref(&self, branch: &str, digits: usize) -> Option<Option<String>> {
        let file = self.common_dir.join("packed-refs");
        let packed = match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(None),
            Err(_) => return None,
            Ok(_) => read_regular(&file, MAX_PACKED_REFS, false)?,
        };
        let suffix = [b" ", branch.as_bytes()].concat();
        let mut lines = packed.split(|byte| *byte == b'\n');
        match lines.find_map(|line| line.strip_suffix(suffix.as_slice())) {
            None => Some(None),
            Some(id) => parse_id(&[id, b"\n"].concat(), digits).map(Some),
        }
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
