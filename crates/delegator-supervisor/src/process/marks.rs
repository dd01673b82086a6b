//! Finds processes that carry a task's marker in their environment.
//!
//! The subreaper sees everything that descends from the agent. The marker finds the rest: processes a daemon
//! started for the agent, and everything left by a task whose supervisor was killed.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;

use delegator_domain::task::TaskId;

use super::stat::{ProcessStat, read_stat};
use super::tree::for_each_pid;
use crate::variables::{MARKER, parse_task_marker};

/// The task and the depth in the marker that a process was started with.
pub fn task_by_marker(pid: i32) -> Option<(TaskId, u32)> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
    variables.find_map(|one| parse_task_marker(one.strip_prefix(MARKER)?.strip_prefix('=')?))
}

/// Every living process with that task's marker, except this one and the pids in `unmarked`. Pids without the
/// marker are added to it.
pub fn find_marked(task: &TaskId, unmarked: &mut HashSet<i32>) -> Vec<ProcessStat> {
    let needle = format!("{MARKER}={task}:").into_bytes();
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let mut buffer = vec![0; 4096];
    let mut found = Vec::new();
    for_each_pid(|pid| {
        if pid == me || unmarked.contains(&pid) {
            return;
        }
        if !has_mark(pid, &needle, &mut buffer) {
            unmarked.insert(pid);
            return;
        }
        // Read between two checks of the environment, the record belongs to the process that carries the
        // marker.
        if let Some(stat) = read_stat(pid).filter(|stat| !stat.is_dead())
            && has_mark(pid, &needle, &mut buffer)
        {
            found.push(stat);
        }
    });
    found
}

fn has_mark(pid: i32, needle: &[u8], buffer: &mut [u8]) -> bool {
    File::open(format!("/proc/{pid}/environ")).is_ok_and(|file| contains_variable(file, needle, buffer))
}

/// Whether a NUL-separated list has an entry that begins with `needle`.
fn contains_variable(mut list: impl Read, needle: &[u8], buffer: &mut [u8]) -> bool {
    // Unchecked bytes stay at the front of the buffer. A NUL stands before the first entry.
    let mut filled = 1;
    buffer[0] = 0;
    loop {
        match list.read(&mut buffer[filled..]) {
            Ok(0) | Err(_) => return false,
            Ok(count) => filled += count,
        }
        let matches = memchr::memmem::find_iter(&buffer[..filled], needle);
        if matches.into_iter().any(|at| at > 0 && buffer[at - 1] == 0) {
            return true;
        }
        let overlap = needle.len().min(filled);
        buffer.copy_within(filled - overlap..filled, 0);
        filled = overlap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a few bytes per read.
    struct ChunkedReader<'a>(&'a [u8], usize);

    impl Read for ChunkedReader<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(into.len()).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn only_the_exact_variable_matches() {
        let needle = b"DELEGATOR_TASK=T-local-1:";
        let cases: [(&[u8], bool); 6] = [
            (b"DELEGATOR_TASK=T-local-1:0", true),
            (b"PATH=/bin\0DELEGATOR_TASK=T-local-1:2\0A=B", true),
            (b"OLD_DELEGATOR_TASK=T-local-1:0", false),
            (b"X=DELEGATOR_TASK=T-local-1:0\0", false),
            (b"DELEGATOR_TASK=T-local-12:0\0", false),
            (b"", false),
        ];
        for (list, expected) in cases {
            for step in 1..40 {
                let mut buffer = vec![0; 64];
                let found = contains_variable(ChunkedReader(list, step), needle, &mut buffer);
                assert_eq!(found, expected, "{} by {step}", String::from_utf8_lossy(list));
            }
        }
    }
}
