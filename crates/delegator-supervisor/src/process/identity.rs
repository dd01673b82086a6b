//! Identifies a process beyond its reusable pid: boot id, pid, start time and pid namespace.
//!
//! A [`ProcessHandle`] is a pidfd that is opened first and compared with the identity second, so it can only
//! ever reach that one process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::stat::read_stat;
use crate::poll_fds::wait_readable;

/// One process, unique across pid reuse and reboots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub boot_id: String,
    pub pid: i32,
    pub start_time: u64,
    /// The namespace in which `pid` is valid.
    pub pid_namespace: u64,
}

impl ProcessIdentity {
    /// `None` if there is no such process.
    pub fn of(pid: i32) -> io::Result<Option<ProcessIdentity>> {
        let Some(stat) = read_stat(pid) else { return Ok(None) };
        let (boot_id, pid_namespace) = boot_and_namespace()?;
        Ok(Some(ProcessIdentity { boot_id, pid, start_time: stat.start, pid_namespace }))
    }

    /// The identity as the process itself would report it: its pid in its own pid namespace. `None` if there
    /// is no such process or it may not be inspected.
    pub fn in_own_namespace(pid: i32) -> Option<ProcessIdentity> {
        let before = read_stat(pid)?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let own_pid = numbers.split_ascii_whitespace().last()?.parse().ok()?;
        let pid_namespace = std::fs::metadata(format!("/proc/{pid}/ns/pid")).ok()?.ino();
        let (boot_id, _) = boot_and_namespace().ok()?;
        // The start time is equal before and after, so everything read in between belongs to the same
        // process.
        let is_same = read_stat(pid).is_some_and(|after| after.start == before.start);
        is_same.then_some(ProcessIdentity { boot_id, pid: own_pid, start_time: before.start, pid_namespace })
    }

    pub fn of_self() -> io::Result<ProcessIdentity> {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        ProcessIdentity::of(me)?.ok_or_else(|| io::Error::other("/proc does not show this process"))
    }

    /// Whether it is alive in this boot and namespace, under the same pid, and not a zombie.
    pub fn is_alive(&self) -> bool {
        let is_here = boot_and_namespace()
            .is_ok_and(|(boot, namespace)| boot == self.boot_id && namespace == self.pid_namespace);
        is_here && read_stat(self.pid).is_some_and(|stat| stat.start == self.start_time && !stat.is_dead())
    }

    /// A handle to watch and signal it; `None` if it is gone.
    pub fn open(&self) -> io::Result<Option<ProcessHandle>> {
        let Some(pidfd) = open_pidfd(self.pid)? else { return Ok(None) };
        Ok(self.is_alive().then_some(ProcessHandle { pidfd }))
    }
}

/// A process that was verified to have the expected identity.
#[derive(Debug)]
pub struct ProcessHandle {
    pidfd: OwnedFd,
}

impl ProcessHandle {
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it exits before that time.
    pub fn wait_until(&self, deadline: Instant) -> io::Result<bool> {
        wait_readable(&[&self.pidfd], deadline)
    }
}

/// Readable when the process has exited.
impl AsFd for ProcessHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

pub(crate) fn open_pidfd(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Some(pidfd)),
        Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn boot_and_namespace() -> io::Result<(String, u64)> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = std::fs::metadata("/proc/self/ns/pid")?.ino();
    Ok((boot.trim().to_owned(), namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_needs_boot_start_time_and_namespace() {
        let me = ProcessIdentity::of_self().unwrap();
        assert!(me.is_alive());
        assert!(me.open().unwrap().is_some());
        assert_eq!(ProcessIdentity::in_own_namespace(me.pid), Some(me.clone()));
        let others = [
            ProcessIdentity { start_time: me.start_time + 1, ..me.clone() },
            ProcessIdentity { boot_id: "another".to_owned(), ..me.clone() },
            ProcessIdentity { pid_namespace: 1, ..me.clone() },
            ProcessIdentity { pid: i32::MAX, ..me.clone() },
            ProcessIdentity { pid: -1, ..me.clone() },
            ProcessIdentity { pid: 0, ..me.clone() },
        ];
        for other in others {
            assert!(!other.is_alive() && other.open().unwrap().is_none(), "{other:?}");
        }
    }

    #[test]
    fn identity_round_trips_through_json() {
        let me = ProcessIdentity::of_self().unwrap();
        let text = serde_json::to_string(&me).unwrap();
        assert_eq!(serde_json::from_str::<ProcessIdentity>(&text).unwrap(), me);
    }
}
