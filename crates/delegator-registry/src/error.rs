//! Errors of the state directory and the registry.
//!
//! Every message names the file and, where there is one, the next step. Exit codes are decided by the caller.

use std::io;
use std::path::{Path, PathBuf};

use delegator_domain::task::{TaskId, TransitionError};
use rusqlite::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    #[error("{} is a symbolic link. Use the path of the directory itself", path.display())]
    Symlink { path: PathBuf },
    #[error("{} is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error(
        "{} belongs to user {owner}, but this process runs as user {uid}. Use a directory of your own",
        path.display()
    )]
    OtherOwner { path: PathBuf, owner: u32, uid: u32 },
    #[error("{} is not a regular file. Inspect it and move it away", path.display())]
    NotOurFile { path: PathBuf },
    #[error(
        "{} is on a network file system ({file_system}), where locks are unreliable. Use a local directory",
        path.display()
    )]
    Network { path: PathBuf, file_system: String },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

impl StateDirError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> StateDirError + use<> {
        let path = path.to_owned();
        move |source| StateDirError::Io { path, doing, source }
    }
}

pub(crate) type Result<T, E = RegistryError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    #[error(
        "{} is damaged: {detail}; nothing was changed. Restore it from a backup, or set it aside and start with an \
         empty one",
        file.display()
    )]
    Damaged { file: PathBuf, detail: String },
    #[error("{} is not damaged, so it was not set aside", file.display())]
    NotDamaged { file: PathBuf },
    #[error(
        "{} was written by a newer mcp-delegator{} and needs a program that knows schema {required}; this one knows \
         {supported}. Use the newer program, or another state directory",
        file.display(), program.as_ref().map(|version| format!(" ({version})")).unwrap_or_default()
    )]
    NeedsNewerWriter { file: PathBuf, required: i64, supported: i64, program: Option<String> },
    #[error("{} was locked by other processes for at least 5 s. Try again", file.display())]
    Busy { file: PathBuf },
    #[error(
        "not enough disk space for {}: {available} bytes are free, {needed} are needed. Free some space and try again",
        path.display()
    )]
    DiskFull { path: PathBuf, available: u64, needed: u64 },
    #[error(
        "the idempotency key {key:?} was already used with a different input, by task {first}. Use a new key"
    )]
    IdempotencyConflict { key: String, first: TaskId },
    #[error("the task id {id} is in use, by a task or by what remains of one")]
    IdInUse { id: TaskId },
    #[error("task {id} cannot follow {predecessor}, which is not a task of the same submission")]
    MissingPredecessor { id: TaskId, predecessor: TaskId },
    #[error("task {id} cannot follow {predecessor}, which does not come before it: a chain has no cycles")]
    ChainCycle { id: TaskId, predecessor: TaskId },
    #[error(transparent)]
    IllegalTransition(#[from] TransitionError),
    #[error("cannot {doing} {}: {source}", path.display())]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("{}: {detail} (SQLite code {code:?})", file.display())]
    Database { file: PathBuf, code: Option<i32>, detail: String },
}

impl RegistryError {
    pub(crate) fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> RegistryError + use<> {
        let path = path.to_owned();
        move |source| RegistryError::File { path, doing, source }
    }
}

pub(crate) fn map_sqlite_error(file: &Path, error: rusqlite::Error) -> RegistryError {
    let (file, detail) = (file.to_owned(), error.to_string());
    match &error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => RegistryError::Damaged { file, detail },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => RegistryError::Busy { file },
            ErrorCode::DiskFull => RegistryError::DiskFull { path: file, available: 0, needed: 0 },
            // SQLite does not report the reason. Opening the file as often as SQLite opens files shows it,
            // for example that no file descriptors are left.
            ErrorCode::CannotOpen
                if let Err(source) =
                    (0..4).map(|_| std::fs::File::open(&file)).collect::<Result<Vec<_>, _>>() =>
            {
                RegistryError::File { path: file, doing: "open", source }
            }
            _ => RegistryError::Database { file, code: Some(failure.extended_code), detail },
        },
        // A value that no version of this program can have written.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => RegistryError::Damaged { file, detail },
        _ => RegistryError::Database { file, code: None, detail },
    }
}

/// Whether releasing reserved space can help. A failed *write* may be retried, because the transaction was
/// rolled back. A failed sync must not be: the kernel may have dropped the data, and a second sync would
/// succeed without it.
pub(crate) fn is_disk_full(error: &rusqlite::Error) -> bool {
    // Not SQLITE_CANTOPEN: its cause is as often a lack of file descriptors, where releasing space does not
    // help.
    const DISK_FULL_CODES: [i32; 3] = [
        rusqlite::ffi::SQLITE_FULL,
        // An exceeded quota (EDQUOT) is reported as a plain write error.
        rusqlite::ffi::SQLITE_IOERR_WRITE,
        rusqlite::ffi::SQLITE_IOERR_SHMSIZE,
    ];
    matches!(error, rusqlite::Error::SqliteFailure(failure, _) if DISK_FULL_CODES.contains(&failure.extended_code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
    }

    #[test]
    fn a_failed_write_counts_as_disk_full_and_a_failed_sync_never_does() {
        assert!(is_disk_full(&failure(rusqlite::ffi::SQLITE_FULL)));
        assert!(is_disk_full(&failure(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)));
        assert!(!is_disk_full(&failure(rusqlite::ffi::SQLITE_IOERR_FSYNC)));
        assert!(!is_disk_full(&failure(rusqlite::ffi::SQLITE_IOERR_READ)));
        assert!(!is_disk_full(&failure(rusqlite::ffi::SQLITE_BUSY)));
    }

    #[test]
    fn a_damaged_database_error_names_the_file_and_the_next_step() {
        let message =
            map_sqlite_error(Path::new("/s/registry.db"), failure(rusqlite::ffi::SQLITE_CORRUPT)).to_string();
        assert!(message.contains("/s/registry.db") && message.contains("set it aside"), "{message}");
        assert!(matches!(
            map_sqlite_error(Path::new("/s"), failure(rusqlite::ffi::SQLITE_BUSY)),
            RegistryError::Busy { .. }
        ));
    }
}
