//! Giving way. Agents are background work: whoever asks how they are, and whoever works at this machine, goes first.
//!
//! Only where a processor is wanted by several does this change anything. Where the kernel groups processes by session
//! (autogroup), it is the group's niceness that counts among sessions and a process's own only inside of one; so both
//! are set. Whatever the supervisor starts inherits them.

use std::fs;
use std::io;

use rustix::process::{getpid, getpriority_process, setpriority_process};

use super::stat::read_stat;

/// How nice a session is, and whether its group knows.
#[derive(Debug)]
pub(crate) struct NicenessGuard {
    niceness: i32,
    autogroup_is_set: bool,
}

impl NicenessGuard {
    /// Sets it for this process, and for its session if it is its own; never takes back what whoever started us had
    /// decided.
    pub(crate) fn apply(niceness: u8) -> NicenessGuard {
        let niceness = i32::from(niceness);
        let own = getpriority_process(None).unwrap_or(0);
        if own < niceness {
            // It cannot fail where it is raised; and if it does, the task is worth more.
            let _ = setpriority_process(None, niceness);
        }
        let me = getpid().as_raw_nonzero().get();
        let is_session_leader = read_stat(me).is_some_and(|stat| stat.session == me);
        let mut guard = NicenessGuard { niceness, autogroup_is_set: niceness == 0 || !is_session_leader };
        guard.retry_autogroup();
        guard
    }

    /// Groups are set only some times a second, for all of an ordinary user's sessions together.
    pub(crate) fn retry_autogroup(&mut self) {
        if self.autogroup_is_set {
            return;
        }
        let is_rate_limited = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let written = fs::write("/proc/self/autogroup", self.niceness.to_string());
        self.autogroup_is_set = !written.is_err_and(|error| is_rate_limited(&error));
    }
}
