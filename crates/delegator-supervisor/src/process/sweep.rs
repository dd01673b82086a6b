//! Kills every process that a run left behind.
//!
//! Leftovers get SIGTERM, half a second later SIGKILL, repeated until none is left. Programs the user
//! exempted (a shared build daemon) are not touched, nor their children; they are listed. The time is
//! bounded: a process that cannot be killed is reported, not waited for.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use rustix::process::{Signal, WaitOptions, WaitStatus};
use serde::Serialize;

use super::cgroup::Cgroup;
use super::identity::open_pidfd;
use super::marks::find_marked;
use super::stat::{ProcessStat, read_stat};
use super::tree::{Owner, OwnerLookup, SignalOutcome, WalkStep, signal_checked, walk};
use crate::poll_fds::wait_readable;

/// Poll interval for processes that may be supervisors.
const UNDECIDED_POLL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepLimits {
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// From SIGKILL to giving up.
    pub kill_timeout: Duration,
}

impl Default for SweepLimits {
    fn default() -> Self {
        Self { grace: Duration::from_millis(500), kill_timeout: Duration::from_secs(5) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    pub pid: i32,
    pub program: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SweepReport {
    /// Number of processes that were found alive and have ended.
    pub ended: usize,
    /// Whether any of them needed SIGKILL.
    pub killed: bool,
    /// Still alive; reported as `kill_incomplete`.
    pub survivors: Vec<Leftover>,
    /// Exempted by the user.
    pub exempt: Vec<Leftover>,
}

#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Everything below this process.
    pub(crate) root: Option<i32>,
    /// Everything with this task's marker, and everything below it.
    pub(crate) mark: Option<&'a TaskId>,
    pub(crate) group: Option<&'a Cgroup>,
    pub(crate) exempt: &'a [String],
    pub(crate) owner: OwnerLookup<'a>,
}

/// Sweeps a task whose supervisor is gone: every process with its marker or in its cgroup. Removes the
/// cgroup.
pub fn sweep_lost(task: &TaskId, owner: OwnerLookup<'_>, limits: SweepLimits) -> io::Result<SweepReport> {
    let group = Cgroup::find_left_by(task);
    let scope = Scope { root: None, mark: Some(task), group: group.as_ref(), exempt: &[], owner };
    sweep(scope, limits, &mut |_, _| {})
}

type OnEnd<'a> = &'a mut dyn FnMut(i32, WaitStatus);

/// Reaps every child that has exited. True if there are no children at all.
pub(crate) fn reap(on_end: OnEnd<'_>) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => on_end(pid.as_raw_nonzero().get(), status),
            Ok(None) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

pub(crate) fn sweep(scope: Scope<'_>, limits: SweepLimits, on_end: OnEnd<'_>) -> io::Result<SweepReport> {
    let kill_at = Instant::now() + limits.grace;
    let give_up_at = kill_at + limits.kill_timeout;
    let decide_by = kill_at + limits.kill_timeout / 2;
    let mut report = SweepReport::default();
    let mut observed = HashSet::new();
    let mut sent_term = HashSet::new();
    let mut empty_rounds = 0;
    let mut scan_marks = true;
    let mut unmarked = HashSet::new();
    let survivors = loop {
        // Orphans of a task become children of its supervisor: without children, none of its processes is
        // left.
        let no_children = scope.root.is_some() && reap(on_end);
        // Reading the markers of all processes is expensive and rarely finds anything: only first and last.
        let with_marks = scope.root.is_none() || (!no_children && (scan_marks || empty_rounds > 0));
        if scope.root.is_none() {
            // Only the marker identifies these processes, and a process just before its exec shows none:
            // check all again.
            unmarked.clear();
        }
        let mut scan = ScanResult::scan(scope, with_marks.then_some(&mut unmarked));
        let is_decided = scan.decide(decide_by);
        if scan.members.is_empty() && !is_decided {
            wait_for_one(&scan.undecided, decide_by.min(Instant::now() + UNDECIDED_POLL))?;
            continue;
        }
        let members = scan.members;
        report.exempt = scan.exempt;
        if members.is_empty() {
            empty_rounds += 1;
            if no_children || empty_rounds > 1 || (scope.root.is_none() && scan_marks) {
                break members;
            }
            scan_marks = true;
            continue;
        }
        scan_marks = false;
        empty_rounds = 0;
        observed.extend(members.iter().map(|stat| (stat.pid, stat.start)));
        let now = Instant::now();
        if now >= give_up_at {
            break members;
        }
        let is_time_to_kill = now >= kill_at;
        let no_others = report.exempt.is_empty() && is_decided;
        if let (Some(group), true, true) = (scope.group, report.killed, no_others) {
            // Killing them one by one left some alive: kill the whole cgroup.
            group.kill();
        }
        for stat in &members {
            if is_time_to_kill {
                report.killed |= signal_checked(stat, Signal::KILL)? == SignalOutcome::Delivered;
            } else if sent_term.insert((stat.pid, stat.start)) {
                signal_checked(stat, Signal::TERM)?;
            }
        }
        let deadline = if is_time_to_kill { give_up_at } else { kill_at };
        wait_for_one(&members, deadline.min(now + Duration::from_millis(100)))?;
    };
    report.ended = observed.len() - survivors.len();
    report.survivors = survivors.iter().map(leftover).collect();
    Ok(report)
}

/// Sends a signal once to everything in scope, except one process.
pub(crate) fn signal_all_but(pid: i32, scope: Scope<'_>, signal: Signal) -> io::Result<()> {
    for stat in ScanResult::scan(scope, None).members.into_iter().filter(|stat| stat.pid != pid) {
        signal_checked(&stat, signal)?;
    }
    Ok(())
}

struct ScanResult {
    members: Vec<ProcessStat>,
    undecided: Vec<ProcessStat>,
    exempt: Vec<Leftover>,
}

impl ScanResult {
    /// Whether every process is decided. From `decide_by` on, undecided ones are treated as leftovers.
    fn decide(&mut self, decide_by: Instant) -> bool {
        if Instant::now() >= decide_by {
            self.members.append(&mut self.undecided);
        }
        self.undecided.is_empty()
    }

    /// Also searches for markers if `unmarked`, the pids known to have none, is given.
    fn scan(scope: Scope<'_>, unmarked: Option<&mut HashSet<i32>>) -> ScanResult {
        let mut result = ScanResult { members: Vec::new(), undecided: Vec::new(), exempt: Vec::new() };
        let mut known = HashSet::new();
        if let Some(root) = scope.root {
            result.scan_below(root, scope, &mut known);
        }
        let mut others = scope.group.map(group_processes).unwrap_or_default();
        if let (Some(task), Some(unmarked)) = (scope.mark, unmarked) {
            others.extend(find_marked(task, unmarked));
        }
        let ancestors = if others.is_empty() { HashSet::new() } else { own_ancestors() };
        for stat in others {
            if ancestors.contains(&stat.pid) || known.contains(&stat.pid) {
                continue;
            }
            let pid = stat.pid;
            if result.classify(&stat, scope, &mut known) == WalkStep::Descend {
                result.scan_below(pid, scope, &mut known);
            }
        }
        result
    }

    fn scan_below(&mut self, root: i32, scope: Scope<'_>, known: &mut HashSet<i32>) {
        walk(root, |stat| self.classify(stat, scope, known));
    }

    fn classify(&mut self, stat: &ProcessStat, scope: Scope<'_>, known: &mut HashSet<i32>) -> WalkStep {
        if !known.insert(stat.pid) {
            return WalkStep::Skip;
        }
        if stat.is_dead() {
            return WalkStep::Descend;
        }
        match (scope.owner)(stat.pid) {
            Owner::AnotherTask => {}
            Owner::Undecided => self.undecided.push(stat.clone()),
            Owner::ThisTask if is_exempt(stat, scope.exempt) => self.exempt.push(leftover(stat)),
            Owner::ThisTask => {
                self.members.push(stat.clone());
                return WalkStep::Descend;
            }
        }
        // Its descendants belong to it, with or without a marker.
        walk(stat.pid, |below| {
            known.insert(below.pid);
            WalkStep::Descend
        });
        WalkStep::Skip
    }
}

/// The living members of a cgroup. Each record is read between two reads of the list, so it belongs to a
/// member.
fn group_processes(group: &Cgroup) -> Vec<ProcessStat> {
    let read = group.members().into_iter().filter_map(read_stat);
    let living: Vec<ProcessStat> = read.filter(|stat| !stat.is_dead()).collect();
    let current: HashSet<i32> =
        if living.is_empty() { HashSet::new() } else { group.members().into_iter().collect() };
    living.into_iter().filter(|stat| current.contains(&stat.pid)).collect()
}

/// This process and those above it, as far as they can be read: they are never leftovers, whatever marker
/// they carry.
fn own_ancestors() -> HashSet<i32> {
    let mut pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut found = HashSet::new();
    while pid > 0 && found.insert(pid) {
        pid = read_stat(pid).map_or(0, |stat| stat.parent);
    }
    found
}

fn is_exempt(stat: &ProcessStat, exempt: &[String]) -> bool {
    if exempt.is_empty() {
        return false;
    }
    let program = std::fs::read_link(format!("/proc/{}/exe", stat.pid)).ok();
    let program = program.as_deref().and_then(|path| path.file_name()).and_then(|name| name.to_str());
    exempt.iter().any(|name| *name == stat.name || Some(name.as_str()) == program)
}

fn leftover(stat: &ProcessStat) -> Leftover {
    Leftover { pid: stat.pid, program: stat.name.clone() }
}

/// Waits until one of the first `MAX_WATCHED` processes has exited.
fn wait_for_one(members: &[ProcessStat], deadline: Instant) -> io::Result<()> {
    const MAX_WATCHED: usize = 32;
    let mut watched: Vec<OwnedFd> = Vec::new();
    for stat in members.iter().take(MAX_WATCHED) {
        match open_pidfd(stat.pid)? {
            Some(pidfd) => watched.push(pidfd),
            None => return Ok(()),
        }
    }
    wait_readable(&watched, deadline).map(drop)
}
