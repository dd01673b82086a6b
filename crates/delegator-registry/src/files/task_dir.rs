//! The directory of one task: its files and how each is written.
//!
//! The id is the only part of the path that comes from a caller, and its type admits only a fixed prefix and
//! letters and digits. Files that hold secrets (`launch`, the output schema, messages) are removed at the end
//! of the task.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::named_enum;
use delegator_domain::task::TaskId;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use super::durable::{self, Durability};
use super::lock::{self, ClaimKind, LockAttempt, LockGuard, WorktreeClaim};
use super::reserve_file::ReserveFile;
use super::socket::socket_in;
use crate::error::{RegistryError, Result};

named_enum! {
    pub enum TaskFile {
        /// What is needed to start the task, including secrets; removed once the agent has its input, or at
        /// the end.
        Launch = "launch",
        /// The task's text, redacted.
        Text = "task.txt",
        /// Held by the supervisor for its whole run.
        Lock = "lock",
        /// Held while a command submits a task into the worktree of this one, or removes it.
        WorktreeLock = "worktree.lock",
        /// The agent's output, append-only; for a task that a provider runs a copy, which a new attempt
        /// replaces.
        Events = "events.jsonl",
        /// When the agent wrote which part of the events: lines of a length and a time, at most one a second.
        EventTimes = "events-times.txt",
        /// Which attempt the copied events belong to.
        EventPosition = "events-position.json",
        Stderr = "stderr.log",
        Verify = "verify.log",
        /// Output of a turn after the limit of a task, in which the agent reports.
        Salvage = "salvage.jsonl",
        SalvageStderr = "salvage-stderr.log",
        /// Progress of the run, replaced at most once a second. Not synced: it can be rebuilt from the
        /// events.
        Snapshot = "snapshot.json",
        Report = "report.json",
        /// Digests of the secrets that were known when the task was submitted.
        SecretDigests = "secret-digests.json",
        /// The changes of a task that a provider ran, as a unified diff.
        Diff = "changes.diff",
        /// What had changed in the worktree that a task shares when it began there, as a unified diff.
        StartDiff = "start.diff",
        /// Changes that are not in the diff of a removed worktree.
        DiffOmissions = "changes-left-out.json",
        /// The output of the setup script of a task that a provider ran.
        Setup = "setup.log",
        /// What the provider of an ended task reported besides.
        ProviderRecord = "remote.json",
        /// The schema that the agent's output must follow.
        OutputSchema = "output-schema.json",
        /// The path of a control socket that is elsewhere.
        SocketPath = "control.path",
        /// The path of the temporary directory of an enclosed agent.
        TemporaryDir = "temporary.path",
        /// The restore point of the work tree before the task.
        RestorePoint = "restore-point.json",
        /// What clients received about handles of this task, append-only.
        Handles = "handles.jsonl",
        /// What the supervisor noted about its agent, append-only.
        SupervisorLog = "supervisor.jsonl",
        /// Held, shared, by the commands that show the task to a person.
        Screen = "screen.lock",
        /// How the notifications of the task are sent, until they are settled. Private: it contains the URL
        /// of the webhook.
        Notify = "notify.json",
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadPosition {
    pub offset: u64,
    /// Device and inode.
    file: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewBytes {
    pub bytes: Vec<u8>,
    /// What was read before is not a part of the file any more.
    pub is_restarted: bool,
}

#[derive(Debug, Clone)]
pub struct TaskDir {
    id: TaskId,
    path: PathBuf,
    reserve_file: ReserveFile,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastLines {
    /// Without their ends.
    pub lines: VecDeque<Vec<u8>>,
    /// The number of the first of them, from 0.
    pub first: u64,
    pub total: u64,
}

impl TaskDir {
    pub(crate) fn new(tasks: &Path, id: TaskId, reserve_file: ReserveFile) -> TaskDir {
        TaskDir { path: tasks.join(id.as_str()), id, reserve_file }
    }

    pub fn id(&self) -> &TaskId {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, which: TaskFile) -> PathBuf {
        self.path.join(which.name())
    }

    /// Wakes those that watch this directory because they wait for a change of the task, which is committed.
    pub fn announce_change(&self) {
        // Without this they notice the change a little later.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _ = utimensat(CWD, &self.path, &times, AtFlags::SYMLINK_NOFOLLOW);
    }

    /// Creates the directory with `launch` and the settings of notifications in it. When this returns, they
    /// are on disk, or nothing is left. The text is not synced: no start depends on it.
    pub(crate) fn create(&self, launch: &[u8], text: &str, notify: Option<&[u8]>) -> Result<()> {
        // An existing directory belongs to another task and is left alone.
        durable::make_new_private_dir(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RegistryError::IdInUse { id: self.id.clone() },
            _ => RegistryError::file(&self.path, "create")(error),
        })?;
        let filled = (|| {
            crash_point(CrashPoint::DirectoryMade);
            durable::replace(&self.file(TaskFile::Text), text.as_bytes(), Durability::Atomic)?;
            crash_point(CrashPoint::TextWritten);
            if let Some(notify) = notify {
                durable::write_new(&self.file(TaskFile::Notify), notify)?;
            }
            durable::write_new(&self.file(TaskFile::Launch), launch)?;
            crash_point(CrashPoint::LaunchWritten);
            durable::sync_dir(&self.path)?;
            self.path.parent().map_or(Ok(()), durable::sync_dir)
        })();
        if filled.is_err() {
            let _ = fs::remove_dir_all(&self.path);
        }
        crash_point(CrashPoint::DirectorySynced);
        filled.map_err(RegistryError::file(&self.path, "populate"))
    }

    /// Removes `launch` as soon as it is not needed, because it contains secrets. Returns whether it existed.
    /// The name is gone for good when the directory is synced, with the report at the latest; a rescue
    /// removes it again.
    pub fn remove_launch(&self) -> Result<bool> {
        let path = self.file(TaskFile::Launch);
        durable::remove_if_exists(&path).map_err(RegistryError::file(&path, "remove"))
    }

    /// Removes the unredacted files: `launch`, the output schema and messages.
    pub(crate) fn remove_inputs(&self) -> Result<()> {
        if self.remove_launch()? {
            durable::sync_dir(&self.path).map_err(RegistryError::file(&self.path, "sync"))?;
        }
        self.remove_file(TaskFile::OutputSchema)?;
        self.remove_messages()
    }

    pub(crate) fn has_inputs(&self) -> bool {
        let files = [TaskFile::Launch, TaskFile::OutputSchema];
        files.into_iter().any(|which| self.file(which).exists()) || self.has_messages()
    }

    /// Opens a file for appending (`Events`, `Stderr`, `Handles`, `SupervisorLog`).
    pub fn open_append(&self, which: TaskFile) -> Result<File> {
        let path = self.file(which);
        durable::open_private(&path, fs::OpenOptions::new().append(true).create(true))
            .map_err(RegistryError::file(&path, "open"))
    }

    /// Truncates an incomplete last line left by a power cut, and returns how many bytes that were. The lock
    /// proves that no supervisor is writing.
    pub fn truncate_torn_tail(&self, which: TaskFile, _lock: &LockGuard) -> Result<u64> {
        let path = self.file(which);
        truncate_after_last_newline(&path).map_err(RegistryError::file(&path, "truncate the torn end of"))
    }

    /// Writes the report durably, releasing reserved space if the disk is full.
    pub fn write_report(&self, bytes: &[u8]) -> Result<()> {
        let path = self.file(TaskFile::Report);
        loop {
            match durable::replace(&path, bytes, Durability::Synced) {
                Err(error)
                    if durable::is_out_of_space(&error)
                        && self.reserve_file.release_slice().unwrap_or(false) => {}
                other => return other.map_err(RegistryError::file(&path, "write")),
            }
        }
    }

    /// Replaces a file atomically, without syncing it.
    pub fn write(&self, which: TaskFile, bytes: &[u8]) -> Result<()> {
        self.replace(which, bytes, Durability::Atomic)
    }

    /// Like [`TaskDir::write`], and durable.
    pub fn write_durably(&self, which: TaskFile, bytes: &[u8]) -> Result<()> {
        self.replace(which, bytes, Durability::Synced)
    }

    fn replace(&self, which: TaskFile, bytes: &[u8], durability: Durability) -> Result<()> {
        let path = self.file(which);
        durable::replace(&path, bytes, durability).map_err(RegistryError::file(&path, "write"))
    }

    pub fn read(&self, which: TaskFile) -> Result<Option<Vec<u8>>> {
        self.read_with(which, |mut file, bytes| file.read_to_end(bytes))
    }

    pub fn read_tail(&self, which: TaskFile, max_bytes: u64) -> Result<Option<Vec<u8>>> {
        self.read_with(which, |mut file, bytes| {
            let from = file.metadata()?.len().saturating_sub(max_bytes);
            file.seek(SeekFrom::Start(from))?;
            file.take(max_bytes).read_to_end(bytes)
        })
    }

    /// The first and the last `max_bytes` bytes of a file, or all of a shorter one, and its size.
    pub fn read_ends(&self, which: TaskFile, max_bytes: u64) -> Result<Option<(Vec<u8>, u64)>> {
        let mut size = 0;
        let ends = self.read_with(which, |mut file, bytes| {
            size = file.metadata()?.len();
            if size > max_bytes.saturating_mul(2) {
                file.by_ref().take(max_bytes).read_to_end(bytes)?;
                file.seek(SeekFrom::Start(size - max_bytes))?;
            }
            file.read_to_end(bytes)
        })?;
        Ok(ends.map(|bytes| (bytes, size)))
    }

    /// The last `max_lines` lines of a file before the one with this number. Empty lines do not count.
    pub fn read_last_lines(&self, which: TaskFile, before: u64, max_lines: usize) -> Result<LastLines> {
        let mut found = LastLines::default();
        self.read_with(which, |file, _| {
            let mut file = BufReader::new(file);
            let mut line = Vec::new();
            while file.read_until(b'\n', &mut line)? > 0 {
                line.pop_if(|last| *last == b'\n');
                if line.is_empty() {
                    continue;
                }
                if found.total < before {
                    found.lines.push_back(std::mem::take(&mut line));
                    if found.lines.len() > max_lines {
                        found.lines.pop_front();
                        found.first += 1;
                    }
                }
                found.total += 1;
                line.clear();
            }
            Ok(0)
        })?;
        Ok(found)
    }

    /// The bytes after a position, at most `limit`; the position is moved to their end. If the file was
    /// truncated, replaced or removed since, they are those from its beginning on.
    pub fn read_new(&self, which: TaskFile, position: &mut ReadPosition, limit: u64) -> Result<NewBytes> {
        let before = *position;
        *position = ReadPosition::default();
        let bytes = self.read_with(which, |mut file, bytes| {
            let found = file.metadata()?;
            position.file = Some((found.dev(), found.ino()));
            if position.file == before.file && found.len() >= before.offset {
                position.offset = file.seek(SeekFrom::Start(before.offset))?;
            }
            file.take(limit).read_to_end(bytes)
        })?;
        let is_restarted = position.offset < before.offset;
        let bytes = bytes.unwrap_or_default();
        position.offset += bytes.len() as u64;
        Ok(NewBytes { bytes, is_restarted })
    }

    /// The size of a file in bytes; 0 if it is missing.
    pub fn size(&self, which: TaskFile) -> Result<u64> {
        let path = self.file(which);
        let found = durable::if_exists(fs::metadata(&path)).map_err(RegistryError::file(&path, "read"))?;
        Ok(found.map_or(0, |found| found.len()))
    }

    pub fn remove_file(&self, which: TaskFile) -> Result<()> {
        let path = self.file(which);
        durable::remove_if_exists(&path).map(drop).map_err(RegistryError::file(&path, "remove"))
    }

    fn read_with(
        &self,
        which: TaskFile,
        read: impl FnOnce(File, &mut Vec<u8>) -> io::Result<usize>,
    ) -> Result<Option<Vec<u8>>> {
        let path = self.file(which);
        let mut bytes = Vec::new();
        let found = durable::open_noatime(&path).and_then(|file| read(file, &mut bytes));
        let found = durable::if_exists(found).map_err(RegistryError::file(&path, "read"))?;
        Ok(found.map(|_| bytes))
    }

    pub fn try_lock(&self) -> Result<LockAttempt> {
        let path = self.file(TaskFile::Lock);
        lock::try_lock(&path).map_err(RegistryError::file(&path, "lock"))
    }

    /// Claims the worktree of this task; `None` while another command has a claim that excludes this one.
    pub fn try_claim_worktree(&self, kind: ClaimKind) -> Result<Option<WorktreeClaim>> {
        let path = self.file(TaskFile::WorktreeLock);
        lock::try_claim(&path, kind).map_err(RegistryError::file(&path, "lock"))
    }

    /// Marks the task as shown to a person, until the guard is dropped.
    pub fn mark_screen(&self) -> Option<LockGuard> {
        lock::mark_screen(&self.file(TaskFile::Screen))
    }

    pub fn is_on_screen(&self) -> bool {
        lock::has_screen(&self.file(TaskFile::Screen))
    }

    /// Takes over the lock that the parent process handed over, or tries to take it.
    pub fn adopt_lock(&self, handed_over: OwnedFd) -> Result<LockAttempt> {
        let path = self.file(TaskFile::Lock);
        lock::adopt(&path, handed_over).map_err(RegistryError::file(&path, "lock"))
    }

    /// Writes the path of the control socket if it is elsewhere; the supervisor calls this once it listens.
    pub fn publish_socket(&self, socket: &Path) -> Result<()> {
        if socket == socket_in(&self.path) {
            return self.remove_file(TaskFile::SocketPath);
        }
        self.write(TaskFile::SocketPath, socket.as_os_str().as_bytes())
    }

    pub fn published_socket(&self) -> Result<Option<PathBuf>> {
        let bytes = self.read(TaskFile::SocketPath)?;
        let elsewhere = bytes.map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        Ok(elsewhere.or_else(|| Some(socket_in(&self.path)).filter(|socket| socket.exists())))
    }

    /// Removes the directory with all its content. The lock proves that no supervisor is running in it. The
    /// lock file is removed last, so that no process can lock a new file of that name meanwhile.
    pub fn remove(&self, lock: LockGuard) -> Result<()> {
        let removed = (|| {
            if !lock.is_at(&self.file(TaskFile::Lock))? {
                return Ok(());
            }
            self.remove_leftover_socket();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_name() == TaskFile::Lock.name() {
                    continue;
                }
                // The type of the entry does not follow links, so of a link only the link is removed.
                if entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                } else {
                    durable::remove_if_exists(&entry.path())?;
                }
            }
            crash_point(CrashPoint::DirectoryHalfRemoved);
            fs::remove_file(self.file(TaskFile::Lock))?;
            fs::remove_dir(&self.path)
        })();
        match removed {
            // Another cleaning process locked the directory after the lock file was removed; it removes the
            // rest.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => durable::if_exists(other).map(drop).map_err(RegistryError::file(&self.path, "remove")),
        }
    }

    fn remove_leftover_socket(&self) {
        let Ok(Some(socket)) = self.published_socket() else { return };
        if fs::symlink_metadata(&socket).is_ok_and(|found| found.file_type().is_socket()) {
            let _ = fs::remove_file(&socket);
        }
    }
}

fn truncate_after_last_newline(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    const CHUNK_BYTES: u64 = 64 * 1024;
    let opened = fs::OpenOptions::new().read(true).write(true).open(path);
    let Some(file) = durable::if_exists(opened)? else { return Ok(0) };
    let length = file.metadata()?.len();
    let mut end = length;
    let mut complete = 0;
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        let mut chunk = vec![0; usize::try_from(end - start).unwrap_or_default()];
        file.read_exact_at(&mut chunk, start)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            complete = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    if complete < length {
        file.set_len(complete)?;
        file.sync_all()?;
    }
    Ok(length - complete)
}
