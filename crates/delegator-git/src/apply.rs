//! Doing what was looked at: files, then the index, then, if asked, HEAD and its branch.
//!
//! git's own lock on the index is held all the while, so no other git command of the work tree comes in between. At the
//! end the files are compared with what was to be written; what is not as it should be is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::capture::{RAW, WORK};
use crate::error::{GitError, RestoreError};
use crate::index_file::IndexFile;
use crate::listing::{RepoPath, changes, joined, on_disk, shown};
use crate::look::{Prospect, TARGET, file_mode};
use crate::point::{RestorePoint, StoredIndex};
use crate::record::{existing, pack_into};
use crate::survey::ancestors;

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
        let touched: BTreeSet<&RepoPath> = self.sorted.write.iter().chain(&self.sorted.remove).collect();
        if let Some(change) = changed.iter().find(|change| touched.contains(&change.path)) {
            return Err(RestoreError::Changed { what: shown(&change.path) });
        }
        if IndexFile::read(&self.scratch)?.entries != self.present.index.entries {
            return Err(RestoreError::Changed { what: "the index".to_owned() });
        }
        Ok(())
    }

    fn files(&self) -> Result<(), GitError> {
        let top = &self.scratch.repository.top_level;
        let opened = self.open_directories()?;
        for path in &self.sorted.remove {
            remove_file(&on_disk(top, path))?;
            if self.kept.is_none() {
                remove_empty_above(top, &on_disk(top, path));
            }
        }
        for path in &self.directories.remove {
            remove_directory(&on_disk(top, path))?;
        }
        if !self.sorted.write.is_empty() {
            // A folder that is empty by now makes room for a file.
            for path in &self.sorted.write {
                let _ = fs::remove_dir(on_disk(top, path));
            }
            let paths = joined(self.sorted.write.iter().map(Vec::as_slice));
            self.scratch.run(TARGET, ["checkout-index", "-u", "-z", "--force", "--stdin"], &paths)?;
            // Before the permissions: changing them changes the time by which git trusts what it wrote.
            self.verify_written()?;
        }
        for path in &self.directories.make {
            make_directory(&on_disk(top, path))?;
        }
        self.permissions(opened)
    }

    /// Makes the directories writable in which something changes. Returns the permissions they had.
    fn open_directories(&self) -> Result<BTreeMap<RepoPath, u32>, GitError> {
        let top = &self.scratch.repository.top_level;
        let directories = &self.directories;
        let changed = self.sorted.write.iter().chain(&self.sorted.remove);
        let changed = changed.chain(&directories.make).chain(&directories.remove);
        let above: BTreeSet<&[u8]> = changed.flat_map(|path| ancestors(path)).collect();
        let mut opened = BTreeMap::new();
        for path in above {
            let Some(mode) = directory_mode(top, path).filter(|mode| mode & 0o700 != 0o700) else { continue };
            set_mode(&on_disk(top, path), mode | 0o700)?;
            opened.insert(path.to_vec(), mode);
        }
        Ok(opened)
    }

    /// Gives files and directories the permissions they had, the innermost first.
    fn permissions(&self, opened: BTreeMap<RepoPath, u32>) -> Result<(), GitError> {
        let top = &self.scratch.repository.top_level;
        let mut directories = opened;
        if let Some(kept) = &self.kept {
            let written = self.sorted.write.iter();
            let written = written.filter_map(|path| Some((path, kept.survey.file_mode(path)?)));
            for (path, mode) in written.chain(self.sorted.modes.iter().map(|(path, mode)| (path, *mode))) {
                if file_mode(top, path).is_some_and(|now| now != mode) {
                    set_mode(&on_disk(top, path), mode)?;
                }
            }
            directories
                .extend(kept.survey.directories.iter().map(|(path, found)| (path.clone(), found.mode)));
        }
        for (path, mode) in directories.into_iter().rev() {
            if directory_mode(top, &path).is_some_and(|now| now != mode) {
                set_mode(&on_disk(top, &path), mode)?;
            }
        }
        Ok(())
    }

    fn verify_written(&self) -> Result<(), GitError> {
        let still = changes(&self.scratch.run(TARGET, RAW, b"")?, "diff-files")?;
        let written: BTreeSet<&RepoPath> = self.sorted.write.iter().collect();
        match still.iter().find(|change| written.contains(&change.path)) {
            Some(change) => {
                let problem = io::Error::other("it is not as it was written");
                Err(GitError::io("write", shown(&change.path))(problem))
            }
            None => Ok(()),
        }
    }

    fn index(&self, lock: IndexLock) -> Result<(), GitError> {
        if !self.plan.index_differs {
            return Ok(());
        }
        let (point, place) = (&self.point, self.scratch.repository.index());
        let written = match (&self.kept, point.index, &point.index_tree) {
            (Some(_), StoredIndex::Missing, _) => lock.remove(&place),
            (Some(kept), StoredIndex::File, _) => {
                self.copy_index_objects(&kept.index)?;
                lock.commit(kept.index.bytes.as_deref().unwrap_or_default(), &place, point.index_time)
            }
            (_, _, Some(tree)) => {
                let bytes = self.index_of_tree(tree)?;
                self.copy_index_objects(&IndexFile::parse(bytes.clone(), self.scratch.id_bytes())?)?;
                lock.commit(&bytes, &place, None)
            }
            (_, _, None) => return Ok(()),
        };
        written.map_err(GitError::io("write", &place))
    }

    /// The present index with the entries of a tree: what git knows of unchanged files stays.
    fn index_of_tree(&self, tree: &str) -> Result<Vec<u8>, GitError> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let special = self.present.index.entries.iter().filter(|entry| entry.is_special());
        let special = joined(special.map(|entry| entry.path.as_slice()));
        if !special.is_empty() {
            scratch.run(name, ["update-index", "-z", "--force-remove", "--stdin"], &special)?;
        }
        scratch.run(name, ["read-tree", "--reset", tree], b"")?;
        fs::read(scratch.path(name)).map_err(GitError::io("read", scratch.path(name)))
    }

    /// The user's git does not read our store: what the index names and only the store has goes to the repository.
    fn copy_index_objects(&self, index: &IndexFile) -> Result<(), GitError> {
        let scratch = &self.scratch;
        let repository_objects = scratch.repository_objects();
        let ids: String = index.objects().into_iter().map(|id| format!("{id}\n")).collect();
        let check = ["cat-file", "--buffer", "--batch-check"];
        let answer = scratch.run_in_objects((&repository_objects, &[]), check, ids.as_bytes())?;
        let answer = String::from_utf8_lossy(&answer);
        let missing = answer.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned);
        // What neither has was missing before, as in a partial clone.
        let missing = existing(scratch, missing.collect())?;
        if missing.is_empty() {
            return Ok(());
        }
        let others = [scratch.store().objects(), scratch.path("objects")];
        let base = repository_objects.join("pack/pack");
        pack_into(scratch, (&repository_objects, &others), &base, &missing).map(drop)
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

