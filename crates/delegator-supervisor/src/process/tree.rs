//! Walks the descendants of a process.
//!
//! The kernel lists the children of every thread, so a walk costs as much as the tree is large, not as the
//! machine is busy. Without these lists (`CONFIG_PROC_CHILDREN` is off) all of `/proc` is read once per walk.
//!
//! A listed child counts only if its own record names the parent it was listed under, or the root: orphans
//! below a child subreaper are reparented to it. A list read while processes exit may miss one; only `wait`
//! proves that none is left.

use std::collections::{HashMap, HashSet};
use std::io;

use rustix::process::{Signal, pidfd_send_signal};

use super::identity::open_pidfd;
use super::stat::{ProcessStat, read_stat};

/// The task a process belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    ThisTask,
    /// A supervisor of another task, which ends by itself. It and everything below it is not touched.
    AnotherTask,
    /// Claims to be a supervisor that is just starting, which only its recorded start can prove. It is spared
    /// for as long as a sweep may last, then killed like the rest. A supervisor killed this early has not
    /// started its task, which is then started again.
    Undecided,
}

pub type OwnerLookup<'a> = &'a dyn Fn(i32) -> Owner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkStep {
    Descend,
    Skip,
}

/// Visits every process below `root`, including dead ones, parents before their children.
pub(crate) fn walk(root: i32, mut visit: impl FnMut(&ProcessStat) -> WalkStep) {
    let by_parent = if has_children_lists() { None } else { Some(all_by_parent()) };
    let mut pending = vec![root];
    let mut visited = HashSet::from([root]);
    while let Some(parent) = pending.pop() {
        let children = match &by_parent {
            Some(by_parent) => by_parent.get(&parent).cloned().unwrap_or_default(),
            None => children(parent),
        };
        for pid in children {
            let Some(stat) = read_stat(pid) else { continue };
            let descends = stat.parent == parent || stat.parent == root;
            if !descends || !visited.insert(pid) {
                continue;
            }
            match visit(&stat) {
                WalkStep::Descend => pending.push(pid),
                WalkStep::Skip => {}
            }
        }
    }
}

fn has_children_lists() -> bool {
    std::fs::metadata("/proc/thread-self/children").is_ok()
}

fn children(parent: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return found };
    for thread in threads.flatten() {
        let Ok(list) = std::fs::read_to_string(thread.path().join("children")) else { continue };
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    found
}

fn all_by_parent() -> HashMap<i32, Vec<i32>> {
    let mut by_parent: HashMap<i32, Vec<i32>> = HashMap::new();
    for_each_pid(|pid| {
        if let Some(stat) = read_stat(pid) {
            by_parent.entry(stat.parent).or_default().push(pid);
        }
    });
    by_parent
}

pub(crate) fn for_each_pid(mut visit: impl FnMut(i32)) {
    let Ok(entries) = std::fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            visit(pid);
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    /// Living processes, including the agent.
    pub(crate) processes: usize,
    /// Processor time of the agent's descendants, in clock ticks: their own and that of every reaped child.
    /// The agent's own time does not count.
    pub(crate) ticks: u64,
}

/// Measures everything below `me`, whose first child is `agent`, without the processes of other tasks.
pub(crate) fn tree_usage(me: i32, agent: i32, owner: OwnerLookup<'_>) -> TreeUsage {
    let reaped_by_us = read_stat(me).map_or(0, |stat| stat.reaped_ticks);
    let mut usage = TreeUsage { processes: 0, ticks: reaped_by_us };
    walk(me, |stat| {
        if stat.pid != agent && owner(stat.pid) != Owner::ThisTask {
            return WalkStep::Skip;
        }
        usage.processes += usize::from(!stat.is_dead());
        usage.ticks += stat.reaped_ticks;
        if stat.pid != agent {
            usage.ticks += stat.own_ticks;
        }
        WalkStep::Descend
    });
    usage
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalOutcome {
    Delivered,
    Gone,
    NotPermitted,
}

/// Signals exactly the process `stat` was read from: the pidfd is opened first and verified second.
pub(crate) fn signal_checked(stat: &ProcessStat, signal: Signal) -> io::Result<SignalOutcome> {
    let Some(pidfd) = open_pidfd(stat.pid)? else { return Ok(SignalOutcome::Gone) };
    let is_same = read_stat(stat.pid).is_some_and(|now| now.start == stat.start && !now.is_dead());
    if !is_same {
        return Ok(SignalOutcome::Gone);
    }
    match pidfd_send_signal(&pidfd, signal) {
        Ok(()) => Ok(SignalOutcome::Delivered),
        Err(rustix::io::Errno::SRCH) => Ok(SignalOutcome::Gone),
        Err(rustix::io::Errno::PERM) => Ok(SignalOutcome::NotPermitted),
        Err(error) => Err(error.into()),
    }
}
