//! The address of the dashboard that runs: its server has locked a file in the state directory, which contains it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use delegator_registry::make_private_path;

/// The lock of this process, which ends with it.
#[derive(Debug)]
pub struct DashboardAddress {
    _file: File,
}

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("dashboard").join("server")
}

impl DashboardAddress {
    /// Records the address; `None` if another server of this state directory is recorded.
    pub fn record(state_dir: &Path, url: &str) -> io::Result<Option<DashboardAddress>> {
        let path = path(state_dir);
        if let Some(parent) = path.parent() {
            make_private_path(parent)?;
        }
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        file.set_len(0)?;
        file.write_all(url.as_bytes())?;
        Ok(Some(DashboardAddress { _file: file }))
    }

    /// The address of the server that runs.
    pub fn read(state_dir: &Path) -> io::Result<Option<String>> {
        let path = path(state_dir);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                Ok(Some(fs::read_to_string(path)?).filter(|url| !url.is_empty()))
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_server_is_found_and_the_first_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let url = || DashboardAddress::read(dir.path()).unwrap();
        assert_eq!(url(), None);
        let first = DashboardAddress::record(dir.path(), "http://127.0.0.1:1234").unwrap();
        assert!(first.is_some() && DashboardAddress::record(dir.path(), "http://other").unwrap().is_none());
        assert_eq!(url().as_deref(), Some("http://127.0.0.1:1234"));
        drop(first);
        assert_eq!(url(), None);
        let second = DashboardAddress::record(dir.path(), "http://b").unwrap();
        assert_eq!((second.is_some(), url().as_deref()), (true, Some("http://b")));
    }
}
