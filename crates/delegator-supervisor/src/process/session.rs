//! Leaving the session of whoever started us, where it has a terminal.
//!
//! An agent must neither write to it nor read a password from it, and it is hung up when its user goes. A supervisor is
//! started as the leader of a process group, so that a Ctrl-C meant for its parent does not reach it in its first moments;
//! but the leader of a group cannot leave its session. So it steps down first, for a moment, into a group that is there
//! already: that of the session's own leader or of its parent.
//!
//! A session without a terminal is not left: nothing there can reach us, and where the kernel shares the processors out
//! among sessions, each of many would get as much as whoever waits for them all.

use rustix::process::{Pid, getpid, setpgid, setsid};

use super::stat::read_stat;

/// Says whether we are out of any terminal's reach now.
pub fn leave_terminal() -> bool {
    let me = getpid();
    let Some(own) = read_stat(me.as_raw_nonzero().get()) else { return false };
    if !own.has_terminal || setsid().is_ok() {
        return true;
    }
    let of_parent = read_stat(own.parent).map(|parent| parent.group);
    // Not by asking for the session of a process: where its leader is out of sight, the answer is no pid.
    let groups = [Some(own.session), of_parent].into_iter().flatten();
    let stepped_down =
        groups.filter(|group| *group > 0).any(|group| setpgid(None, Pid::from_raw(group)).is_ok());
    if !stepped_down {
        return false;
    }
    let has_left = setsid().is_ok();
    if !has_left {
        let _ = setpgid(None, Some(me));
    }
    has_left
}
