//! Doing what was looked at: files, then the index, then, if asked, HEAD and its branch.
//!
//! git's own lock on the index is held all the while, so no other git command of the work tree comes in between. At the
//! end the files are compared with what was to be written; what is not as it should be is told.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::capture::{RAW, WORK, index_tree};
use crate::error::{GitError, RestoreError};
use crate::listing::{RepoPath, changes, joined, on_disk, shown};
use crate::look::{Prospect, TARGET};
use crate::point::RestorePoint;

const REASON: &str = "mcp-delegator: restore";

impl Prospect {
    /// Whether HEAD and its branch could be brought back; asked before anything is changed.
    pub fn check_head(&self) -> Result<(), RestoreError> {
        let Some(branch) = self.point.branch.as_ref().filter(|_| self.plan.head_moved) else { return Ok(()) };
        let repository = &self.scratch.repository;
        match repository.worktree_of(&self.scratch.git, branch)? {
            Some(worktree) if Path::new(&worktree) != repository.top_level => {
                Err(RestoreError::CheckedOutElsewhere { branch: branch.clone(), worktree })
            }
            _ => Ok(()),
        }
    }

    /// Brings files and index back, and with `and_head` HEAD and its branch. `undo` is where the present state is kept.
    pub fn apply(self, undo: &RestorePoint, and_head: bool) -> Result<(), RestoreError> {
        let repository = &self.scratch.repository;
        let lock = IndexLock::take(&repository.git_dir.join("index.lock")).map_err(|source| match source
            .kind()
        {
            io::ErrorKind::AlreadyExists => RestoreError::Locked {
                top_level: repository.top_level.clone(),
                lock: repository.git_dir.join("index.lock"),
            },
            _ => GitError::io("lock the index of", &repository.top_level)(source).into(),
        })?;
        self.refuse_if_changed()?;
        let done = self.files().and_then(|()| self.index(lock)).and_then(|()| match and_head {
            true => self.head(),
            false => Ok(()),
        });
        done.map_err(|problem| RestoreError::Half {
            problem: problem.to_string(),
            undo: undo.reference.clone(),
        })
    }

    /// What was changed since it was kept is in no undo point.
    fn refuse_if_changed(&self) -> Result<(), RestoreError> {
        let changed = changes(&self.scratch.run(WORK, RAW, b"")?, "diff-files")?;
        let touched: BTreeSet<&RepoPath> = self.write.iter().chain(&self.remove).collect();
        if let Some(change) = changed.iter().find(|change| touched.contains(&change.path)) {
            return Err(RestoreError::Changed { what: shown(&change.path) });
        }
        self.scratch.copy_index("again")?;
        if index_tree(&self.scratch, "again")? != self.captured.index_tree {
            return Err(RestoreError::Changed { what: "the index".to_owned() });
        }
        Ok(())
    }

    fn files(&self) -> Result<(), GitError> {
        let top = &self.scratch.repository.top_level;
        for path in &self.remove {
            remove(top, &on_disk(top, path))?;
        }
        if !self.write.is_empty() {
            // A folder that is empty by now makes room for a file.
            for path in &self.write {
                let _ = fs::remove_dir(on_disk(top, path));
            }
            let paths = joined(self.write.iter().map(Vec::as_slice));
            self.scratch.run(TARGET, ["checkout-index", "-u", "-z", "--force", "--stdin"], &paths)?;
        }
        let still = changes(&self.scratch.run(TARGET, RAW, b"")?, "diff-files")?;
        let written: BTreeSet<&RepoPath> = self.write.iter().collect();
        match still.iter().find(|change| written.contains(&change.path)) {
            Some(change) => {
                let problem = io::Error::other("it is not as it was written");
                Err(GitError::io("write", shown(&change.path))(problem))
            }
            None => Ok(()),
        }
    }

    fn index(&self, lock: IndexLock) -> Result<(), GitError> {
        let Some(tree) = self.point.index_tree.as_ref().filter(|_| self.plan.index_differs) else {
            return Ok(());
        };
        let scratch = &self.scratch;
        scratch.copy_index("new")?;
        scratch.run("new", ["read-tree", "--reset", tree], b"")?;
        let place = scratch.repository.index();
        let bytes = fs::read(scratch.path("new")).map_err(GitError::io("read", scratch.path("new")))?;
        lock.commit(&bytes, &place).map_err(GitError::io("write", &place))
    }

    fn head(&self) -> Result<(), GitError> {
        if !self.plan.head_moved {
            return Ok(());
        }
        let (repository, git) = (&self.scratch.repository, &self.scratch.git);
        match (&self.point.branch, &self.point.head) {
            (Some(branch), head) => {
                let now = repository.value(git, branch)?;
                let command = match (head, &now) {
                    (Some(head), Some(now)) => format!("update {branch}\0{head}\0{now}\0"),
                    (Some(head), None) => format!("create {branch}\0{head}\0"),
                    (None, Some(now)) => format!("delete {branch}\0{now}\0"),
                    (None, None) => String::new(),
                };
                repository.update_refs(git, command.as_bytes(), REASON)?;
                let point_there = repository.call(["symbolic-ref", "-m", REASON, "HEAD", branch]);
                git.run(&repository.top_level, &point_there).map(drop)
            }
            (None, Some(head)) => {
                let detach = repository.call(["update-ref", "--no-deref", "-m", REASON, "HEAD", head]);
                git.run(&repository.top_level, &detach).map(drop)
            }
            (None, None) => Ok(()),
        }
    }
}

/// Removes a file, and the folders that are empty without it.
fn remove(top_level: &Path, file: &Path) -> Result<(), GitError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(GitError::io("remove", file)(error));
        }
        _ => {}
    }
    let mut folder = file.parent();
    while let Some(above) = folder.filter(|above| *above != top_level && above.starts_with(top_level)) {
        if fs::remove_dir(above).is_err() {
            break;
        }
        folder = above.parent();
    }
    Ok(())
}

/// git's lock on an index: a file beside it, which becomes the index or goes.
struct IndexLock {
    path: PathBuf,
    file: File,
}

impl IndexLock {
    fn take(path: &Path) -> io::Result<IndexLock> {
        let file = File::options().write(true).create_new(true).mode(0o666).open(path)?;
        Ok(IndexLock { path: path.to_owned(), file })
    }

    fn commit(mut self, bytes: &[u8], index: &Path) -> io::Result<()> {
        if let Ok(found) = fs::metadata(index) {
            self.file.set_permissions(found.permissions())?;
        }
        self.file.write_all(bytes)?;
        self.file.sync_all()?;
        fs::rename(&self.path, index)
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // After a commit the name is gone; a lock somebody else has taken since has another file behind it.
        let ours = self.file.metadata().ok();
        let there = fs::symlink_metadata(&self.path).ok();
        if let (Some(ours), Some(there)) = (ours, there) {
            use std::os::unix::fs::MetadataExt;
            if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}
