//! A cached bare copy of a repository.
//!
//! It is built in a directory of its own and renamed into place, so an interrupted clone never counts as a
//! mirror. A damaged mirror is rebuilt; any other problem is an error and leaves the mirror alone. No object
//! is deleted from a mirror, because checkouts borrow them; for the same reason the objects of a damaged
//! mirror stay beside the new one until that is damaged, too.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use rustix::event::{Timespec, poll};
use rustix::fs::{Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use tempfile::TempDir;

use super::access::{REMOTE, RemoteAccess};
use super::checkout::{BaseCommit, borrow_objects, create_checkout, object_format, old_mirror};
use super::refs::{RemoteRefs, object_format_of, patterns};
use super::url::{RemoteError, RemoteUrl};
use crate::error::{GitError, Result, unless_failed};
use crate::files::{if_exists, remove_directory};
use crate::records::output_text;
use crate::repository::{Repository, git_config};
use crate::run::{Call, Git};

/// The mirror of one repository. Several processes may use it at the same time.
#[derive(Debug, Clone)]
pub struct Mirror {
    access: RemoteAccess,
    url: RemoteUrl,
    dir: PathBuf,
}

impl Mirror {
    /// The mirror of a repository below `mirrors`, which exists. Nothing is read or fetched yet.
    pub fn new(access: RemoteAccess, url: RemoteUrl, mirrors: &Path) -> Mirror {
        let dir = mirrors.join(url.mirror_name());
        Mirror { access, url, dir }
    }

    /// The latest commit of a branch, the commit of a tag, or a commit by its id; by default that of the
    /// default branch. It is in the mirror afterwards.
    pub fn resolve(&self, wanted: Option<&str>) -> Result<BaseCommit, RemoteError> {
        let git = self.access.git();
        let refs = self.list_remote(&git, wanted)?;
        let url = || self.url.to_string();
        let unknown = |wanted: &str| RemoteError::NoRevision { url: url(), revision: wanted.to_owned() };
        let found = match wanted {
            Some(wanted) => refs.find(wanted).ok_or_else(|| unknown(wanted))?,
            None if refs.refs.is_empty() => return Err(RemoteError::Empty { url: url() }),
            None => refs.default_revision().ok_or_else(|| RemoteError::NoDefaultBranch { url: url() })?,
        };
        let _lock = self.lock(&git)?;
        let present = self.read_commit(&git, &found.name)?;
        if present.is_none() || found.commit.is_some() && present != found.commit {
            self.update(&git, refs.object_format())?;
        }
        // A branch may have advanced between the two calls.
        match self.read_commit(&git, &found.name)? {
            Some(commit) => Ok(BaseCommit { commit, branch: found.branch }),
            None => Err(unknown(wanted.unwrap_or(&found.name))),
        }
    }

    /// Creates a checkout in `dir`, which must not exist. Its git directory is its own: commits in it do not
    /// change the mirror, from which it only reads objects. Nothing that the repository contains is executed.
    pub fn check_out(&self, base: &BaseCommit, dir: &Path) -> Result<(), RemoteError> {
        let git = self.access.git();
        let create = || create_checkout(&git, &self.dir, &self.url, base, dir);
        match create() {
            Err(GitError::Failed { stderr, .. }) if names_damage(&stderr) => {
                let _lock = self.lock(&git)?;
                self.rebuild(&git, object_format_of(&base.commit))?;
                remove_directory(dir)?;
                Ok(create()?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// Creates a git directory for a work tree whose own one is unusable: it has the objects of the mirror,
    /// and the files of the commit are tracked.
    pub(crate) fn create_git_dir(
        &self,
        git: &Git,
        commit: &str,
        top_level: &Path,
        temp_dir: &Path,
    ) -> Result<(TempDir, Repository)> {
        let folder = tempfile::Builder::new().prefix("git-").tempdir_in(temp_dir);
        let folder = folder.map_err(GitError::io("create a directory in", temp_dir))?;
        let dir = folder.path();
        let object_format = object_format(git, &self.dir)?;
        create_bare(dir, &object_format)
            .and_then(|()| borrow_objects(dir, &self.dir))
            .map_err(GitError::io("create", dir))?;
        git.run(dir, Call::in_git_dir(dir, ["read-tree", commit]))?;
        let repository = Repository {
            top_level: top_level.to_owned(),
            git_dir: dir.to_owned(),
            common_dir: dir.to_owned(),
            object_format,
        };
        Ok((folder, repository))
    }

    fn lock(&self, git: &Git) -> Result<File> {
        lock(&self.dir.with_extension("lock"), git)
    }

    fn list_remote(&self, git: &Git, wanted: Option<&str>) -> Result<RemoteRefs, RemoteError> {
        let mut args =
            vec!["ls-remote".to_owned(), "--symref".to_owned(), REMOTE.to_owned(), "HEAD".to_owned()];
        args.extend(wanted.into_iter().flat_map(patterns));
        let output = self.access.run(git, Path::new("/"), "read", &self.url, Call::new(args))?;
        Ok(RemoteRefs::parse(&output)?)
    }

    /// The commit of a ref or of an id in the mirror; `None` also if there is no usable mirror.
    fn read_commit(&self, git: &Git, name: &str) -> Result<Option<String>> {
        let commit = format!("{name}^{{commit}}");
        let call = Call::in_git_dir(&self.dir, ["rev-parse", "--verify", "--quiet", commit.as_str()]);
        let id = unless_failed(git.run(Path::new("/"), call))?;
        Ok(id.as_deref().map(output_text))
    }

    /// Fetches all branches and tags. The caller holds the lock.
    fn update(&self, git: &Git, object_format: &str) -> Result<(), RemoteError> {
        if self.dir.join("HEAD").is_file() {
            remove_stale_locks(&self.dir)?;
            match self.fetch(git, &self.dir) {
                Err(RemoteError::Failed { message, .. }) if names_damage(&message) => {}
                outcome => return outcome,
            }
        }
        self.rebuild(git, object_format)
    }

    fn fetch(&self, git: &Git, dir: &Path) -> Result<(), RemoteError> {
        let args = [
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            REMOTE,
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ];
        self.access.run(git, dir, "fetch", &self.url, Call::in_git_dir(dir, args)).map(drop)
    }

    /// Replaces the mirror by a new clone. If that fails, the old one stays.
    fn rebuild(&self, git: &Git, object_format: &str) -> Result<(), RemoteError> {
        let (new, old) = (self.dir.with_extension("new"), old_mirror(&self.dir));
        remove_directory(&new)?;
        create_bare(&new, object_format).map_err(GitError::io("create", &new))?;
        self.fetch(git, &new)?;
        if self.dir.exists() {
            remove_directory(&old)?;
            fs::rename(&self.dir, &old).map_err(GitError::io("replace", &self.dir))?;
            // Without refs, git does not expect that the old objects are complete.
            remove_directory(&old.join("refs"))?;
        }
        Ok(fs::rename(&new, &self.dir).map_err(GitError::io("replace", &self.dir))?)
    }
}

/// Deletes the mirrors that were used last before this time. No checkout may read their objects any more.
pub fn delete_unused_mirrors(mirrors: &Path, used_before: SystemTime) -> Result<()> {
    for entry in fs::read_dir(mirrors).map_err(GitError::io("read", mirrors))?.flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        let lock = lock_unused(&path, used_before).map_err(GitError::io("lock", &path))?;
        let mirror = path.with_extension("git");
        if lock.is_none() {
            continue;
        }
        // An interrupted deletion must not leave a part of a mirror in its place.
        let removed = mirror.with_extension("new");
        remove_directory(&removed)?;
        if_exists(fs::rename(&mirror, &removed)).map_err(GitError::io("delete", &mirror))?;
        remove_directory(&removed)?;
        remove_directory(&old_mirror(&mirror))?;
    }
    Ok(())
}

fn create_bare(dir: &Path, object_format: &str) -> io::Result<()> {
    for folder in ["objects/info", "objects/pack", "refs/heads"] {
        fs::create_dir_all(dir.join(folder))?;
    }
    fs::write(dir.join("config"), git_config(true, object_format))?;
    fs::write(dir.join("HEAD"), "ref: refs/heads/main\n")
}

/// Deletes the lock files of git processes that were killed. The caller holds the lock of the mirror, so none
/// is in use.
fn remove_stale_locks(dir: &Path) -> Result<()> {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(GitError::io("read", &folder))?.flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("objects") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lock") {
                fs::remove_file(&path).map_err(GitError::io("delete", &path))?;
            }
        }
    }
    Ok(())
}

/// Whether git says that the mirror is damaged. A full disk, missing rights or an unreachable repository are
/// no damage.
fn names_damage(message: &str) -> bool {
    const TEXTS: [&str; 18] = [
        "corrupt",
        "bad object",
        "bad config",
        "bad pack",
        "bad signature",
        "packfile",
        "loose object",
        "object file",
        "nonexistent object",
        "not a valid object",
        "not a git repository",
        "unable to parse",
        "unable to unpack",
        "failed to unpack tree object",
        "unable to read sha1 file",
        "unable to read tree",
        "did not send all necessary objects",
        "unable to resolve reference",
    ];
    TEXTS.iter().any(|text| message.contains(text))
}

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for the lock as long as the time limit of `git` permits, and records the use of the mirror as the
/// modification time of the lock's file. The file is never deleted, because a process may wait for its lock;
/// the kernel releases the lock when its holder ends.
fn lock(path: &Path, git: &Git) -> Result<File> {
    let failed = |error| GitError::io("lock", path)(error);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => {
                record_use(&file).map_err(failed)?;
                return Ok(file);
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let remaining = git.remaining();
        if git.is_cancelled() {
            return Err(GitError::Cancelled { command: "fetch".to_owned() });
        }
        if remaining.is_zero() {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        let pause = Timespec::try_from(remaining.min(POLL_INTERVAL))
            .map_err(|error| failed(io::Error::other(error)))?;
        // An interrupted pause only polls sooner.
        let _ = poll(&mut [], Some(&pause));
    }
}

fn record_use(file: &File) -> io::Result<()> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
    Ok(futimens(file, &times)?)
}

/// The lock of a mirror that was used last before this time; `None` if another process has it, or if it was
/// used since.
fn lock_unused(path: &Path, used_before: SystemTime) -> io::Result<Option<File>> {
    let file = File::options().write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok((file.metadata()?.modified()? < used_before).then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_damaged_mirror_is_rebuilt() {
        for message in [
            "fatal: unable to access 'https://h/': Could not resolve host: h",
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
            "fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
            "error: unable to create file a: No space left on device",
            "fatal: cannot create directory at 'a': Permission denied",
            "error: unable to write file a",
        ] {
            assert!(!names_damage(message), "{message}");
        }
        for message in [
            "error: packfile x.pack claims to have 3 objects",
            "fatal: bad object HEAD",
            "fatal: failed to unpack tree object c0ffee",
            "error: unable to read sha1 file of a (c0ffee)",
            "fatal: not a git repository: '/m'",
        ] {
            assert!(names_damage(message), "{message}");
        }
    }
}
