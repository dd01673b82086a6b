//! L3: many agents that print little: the cost of supervising them, and the delay until an event can be read.

use std::collections::HashMap;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use super::Trial;
use super::bulk::start_slow_agents;
use crate::clock::monotonic_us;
use crate::engine_calls::supervisors;
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::processes::cpu_seconds;
use crate::testbed::Testbed;

const AGENTS: usize = 500;
const WAITERS: usize = 8;
const DURATION_SECONDS: usize = 120;
const EVENTS_PER_SECOND: f64 = 0.2;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.fit_to_machine(trial.scaled(AGENTS, 10), 3);
    let testbed = trial.testbed(agents)?;
    let server = testbed.server()?;
    let (agent, ids) = start_slow_agents(trial, &testbed, &server, (agents, EVENTS_PER_SECOND))?;
    let mut waiters = Waiters(Vec::new());
    for id in ids.iter().take(WAITERS) {
        let started = testbed.cli_call(&agent, &["local", "wait", id, "--timeout-sec", "3600"]).spawn();
        waiters.0.push(started.map_err(LoadError::io("start a waiter"))?);
    }
    let groups = [supervisors(&testbed.engine().registry()?)?, waiters.pids(), vec![server.pid()]];
    let mut files = EventFiles::watch(&testbed, &ids)?;
    let duration = Duration::from_secs(trial.scaled(DURATION_SECONDS, 10) as u64);
    let before = groups.each_ref().map(|pids| cpu_seconds(pids));
    let started = Instant::now();
    while started.elapsed() < duration {
        trial.deadline.check("reading the agents' events")?;
        files.poll_changes(Duration::from_millis(200))?;
    }
    let elapsed = started.elapsed().as_secs_f64();
    let after = groups.each_ref().map(|pids| cpu_seconds(pids));
    let percent = |group: usize| (after[group] - before[group]) / elapsed * 100.0;
    let ended = groups[0].len() - supervisors(&testbed.engine().registry()?)?.len();
    let mut delays = files.delays;
    // In that time every agent prints at least this many events, whatever its phase.
    let expected_events = agents as f64 * (EVENTS_PER_SECOND * elapsed).floor();
    Ok(vec![
        Figure::count("agents at once", agents),
        Figure::unbounded("measured for", elapsed, "s"),
        Figure::at_most(15.0, "CPU of supervisors and waiters, of one core", percent(0) + percent(1), "%"),
        Figure::unbounded(" supervisors alone", percent(0), "%"),
        Figure::unbounded(format!(" {WAITERS} waiters alone"), percent(1), "%"),
        Figure::unbounded("CPU of an idle server, of one core", percent(2), "%"),
        Figure::at_least(
            100.0,
            "events read, of the expected minimum",
            delays.len() as f64 / expected_events * 100.0,
            "%",
        ),
        Figure::unbounded("event → visible in its file, p50", percentile(&mut delays, 50.0), "ms"),
        Figure::at_most(200.0, "event → visible in its file, p99", percentile(&mut delays, 99.0), "ms"),
        Figure::must_be_zero("tasks that ended meanwhile", ended),
    ])
}

/// Waiting command-line calls; killed with the tier.
struct Waiters(Vec<Child>);

impl Waiters {
    fn pids(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        for waiter in &mut self.0 {
            let _ = waiter.kill();
            let _ = waiter.wait();
        }
    }
}

/// The event files of many tasks, read as they grow.
struct EventFiles {
    changes: OwnedFd,
    files: HashMap<i32, (File, u64)>,
    /// From printing an event until it is readable, in milliseconds.
    delays: Vec<f64>,
}

impl EventFiles {
    fn watch(testbed: &Testbed, ids: &[String]) -> Result<EventFiles, LoadError> {
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
            .map_err(|error| LoadError::io("watch files")(error.into()))?;
        let mut files = HashMap::new();
        for id in ids {
            let path = testbed.events_file(id);
            let number = inotify::add_watch(&changes, &path, inotify::WatchFlags::MODIFY)
                .map_err(|error| LoadError::io("watch a file")(error.into()))?;
            let file = File::open(&path).map_err(LoadError::io("open a file of events"))?;
            // Events written before the watch started say nothing about delays.
            let length = file.metadata().map_err(LoadError::io("measure a file of events"))?.len();
            files.insert(number, (file, length));
        }
        Ok(EventFiles { changes, files, delays: Vec::new() })
    }

    fn poll_changes(&mut self, limit: Duration) -> Result<(), LoadError> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        let polled = poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&timeout));
        if !matches!(polled, Ok(1..)) {
            return Ok(());
        }
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(&self.changes, &mut buffer);
        let mut changed = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => changed.push(event.wd()),
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(LoadError::io("read file changes")(error.into())),
            }
        }
        for number in changed {
            self.read_new_events(number)?;
        }
        Ok(())
    }

    fn read_new_events(&mut self, number: i32) -> Result<(), LoadError> {
        let Some((file, offset)) = self.files.get_mut(&number) else { return Ok(()) };
        let mut bytes = vec![0; 16 << 10];
        let count = file.read_at(&mut bytes, *offset).map_err(LoadError::io("read events"))?;
        let now_us = monotonic_us();
        // Only complete lines count.
        let Some(end) = bytes[..count].iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        *offset += end as u64 + 1;
        let text = String::from_utf8_lossy(&bytes[..end]);
        self.delays
            .extend(text.lines().filter_map(emitted_at_us).map(|at_us| (now_us - at_us) as f64 / 1000.0));
        Ok(())
    }
}

/// When a timed event was printed.
fn emitted_at_us(line: &str) -> Option<i64> {
    line.split_once("\"text\":\"event ")?.1.split(' ').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timed_event_carries_its_timestamp() {
        let line = r#"{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"event 4 at 123456 xxx"}}"#;
        assert_eq!(emitted_at_us(line), Some(123_456));
        assert_eq!(emitted_at_us(r#"{"type":"turn.started"}"#), None);
    }
}
