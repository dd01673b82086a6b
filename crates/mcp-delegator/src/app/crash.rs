//! Test hooks of debug builds at the crash points: kill this process, or record when it was there.
//!
//! `MCP_DELEGATOR_CRASH_AT` contains the name of a crash point; the suffix `*3` selects its third occurrence
//! in one process. The process is killed there. `MCP_DELEGATOR_CRASH_NOTE` is a file to which the crash is
//! recorded, because no process waits for a supervisor. Supervisors inherit these variables; agents do not.
//!
//! `MCP_DELEGATOR_PHASE_LOG` is a file to which every process appends a line when it starts and at every
//! crash point: the time in nanoseconds (CLOCK_MONOTONIC), its pid and the name of the point. The benchmark
//! `phases` reads it.
//!
//! `MCP_DELEGATOR_TEST_INHERIT` lists further variables that supervisors inherit, separated by commas, for
//! example for tests that preload a library.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use delegator_domain::crash::{CrashPoint, set_crash_hook, set_inherited_variables};
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::spec::process::Process;

const CRASH_AT: &str = "MCP_DELEGATOR_CRASH_AT";
const CRASH_NOTE: &str = "MCP_DELEGATOR_CRASH_NOTE";
const PHASE_LOG: &str = "MCP_DELEGATOR_PHASE_LOG";
const INHERIT: &str = "MCP_DELEGATOR_TEST_INHERIT";

pub fn arm_from_environment(process: &Process) {
    inherit_variables(process);
    let phase_log = process.variable(PHASE_LOG).and_then(|path| append_to(Path::new(path)).ok());
    let crash = RequestedCrash::of(process);
    if phase_log.is_none() && crash.is_none() {
        return;
    }
    phase_log.iter().for_each(|log| log_phase(log, "process: started"));
    set_crash_hook(Box::new(move |point| {
        phase_log.iter().for_each(|log| log_phase(log, point.name()));
        crash.iter().for_each(|crash| crash.reach(point));
    }));
}

/// Records when this process reaches a point, with one write, so that lines of several processes do not mix.
fn log_phase(mut log: &File, name: &str) {
    let now = clock_gettime(ClockId::Monotonic);
    let nanoseconds = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    let line = format!("{nanoseconds} {} {name}\n", getpid().as_raw_nonzero());
    let _ = log.write_all(line.as_bytes());
}

struct RequestedCrash {
    point: CrashPoint,
    occurrence: u32,
    hits: AtomicU32,
    note: Option<PathBuf>,
}

impl RequestedCrash {
    fn of(process: &Process) -> Option<RequestedCrash> {
        let requested = process.variable(CRASH_AT)?;
        let (name, occurrence) = requested.split_once('*').unwrap_or((requested, "1"));
        Some(RequestedCrash {
            point: CrashPoint::from_name(name)?,
            occurrence: occurrence.parse().ok()?,
            hits: AtomicU32::new(0),
            note: process.variable(CRASH_NOTE).map(PathBuf::from),
        })
    }

    fn reach(&self, point: CrashPoint) {
        if point == self.point && self.hits.fetch_add(1, Ordering::Relaxed) + 1 == self.occurrence {
            if let Some(note) = &self.note {
                let line = format!("{}\n", point.name());
                let _ = append_to(note).and_then(|mut file| file.write_all(line.as_bytes()));
            }
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

fn append_to(path: &Path) -> std::io::Result<File> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)
}

fn inherit_variables(process: &Process) {
    let listed = process.variable(INHERIT).unwrap_or_default().split(',');
    let names = listed.chain([CRASH_AT, CRASH_NOTE, PHASE_LOG, INHERIT]);
    let find = |name: &str| {
        process.environment.get_key_value(OsStr::new(name)).map(|(name, value)| (name.clone(), value.clone()))
    };
    set_inherited_variables(names.filter_map(find).collect());
}
