//! Applies a prepared restore: files first, then the index, then, on request, HEAD and its branch.
//!
//! git's own index lock is held throughout, so no other git command changes the index meanwhile. After the files are
//! written they are compared with their target versions; any difference is an error. A failure half-way is reported as
//! [`RestoreError::Incomplete`] with the undo point. Nothing may change before the undo point exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::capture::{RAW_DIFF_ARGS, WORK_INDEX};
use crate::directory_modes::ancestors;
use crate::error::{GitError, RestoreError};
use crate::index_file::{Entry, IndexFile};
use crate::listing::{RepoPath, display_path, join_records, on_disk, parse_raw_diff, path_records};
use crate::restore_plan::{PreparedRestore, TARGET_INDEX, file_mode};
use crate::restore_point::{RestorePoint, StoredIndex};
use crate::restore_target::{HeadTarget, IndexEdits, IndexTarget};
use crate::write_restore_point::{existing_objects, pack_into};

const REFLOG_MESSAGE: &str = "mcp-delegator: restore";

impl PreparedRestore {
    /// Fails if HEAD's branch is checked out in another work tree. Call this before anything is changed.
    pub fn check_head(&self) -> Result<(), RestoreError> {
        let is_moved = self.plan.head_target == HeadTarget::Moves;
        let Some(branch) = self.point.branch.as_ref().filter(|_| is_moved) else { return Ok(()) };
        let repository = &self.scratch.repository;
        match repository.worktree_of(&self.scratch.git, branch)? {
            Some(worktree) if Path::new(&worktree) != repository.top_level => {
                Err(RestoreError::CheckedOutElsewhere { branch: branch.clone(), worktree })
            }
            _ => Ok(()),
        }
    }

    /// Restores files and index, and with `and_head` also HEAD and its branch. `undo` is the restore point of the
    /// present state. Must not be called if the plan has overlaps.
    pub fn apply(self, undo: &RestorePoint, and_head: bool) -> Result<(), RestoreError> {
        let repository = &self.scratch.repository;
        let lock = IndexLock::take(&repository.git_dir.join("index.lock")).map_err(|source| match source
            .kind()
        {
            io::ErrorKind::AlreadyExists => RestoreError::IndexLocked {
                top_level: repository.top_level.clone(),
                lock: repository.git_dir.join("index.lock"),
            },
            _ => GitError::io("lock the index of", &repository.top_level)(source).into(),
        })?;
        self.refuse_if_changed()?;
        let result =
            self.restore_files().and_then(|()| self.restore_index(lock)).and_then(|()| match and_head {
                true => self.restore_head(),
                false => Ok(()),
            });
        result.map_err(|problem| RestoreError::Incomplete {
            problem: problem.to_string(),
            undo: undo.reference.clone(),
        })?;
        // Without it only the whole tree can be undone, and an error then says so.
        let _ = self.store_end_state(undo);
        Ok(())
    }

    /// Changes made since the undo point was created are not in it, so they must not be overwritten.
    fn refuse_if_changed(&self) -> Result<(), RestoreError> {
        let changed = parse_raw_diff(&self.scratch.run(WORK_INDEX, RAW_DIFF_ARGS, b"")?)?;
        let planned: BTreeSet<&RepoPath> = self.actions.write.iter().chain(&self.actions.remove).collect();
        if let Some(change) = changed.iter().find(|change| planned.contains(&change.path)) {
            return Err(RestoreError::ConcurrentChange { what: display_path(&change.path) });
        }
        if IndexFile::read(&self.scratch)?.entries != self.present.index.entries {
            return Err(RestoreError::ConcurrentChange { what: "the index".to_owned() });
        }
        Ok(())
    }

    fn restore_files(&self) -> Result<(), GitError> {
        let top = &self.scratch.repository.top_level;
        let original_modes = self.make_directories_writable()?;
        for path in &self.actions.remove {
            remove_file(&on_disk(top, path))?;
        }
        for path in &self.directories.remove {
            remove_directory(&on_disk(top, path))?;
        }
        if !self.actions.write.is_empty() {
            // `checkout-index` cannot replace a directory, so remove directories that are empty by now.
            for path in &self.actions.write {
                let _ = fs::remove_dir(on_disk(top, path));
            }
            let paths = join_records(self.actions.write.iter().map(Vec::as_slice));
            self.scratch.run(TARGET_INDEX, ["checkout-index", "-u", "-z", "--force", "--stdin"], &paths)?;
            // Verify before the permissions are set: `chmod` changes the ctime by which git recognises the files it
            // wrote.
            self.verify_written()?;
        }
        for path in &self.directories.make {
            make_directory(&on_disk(top, path))?;
        }
        self.restore_permissions(original_modes)
    }

