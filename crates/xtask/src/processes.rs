//! Reads processes from `/proc`: their environment, resource usage and state.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process held by a pidfd, so that a reused pid cannot be signalled.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    pub(crate) pid: u32,
    pidfd: OwnedFd,
}

impl ProcessHandle {
    pub(crate) fn kill(&self) {
        // It may have exited by itself.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Its command line.
    pub(crate) fn args(&self) -> Vec<String> {
        args_of(self.pid)
    }

    /// Whether it still has the command line of its parent, because it has not executed its own program yet.
    pub(crate) fn is_before_exec(&self) -> bool {
        stat(self.pid).is_some_and(|stat| args_of(stat.parent) == self.args())
    }
}

fn args_of(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).split_terminator('\0').map(str::to_owned).collect()
}

/// Every living process whose environment has one of these entries. A zombie has no environment.
pub(crate) fn with_variable(entries: &[String]) -> Vec<ProcessHandle> {
    let has_entry = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| entries.iter().any(|entry| variable == entry.as_bytes()))
    };
    let open_handle = |pid: u32| {
        let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty()).ok()?;
        has_entry(pid).then_some(ProcessHandle { pid, pidfd })
    };
    all_pids().into_iter().filter(|pid| has_entry(*pid)).filter_map(open_handle).collect()
}

/// Number of dead children that these processes have not reaped.
pub(crate) fn zombies_of(parents: &[u32]) -> usize {
    let is_child_zombie = |stat: &Stat| stat.state == 'Z' && parents.contains(&stat.parent);
    all_pids().into_iter().filter_map(stat).filter(is_child_zombie).count()
}

fn all_pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: u32,
    ticks: u64,
    /// Of the children it has reaped, and of theirs.
    child_ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name may contain anything, including brackets; the fields after the last bracket may not.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(1)?).ok()?,
        ticks: number(11)? + number(12)?,
        child_ticks: number(13)? + number(14)?,
    })
}

/// Total processor time of these processes, in seconds. Exited processes count as zero.
pub(crate) fn cpu_seconds(pids: &[u32]) -> f64 {
    let ticks: u64 = pids.iter().filter_map(|pid| stat(*pid)).map(|stat| stat.ticks).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Processor time of these processes and of every descendant that was reaped, in seconds.
pub(crate) fn total_cpu_seconds(pids: &[u32]) -> f64 {
    let stats = pids.iter().filter_map(|pid| stat(*pid));
    let ticks: u64 = stats.map(|stat| stat.ticks + stat.child_ticks).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// The living descendants of a process.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        all_pids().into_iter().filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let (mut found, mut at) = (vec![root], 0);
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

/// Proportional set size, in KiB.
pub(crate) fn pss_kib(pid: u32) -> Option<u64> {
    kib_line(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:")
}

pub(crate) fn rss_kib(pid: u32) -> Option<u64> {
    kib_line(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

/// Peak resident memory, in KiB.
pub(crate) fn peak_kib(pid: u32) -> Option<u64> {
    kib_line(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

/// Resident file pages, which all processes of one program share, in KiB.
pub(crate) fn file_pages_kib(pid: u32) -> Option<u64> {
    kib_line(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "RssFile:")
}

fn kib_line(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

pub(crate) fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_may_contain_brackets() {
        let text = "7 (a) b (c) Z 3 1 1 0 -1 4194560 0 0 0 0 5 6 7 8 20 0 1 0 100 0 0";
        let expected = Stat { state: 'Z', parent: 3, ticks: 11, child_ticks: 15 };
        assert_eq!(parse_stat(text), Some(expected));
    }

    #[test]
    fn memory_lines_are_found_by_key() {
        assert_eq!(kib_line("VmPeak:\t 9 kB\nVmHWM:\t  123 kB\n", "VmHWM:"), Some(123));
        assert_eq!(kib_line("VmPeak:\t 9 kB\n", "VmHWM:"), None);
    }

    #[test]
    fn own_process_has_memory_files_and_threads() {
        let me = std::process::id();
        assert!(rss_kib(me).unwrap() > 0 && peak_kib(me) >= rss_kib(me));
        assert!(open_files(me) >= 3 && threads(me) >= 1);
        assert!(cpu_seconds(&[me]) >= 0.0);
        assert!(total_cpu_seconds(&[me]) >= cpu_seconds(&[me]));
        assert_eq!(zombies_of(&[me]), 0);
    }

    #[test]
    fn descendants_do_not_include_the_process_itself() {
        let init = descendants(1);
        assert!(!init.contains(&1));
        assert!(!descendants(std::process::id()).contains(&std::process::id()));
    }
}
