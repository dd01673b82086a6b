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
pub(crate) struct GivingWay {
    niceness: i32,
    group_knows: bool,
}

impl GivingWay {
    /// Sets it for this process, and for its session if it is its own; never takes back what whoever started us had
    /// decided.
    pub(crate) fn begin(niceness: u8) -> GivingWay {
        let niceness = i32::from(niceness);
        let own = getpriority_process(None).unwrap_or(0);
        if own < niceness {
            // It cannot fail where it is raised; and if it does, the task is worth more.
            let _ = setpriority_process(None, niceness);
        }
        let me = getpid().as_raw_nonzero().get();
        let leads = read_stat(me).is_some_and(|stat| stat.session == me);
        let mut giving = GivingWay { niceness, group_knows: niceness == 0 || !leads };
        giving.try_again();
        giving
    }

    /// Groups are set only some times a second, for all of an ordinary user's sessions together.
    pub(crate) fn try_again(&mut self) {
        if self.group_knows {
            return;
        }
        let busy = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let set = fs::write("/proc/self/autogroup", self.niceness.to_string());
        self.group_knows = !set.is_err_and(|error| busy(&error));
    }
}
