//! Creates the checkout of a task: a git directory of its own that borrows the objects of the mirror.
//!
//! The configuration of the checkout is written here, so git finds no hook, filter or other command in it,
//! whatever the files of the repository contain. Files are written byte for byte; submodules are not checked
//! out. HEAD is detached unless the task starts from a branch.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::url::RemoteUrl;
use crate::error::{GitError, Result};
use crate::records::output_text;
use crate::run::{Call, Git};
use crate::scratch::ATTRIBUTES;

pub(super) fn create_checkout(
    git: &Git,
    mirror: &Path,
    url: &RemoteUrl,
    base: &BaseCommit,
    dir: &Path,
) -> Result<()> {
    let BaseCommit { commit, branch } = base;
    let format = format!("--object-format={}", object_format(git, mirror)?);
    fs::create_dir(dir).map_err(GitError::io("create", dir))?;
    let initial = format!("--initial-branch={}", branch.as_deref().unwrap_or("main"));
    git.run(dir, Call::new(["init", "--quiet", "--template=", &format, &initial, "."]))?;
    let git_dir = dir.join(".git");
    configure(&git_dir, mirror, url, branch.as_deref()).map_err(GitError::io("configure", &git_dir))?;
    let in_checkout = |args: &[&str]| {
        let mut work_tree = OsString::from("--work-tree=");
        work_tree.push(dir);
        let mut call = Call::in_git_dir(&git_dir, args);
        call.options.push(work_tree);
        git.run(dir, call)
    };
    let references = match branch {
        Some(branch) => vec![format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")],
        None => vec!["HEAD".to_owned()],
    };
    for reference in references {
        in_checkout(&["update-ref", "--no-deref", &reference, commit])?;
    }
    let attributes = git_dir.join("info/attributes");
    fs::write(&attributes, ATTRIBUTES).map_err(GitError::io("write", &attributes))?;
    in_checkout(&["read-tree", "--reset", "-u", commit])?;
    fs::remove_file(&attributes).map_err(GitError::io("delete", &attributes))
}

pub(super) fn object_format(git: &Git, mirror: &Path) -> Result<String> {
    let format = git.run(mirror, Call::in_git_dir(mirror, ["rev-parse", "--show-object-format"]))?;
    Ok(output_text(&format))
}

/// Makes a git directory read the objects of the mirror and of the one that was in its place before.
pub(super) fn borrow_objects(git_dir: &Path, mirror: &Path) -> io::Result<()> {
    let mut alternates = Vec::new();
    for objects in [mirror.join("objects"), old_mirror(mirror).join("objects")] {
        // git complains about a missing directory with every command.
        fs::create_dir_all(&objects)?;
        alternates.extend_from_slice(objects.as_os_str().as_encoded_bytes());
        alternates.push(b'\n');
    }
    fs::create_dir_all(git_dir.join("objects/info"))?;
    fs::write(git_dir.join("objects/info/alternates"), alternates)
}

/// Size and time alone identify an unchanged file, so that a copy of the checkout needs no new index.
fn configure(git_dir: &Path, mirror: &Path, url: &RemoteUrl, branch: Option<&str>) -> io::Result<()> {
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut config = format!(
        "[core]\n\ttrustctime = false\n\tcheckStat = minimal\n\
         [remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        quote(&url.to_string()),
    );
    if let Some(branch) = branch {
        let (name, merged) = (quote(branch), quote(&format!("refs/heads/{branch}")));
        config.push_str(&format!("[branch {name}]\n\tremote = origin\n\tmerge = {merged}\n"));
    }
    let path = git_dir.join("config");
    let existing = fs::read_to_string(&path)?;
    fs::write(path, existing + &config)?;
    fs::create_dir_all(git_dir.join("info"))?;
    borrow_objects(git_dir, mirror)
}

/// The commit that a task starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseCommit {
    pub commit: String,
    /// The name of its branch, without `refs/heads/`; `None` if a tag or a commit was requested.
    pub branch: Option<String>,
}

/// Where the objects of the previous mirror are, which running checkouts may need.
pub(super) fn old_mirror(mirror: &Path) -> PathBuf {
    mirror.with_extension("old")
}