    /// Makes every directory in which something changes writable. Returns the original permissions.
    fn make_directories_writable(&self) -> Result<BTreeMap<RepoPath, u32>, GitError> {
        let top = &self.scratch.repository.top_level;
        let directories = &self.directories;
        let changed = self.actions.write.iter().chain(&self.actions.remove);
        let changed = changed.chain(&directories.make).chain(&directories.remove);
        let parents: BTreeSet<&[u8]> = changed.flat_map(|path| ancestors(path)).collect();
        let mut original_modes = BTreeMap::new();
        for path in parents {
            let Some(mode) = directory_mode(top, path).filter(|mode| mode & 0o700 != 0o700) else { continue };
            set_mode(&on_disk(top, path), mode | 0o700)?;
            original_modes.insert(path.to_vec(), mode);
        }
        Ok(original_modes)
    }

    /// Sets the recorded permissions of files and directories, innermost directories first.
    fn restore_permissions(&self, original_modes: BTreeMap<RepoPath, u32>) -> Result<(), GitError> {
        let top = &self.scratch.repository.top_level;
        let mut directories = original_modes;
        let survey = &self.target.survey;
        let written = self.actions.write.iter();
        let written = written.filter_map(|path| Some((path, survey.file_mode(path)?)));
        for (path, mode) in written.chain(self.actions.modes.iter().map(|(path, mode)| (path, *mode))) {
            if file_mode(top, path).is_some_and(|now| now != mode) {
                set_mode(&on_disk(top, path), mode)?;
            }
        }
        directories.extend(survey.directories.iter().map(|(path, found)| (path.clone(), found.mode)));
        for (path, mode) in directories.into_iter().rev() {
            if directory_mode(top, &path).is_some_and(|now| now != mode) {
                set_mode(&on_disk(top, &path), mode)?;
            }
        }
        Ok(())
    }

    fn verify_written(&self) -> Result<(), GitError> {
        let differing = parse_raw_diff(&self.scratch.run(TARGET_INDEX, RAW_DIFF_ARGS, b"")?)?;
        let written: BTreeSet<&RepoPath> = self.actions.write.iter().collect();
        match differing.iter().find(|change| written.contains(&change.path)) {
            Some(change) => {
                let problem = io::Error::other("its content differs after writing");
                Err(GitError::io("write", display_path(&change.path))(problem))
            }
            None => Ok(()),
        }
    }

    fn restore_index(&self, lock: IndexLock) -> Result<(), GitError> {
        let (point, index_path) = (&self.point, self.scratch.repository.index());
        let written = match (&self.target.index, point.index, &point.index_tree) {
            (IndexTarget::Unchanged, ..) | (IndexTarget::Saved(_), StoredIndex::Tree, None) => return Ok(()),
            (IndexTarget::Edited(edits), ..) => {
                let bytes = self.edited_index(edits)?;
                self.copy_index_objects(&IndexFile::parse(bytes.clone(), self.scratch.id_bytes())?)?;
                lock.commit(&bytes, &index_path, None)
            }
            (IndexTarget::Saved(_), StoredIndex::Missing, _) => lock.remove(&index_path),
            (IndexTarget::Saved(index), StoredIndex::File, _) => {
                self.copy_index_objects(index)?;
                lock.commit(index.bytes.as_deref().unwrap_or_default(), &index_path, point.index_time)
            }
            (IndexTarget::Saved(_), StoredIndex::Tree, Some(tree)) => {
                let bytes = self.index_of_tree(tree)?;
                self.copy_index_objects(&IndexFile::parse(bytes.clone(), self.scratch.id_bytes())?)?;
                lock.commit(&bytes, &index_path, None)
            }
        };
        written.map_err(GitError::io("write", &index_path))
    }

