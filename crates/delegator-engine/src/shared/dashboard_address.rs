//! The address of the dashboard that runs: its server has locked a file in the state directory, which contains it.
//!
//! A task that may read the state directory can lock the file, too, but not write it. So the file names the process of
//! the server, and the address counts only while that process lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use delegator_registry::make_private_path;
use delegator_supervisor::process::ProcessIdentity;
use serde::{Deserialize, Serialize};

/// The lock of this process, which ends with it.
#[derive(Debug)]
pub struct DashboardAddress {
    _file: File,
}

#[derive(Serialize, Deserialize)]
struct Server {
    url: String,
    process: ProcessIdentity,
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
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        file.set_len(0)?;
        let server = Server { url: url.to_owned(), process: ProcessIdentity::of_self()? };
        serde_json::to_writer(&file, &server)?;
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
                // It may be just being written.
                let server = serde_json::from_slice::<Server>(&fs::read(path)?).ok();
                Ok(server.filter(|server| server.process.is_alive()).map(|server| server.url))
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

    #[test]
    fn a_lock_of_another_process_does_not_revive_the_address_of_an_ended_server() {
        let dir = tempfile::tempdir().unwrap();
        let server = DashboardAddress::record(dir.path(), "http://127.0.0.1:1234").unwrap();
        let path = path(dir.path());
        let text = fs::read_to_string(&path).unwrap();
        let own = ProcessIdentity::of_self().unwrap();
        let ended = text.replace(&format!("\"start_time\":{}", own.start_time), "\"start_time\":1");
        assert_ne!(ended, text);
        drop(server);
        fs::write(&path, ended).unwrap();
        let locked = File::open(&path).unwrap();
        locked.try_lock().unwrap();
        assert_eq!(DashboardAddress::read(dir.path()).unwrap(), None);
    }
}
