//! Test hook of debug builds: kills this process, or a supervisor it starts, directly after a named durable step.
//!
//! `MCP_DELEGATOR_CRASH_AT` contains the name of a crash point; the suffix `*3` selects its third occurrence in one
//! process. `MCP_DELEGATOR_CRASH_NOTE` is a file to which the crash is recorded, because no process waits for a
//! supervisor. Supervisors inherit both variables; agents do not.
//!
//! `MCP_DELEGATOR_TEST_INHERIT` lists further variables that supervisors inherit, separated by commas, for example for
//! tests that preload a library.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use delegator_domain::crash::{CrashPoint, set_crash_hook, set_inherited_variables};
use rustix::process::{Signal, getpid, kill_process};

use crate::spec::process::Process;

const CRASH_AT: &str = "MCP_DELEGATOR_CRASH_AT";
const CRASH_NOTE: &str = "MCP_DELEGATOR_CRASH_NOTE";
const INHERIT: &str = "MCP_DELEGATOR_TEST_INHERIT";

/// Arms the crash point from the environment, if one is set.
pub fn arm_from_environment(process: &Process) {
    inherit_variables(process);
    let Some(requested) = process.variable(CRASH_AT) else { return };
    let (name, occurrence) = requested.split_once('*').unwrap_or((requested, "1"));
    let (Some(wanted), Ok(occurrence)) = (CrashPoint::from_name(name), occurrence.parse::<u32>()) else {
        return;
    };
    let note = process.variable(CRASH_NOTE).map(PathBuf::from);
    let hits = AtomicU32::new(0);
    set_crash_hook(Box::new(move |point| {
        if point == wanted && hits.fetch_add(1, Ordering::Relaxed) + 1 == occurrence {
            if let Some(note) = &note {
                let opened = std::fs::OpenOptions::new().append(true).create(true).open(note);
                let _ = opened.and_then(|mut file| file.write_all(format!("{}\n", wanted.name()).as_bytes()));
            }
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }));
}

fn inherit_variables(process: &Process) {
    let listed = process.variable(INHERIT).unwrap_or_default().split(',');
    let names = listed.chain([CRASH_AT, CRASH_NOTE, INHERIT]);
    let find = |name: &str| {
        process.environment.get_key_value(OsStr::new(name)).map(|(name, value)| (name.clone(), value.clone()))
    };
    set_inherited_variables(names.filter_map(find).collect());
}