    /// Returns a copy of the present index with these entries replaced.
    fn edited_index(&self, edits: &IndexEdits) -> Result<Vec<u8>, GitError> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let no_id = "0".repeat(2 * scratch.id_bytes());
        let removed = edits.paths.iter().map(|path| (format!("0 {no_id}"), path));
        let added = edits
            .entries
            .iter()
            .map(|entry| (format!("{:o} {} {}", entry.mode, entry.id(), entry.stage), &entry.path));
        let input = path_records(removed.chain(added));
        scratch.run(name, ["update-index", "-z", "--index-info"], &input)?;
        for flag in ["--assume-unchanged", "--skip-worktree"] {
            let has_flag = |entry: &&Entry| match flag {
                "--skip-worktree" => entry.skip_worktree,
                _ => entry.assume_unchanged,
            };
            let paths = edits.entries.iter().filter(has_flag);
            let paths = join_records(paths.map(|entry| entry.path.as_slice()));
            if !paths.is_empty() {
                scratch.run(name, ["update-index", "-z", flag, "--stdin"], &paths)?;
            }
        }
        fs::read(scratch.path(name)).map_err(GitError::io("read", scratch.path(name)))
    }

    /// Returns a copy of the present index with the entries of `tree`. Cached file metadata of unchanged entries is
    /// preserved.
    fn index_of_tree(&self, tree: &str) -> Result<Vec<u8>, GitError> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let flagged = self.present.index.entries.iter().filter(|entry| entry.is_special());
        let flagged = join_records(flagged.map(|entry| entry.path.as_slice()));
        if !flagged.is_empty() {
            scratch.run(name, ["update-index", "-z", "--force-remove", "--stdin"], &flagged)?;
        }
        scratch.run(name, ["read-tree", "--reset", tree], b"")?;
        fs::read(scratch.path(name)).map_err(GitError::io("read", scratch.path(name)))
    }

    /// The user's git does not read our store, so objects that the index names and only the store has are copied to the
    /// repository.
    fn copy_index_objects(&self, index: &IndexFile) -> Result<(), GitError> {
        let scratch = &self.scratch;
        let repository_objects = scratch.repository_objects();
        let ids: String = index.objects().into_iter().map(|id| format!("{id}\n")).collect();
        let check = ["cat-file", "--buffer", "--batch-check"];
        let output = scratch.run_in_objects((&repository_objects, &[]), check, ids.as_bytes())?;
        let output = String::from_utf8_lossy(&output);
        let missing = output.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned);
        // Objects that are in neither place were missing before, as in a partial clone.
        let missing = existing_objects(scratch, missing.collect())?;
        if missing.is_empty() {
            return Ok(());
        }
        let others = [scratch.store().objects(), scratch.path("objects")];
        let base = repository_objects.join("pack/pack");
        pack_into(scratch, (&repository_objects, &others), &base, &missing).map(drop)
    }

    fn restore_head(&self) -> Result<(), GitError> {
        if self.plan.head_target != HeadTarget::Moves {
            return Ok(());
        }
        let (repository, git) = (&self.scratch.repository, &self.scratch.git);
        match (&self.point.branch, &self.point.head) {
            (Some(branch), head) => {
                let now = repository.resolve_ref(git, branch)?;
                let command = match (head, &now) {
                    (Some(head), Some(now)) => format!("update {branch}\0{head}\0{now}\0"),
                    (Some(head), None) => format!("create {branch}\0{head}\0"),
                    (None, Some(now)) => format!("delete {branch}\0{now}\0"),
                    (None, None) => String::new(),
                };
                repository.update_refs(git, command.as_bytes(), REFLOG_MESSAGE)?;
                let set_symbolic_ref =
                    repository.call(["symbolic-ref", "-m", REFLOG_MESSAGE, "HEAD", branch]);
                git.run(&repository.top_level, &set_symbolic_ref).map(drop)
            }
            (None, Some(head)) => {
                let detach =
                    repository.call(["update-ref", "--no-deref", "-m", REFLOG_MESSAGE, "HEAD", head]);
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

/// A directory that is not empty stays: its content appeared after planning.
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

/// git's lock on the index: the file `index.lock`, which is renamed to the index or removed.
struct IndexLock {
    path: PathBuf,
    file: File,
}

impl IndexLock {
    fn take(path: &Path) -> io::Result<IndexLock> {
        let file = File::options().write(true).create_new(true).mode(0o666).open(path)?;
        Ok(IndexLock { path: path.to_owned(), file })
    }

    /// `modified` is the original modification time of the index file, by which git decides which entries to compare
    /// again.
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
        // After a commit the lock file is gone, and a new one of that name belongs to another process. So remove it
        // only if it is the same file.
        let own_file = self.file.metadata().ok();
        let current_file = fs::symlink_metadata(&self.path).ok();
        if let (Some(own_file), Some(current_file)) = (own_file, current_file) {
            use std::os::unix::fs::MetadataExt;
            if (own_file.dev(), own_file.ino()) == (current_file.dev(), current_file.ino()) {
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}
