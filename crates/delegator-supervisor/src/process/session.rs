//! Leaving the session of whoever started us.
//!
//! It has a terminal, perhaps, that an agent must neither write to nor read a password from, and it may end long before
//! the task does. A supervisor is started as the leader of a process group, so that a Ctrl-C meant for its parent does
//! not reach it in its first moments; but the leader of a group cannot leave its session. So it steps down first, for a
//! moment, into a group that is there already: that of the session's own leader or of its parent.

use rustix::process::{Pid, getpid, setpgid, setsid};

use super::stat::read_stat;

/// Whether we lead a session of our own now.
pub fn leave_session() -> bool {
    if setsid().is_ok() {
        return true;
    }
    let me = getpid();
    let Some(own) = read_stat(me.as_raw_nonzero().get()) else { return false };
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
