//! Raises the niceness of an agent, so that interactive work and status queries get the processor first.
//!
//! It only matters when the processor is contended. An ordinary user cannot lower a niceness again, so the
//! supervisor does not raise its own to pass it on: a supervisor with the niceness of its agent needed
//! hundreds of milliseconds on a busy machine to record the end of a task. The agent inherits its niceness
//! from the thread that starts it.
//!
//! Where the kernel groups processes by session (autogroup), the group's niceness decides between sessions
//! and the process's own only within one. Supervisor and agent share a session, so the group has the niceness
//! only while the agent runs, from its first second on; or from the start to the end, if the supervisor is
//! nice, too. Errors are ignored: they never fail a run.

use std::fs;
use std::io;

use rustix::process::{getpid, getpriority_process, setpriority_process};

use super::stat::read_stat;

/// Starting a process needs little stack.
const STACK_BYTES: usize = 256 << 10;

/// Calls `start` on a thread with at least this niceness, which a process started there inherits.
pub(crate) fn with_niceness<T: Send>(niceness: u8, mut start: impl FnMut() -> T + Send) -> T {
    let started = (niceness > 0).then(|| {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
                raise_niceness(niceness);
                start()
            });
            // Without a thread the process starts with our niceness.
            let thread = thread.ok()?;
            Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    });
    started.flatten().unwrap_or_else(start)
}

/// Raises the niceness of the calling thread and what it starts. Never lowers one that the parent set.
pub(crate) fn raise_niceness(niceness: u8) {
    let niceness = i32::from(niceness);
    if getpriority_process(None).unwrap_or(0) < niceness {
        // Raising one's own niceness cannot fail; if it did, the task would still run.
        let _ = setpriority_process(None, niceness);
    }
}

#[derive(Debug)]
pub(crate) struct AutogroupNiceness {
    niceness: u8,
    is_supervisor_nice: bool,
    is_set: bool,
}

impl AutogroupNiceness {
    pub(crate) fn new(niceness: u8, is_supervisor_nice: bool) -> AutogroupNiceness {
        let mut autogroup = AutogroupNiceness { niceness, is_supervisor_nice, is_set: false };
        if is_supervisor_nice {
            autogroup.set();
        }
        autogroup
    }

    /// Sets it if this process leads its session. The kernel limits changes to a few per second for all
    /// sessions of a user, so this is called again and again.
    pub(crate) fn set(&mut self) {
        if self.is_set || self.niceness == 0 {
            return;
        }
        let me = getpid().as_raw_nonzero().get();
        if read_stat(me).is_none_or(|stat| stat.session != me) {
            self.niceness = 0;
            return;
        }
        let written = write_autogroup(self.niceness);
        self.is_set = !written.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    }

    /// The agent has ended: normal priority for what follows, unless the supervisor is nice. If this fails,
    /// it only takes longer.
    pub(crate) fn end_agent(&mut self) {
        if self.is_set && !self.is_supervisor_nice {
            let _ = write_autogroup(0);
        }
    }
}

fn write_autogroup(niceness: u8) -> io::Result<()> {
    fs::write("/proc/self/autogroup", niceness.to_string())
}
