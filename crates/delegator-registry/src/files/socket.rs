//! Chooses the path of a supervisor's control socket.
//!
//! A socket path must be shorter than 108 bytes, but a state directory may be longer. Then the socket goes to
//! a short private directory elsewhere, and its path is written to the task's directory.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;
use sha2::{Digest, Sha256};

use super::durable::{self, EntryKind, require_private};
use crate::error::StateDirError;

/// `sun_path` holds 108 bytes, including the terminating zero.
pub const SOCKET_PATH_LIMIT: usize = 108;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no directory is short enough for a socket path of less than {SOCKET_PATH_LIMIT} bytes; the shortest is {}", shortest.display())]
pub struct SocketPathError {
    pub shortest: PathBuf,
}

pub(crate) fn socket_in(task_dir: &Path) -> PathBuf {
    task_dir.join("control.sock")
}

/// The path of a task's socket: in the task's directory if that is short enough, else below the first
/// suitable candidate (`$XDG_RUNTIME_DIR`, then `/tmp`), in a directory named after the user and the state
/// directory. Creates nothing.
pub fn socket_path(
    task_dir: &Path,
    task: &TaskId,
    user: u32,
    candidates: &[PathBuf],
) -> Result<PathBuf, SocketPathError> {
    let random = task.as_str().rsplit('-').next().unwrap_or_default();
    // Two state directories of one user must not share a directory, and every version has to choose the same
    // name.
    let digest = Sha256::digest(task_dir.parent().unwrap_or(task_dir).as_os_str().as_bytes());
    let dir_hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let elsewhere = candidates.iter().map(|candidate| {
        candidate.join(format!("mcp-delegator-{user}-{dir_hash}")).join(format!("{random}.sock"))
    });
    let mut paths: Vec<PathBuf> = std::iter::once(socket_in(task_dir)).chain(elsewhere).collect();
    if let Some(path) = paths.iter().find(|path| path.as_os_str().len() < SOCKET_PATH_LIMIT) {
        return Ok(path.clone());
    }
    paths.sort_by_key(|path| path.as_os_str().len());
    Err(SocketPathError { shortest: paths.swap_remove(0) })
}

/// Creates the directory of a socket, or checks that the existing one is private: in `/tmp` another user may
/// have created it.
pub fn private_runtime_dir(socket: &Path) -> Result<(), StateDirError> {
    let Some(dir) = socket.parent() else { return Ok(()) };
    durable::make_private_dir(dir).map_err(StateDirError::io(dir, "create"))?;
    require_private(dir, EntryKind::Directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use delegator_domain::task::TaskLocation;

    use super::*;

    fn task() -> TaskId {
        TaskId::from_random(TaskLocation::Local, [7; 16])
    }

    #[test]
    fn the_socket_is_in_the_task_directory_when_the_path_fits() {
        let dir = Path::new("/home/me/.local/state/mcp-delegator/tasks").join(task().as_str());
        assert_eq!(socket_path(&dir, &task(), 1000, &[]).unwrap(), dir.join("control.sock"));
    }

    #[test]
    fn a_long_state_directory_selects_the_first_candidate_that_fits() {
        let dir = PathBuf::from(format!("/{}/tasks/{}", "d".repeat(80), task()));
        let candidates = [PathBuf::from(format!("/{}", "r".repeat(90))), PathBuf::from("/run/user/1000")];
        let chosen = socket_path(&dir, &task(), 1000, &candidates).unwrap();
        assert!(chosen.starts_with("/run/user/1000"), "{}", chosen.display());
        assert!(chosen.as_os_str().len() < SOCKET_PATH_LIMIT);
        let other = PathBuf::from(format!("/{}/tasks/{}", "e".repeat(80), task()));
        assert_ne!(socket_path(&other, &task(), 1000, &candidates).unwrap().parent(), chosen.parent());
        assert!(socket_path(&dir, &task(), 1000, &candidates[..1]).is_err());
    }

    #[test]
    fn every_socket_path_is_under_the_limit() {
        for length in 1..200 {
            let dir = PathBuf::from(format!("/{}/tasks/{}", "d".repeat(length), task()));
            let path = socket_path(&dir, &task(), u32::MAX, &[PathBuf::from("/tmp")]).unwrap();
            assert!(path.as_os_str().len() < SOCKET_PATH_LIMIT, "{length}");
        }
    }

    #[test]
    fn a_symlinked_runtime_directory_is_refused_and_open_permissions_are_tightened() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        let refused = private_runtime_dir(&dir.path().join("link/x.sock"));
        assert!(matches!(refused, Err(StateDirError::Symlink { .. })), "{refused:?}");
        fs::create_dir(dir.path().join("loose")).unwrap();
        fs::set_permissions(dir.path().join("loose"), fs::Permissions::from_mode(0o777)).unwrap();
        private_runtime_dir(&dir.path().join("loose/x.sock")).unwrap();
        assert_eq!(fs::metadata(dir.path().join("loose")).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