fn remove_file(file: &Path) -> Result<(), GitError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io("remove", file)(error)),
        _ => Ok(()),
    }
}

/// Removes the directories above a file that are empty now.
fn remove_empty_above(top_level: &Path, file: &Path) {
    let mut folder = file.parent();
    while let Some(above) = folder.filter(|above| *above != top_level && above.starts_with(top_level)) {
        if fs::remove_dir(above).is_err() {
            break;
        }
        folder = above.parent();
    }
}

/// Something may have been put there since; then it stays.
fn remove_directory(directory: &Path) -> Result<(), GitError> {
    match fs::remove_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
            Ok(())
        }
        removed => removed.map_err(GitError::io("remove", directory)),
    }
}

fn make_directory(directory: &Path) -> Result<(), GitError> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        made => made.map_err(GitError::io("create", directory)),
    }
}

fn directory_mode(top_level: &Path, path: &[u8]) -> Option<u32> {
    let found = fs::symlink_metadata(on_disk(top_level, path)).ok()?;
    found.is_dir().then(|| found.permissions().mode() & 0o7777)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), GitError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(GitError::io("set the mode of", path))
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

    /// `modified` is the time the index file had; by it git decides which entries it has to compare again.
    fn commit(mut self, bytes: &[u8], index: &Path, modified: Option<(u64, u32)>) -> io::Result<()> {
        if let Ok(found) = fs::metadata(index) {
            self.file.set_permissions(found.permissions())?;
        }
        self.file.write_all(bytes)?;
        if let Some((seconds, nanoseconds)) = modified {
            self.file.set_modified(UNIX_EPOCH + Duration::new(seconds, nanoseconds))?;
        }
        self.file.sync_all()?;
        fs::rename(&self.path, index)
    }

    fn remove(self, index: &Path) -> io::Result<()> {
        fs::remove_file(index)
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
