//! For tests of debug builds: ends this process, or a supervisor it starts, right after a named durable step.
//!
//! `MCP_DELEGATOR_CRASH_AT` holds the name of a crash point, and `*3` behind it for the third time in one process.
//! The environment is inherited by supervisors, so one call decides for all that follows from it; agents never see it.
//! `MCP_DELEGATOR_CRASH_NOTE` names a file that is told of the crash, because nobody waits for a supervisor.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use delegator_domain::crash::{CrashPoint, arm};
use rustix::process::{Signal, getpid, kill_process};

use crate::process::Process;

/// Arms the point that is asked for, if one is.
pub fn arm_as_asked(process: &Process) {
    let Some(asked) = process.variable("MCP_DELEGATOR_CRASH_AT") else { return };
    let (name, time) = asked.split_once('*').unwrap_or((asked, "1"));
    let (Some(wanted), Ok(time)) = (CrashPoint::named(name), time.parse::<u32>()) else { return };
    let note = process.variable("MCP_DELEGATOR_CRASH_NOTE").map(PathBuf::from);
    let met = AtomicU32::new(0);
    arm(Box::new(move |point| {
        if point == wanted && met.fetch_add(1, Ordering::Relaxed) + 1 == time {
            if let Some(note) = &note {
                let told = std::fs::OpenOptions::new().append(true).create(true).open(note);
                let _ = told.and_then(|mut file| file.write_all(format!("{}\n", wanted.name()).as_bytes()));
            }
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }));
}
