//! Raises the niceness of a run, so that interactive work and status queries get the processor first.
//!
//! It only matters when the processor is contended. Where the kernel groups processes by session (autogroup), the
//! group's niceness decides between sessions and the process's own only within one; so both are set. Children of the
//! supervisor inherit both. Errors are ignored: they never fail a run.

use std::fs;
use std::io;

use rustix::process::{getpid, getpriority_process, setpriority_process};

use super::stat::read_stat;

/// The niceness of a session, and whether its autogroup has it yet.
#[derive(Debug)]
pub(crate) struct NicenessGuard {
    niceness: i32,
    autogroup_is_set: bool,
}

impl NicenessGuard {
    /// Sets it for this process, and for its session if this process leads one. Never lowers a niceness that the parent
    /// set.
    pub(crate) fn apply(niceness: u8) -> NicenessGuard {
        let niceness = i32::from(niceness);
        let own = getpriority_process(None).unwrap_or(0);
        if own < niceness {
            // Raising one's own niceness cannot fail; if it did, the task would still run.
            let _ = setpriority_process(None, niceness);
        }
        let me = getpid().as_raw_nonzero().get();
        let is_session_leader = read_stat(me).is_some_and(|stat| stat.session == me);
        let mut guard = NicenessGuard { niceness, autogroup_is_set: niceness == 0 || !is_session_leader };
        guard.retry_autogroup();
        guard
    }

    /// The kernel limits autogroup changes to a few per second for all sessions of a user, so this is retried.
    pub(crate) fn retry_autogroup(&mut self) {
        if self.autogroup_is_set {
            return;
        }
        let is_rate_limited = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let written = fs::write("/proc/self/autogroup", self.niceness.to_string());
        self.autogroup_is_set = !written.is_err_and(|error| is_rate_limited(&error));
    }
}
