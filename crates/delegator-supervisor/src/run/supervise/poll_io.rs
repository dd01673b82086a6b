//! Waits for the next event of a run and reads the available output.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::super::limits::ActivitySource;
use super::super::poll_fds::timespec;
use super::tool_commands::ToolCommand;
use super::{Run, TICK};

/// A wait that took this much longer than planned means that the supervisor itself was paused.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// Reads of one stream per round, so that the other sources get their turn.
const MAX_READS_PER_ROUND: usize = 8;

struct ReadyStreams {
    stdout: bool,
    stderr: bool,
    stdin: bool,
    wake: bool,
}

impl Run<'_> {
    fn next_deadline(&self, now: Duration) -> Duration {
        let due = match self.ending.as_ref().or(self.finishing.as_ref()) {
            Some(ending) => ending.next_due(),
            None => self.limit_timers.next_deadline().min(self.next_talk_deadline()),
        };
        let mut next = due.min(self.last_tick + TICK);
        if self.ending.is_none() && self.spec.limits.activity_source == ActivitySource::OutputOrCpu {
            let first = now.saturating_sub(self.limit_timers.idle_time(now)) + self.sampler.min_silence();
            next = next.min(self.sampler.next_due().unwrap_or(first));
        }
        next.saturating_sub(now)
    }

    /// Waits for the next event, then reads and writes whatever is possible.
    pub(super) fn wait_and_read(&mut self) -> io::Result<()> {
        let before = self.now();
        let timeout = self.next_deadline(before);
        let ready = self.poll(timeout)?;
        let after = self.now();
        let overslept = after.saturating_sub(before + timeout);
        let was_paused = overslept > MIN_PAUSE;
        if was_paused {
            self.limit_timers.exclude_pause(overslept);
            self.sampler.reset();
        }
        if let (Some(events), false) = (&mut self.stdout, ready.stdout || was_paused) {
            events.record_empty();
        }
        let mut is_drained = true;
        if let (Some(events), true) = (&mut self.stdout, ready.stdout) {
            is_drained = false;
            for _ in 0..MAX_READS_PER_ROUND {
                let (count, is_activity) = events.read(&mut self.buffer, &mut self.dialogue);
                if is_activity {
                    self.limit_timers.record_activity(after);
                }
                if count == 0 {
                    is_drained = true;
                    break;
                }
            }
        }
        if ready.stderr {
            let (_, is_activity) = self.stderr.read(&mut self.buffer);
            if is_activity {
                self.limit_timers.record_activity(after);
            }
        }
        // Output that arrived during a pause may take another round to read.
        self.is_drained = is_drained && !was_paused;
        if ready.stdin {
            self.dialogue.write_some();
        }
        if ready.wake {
            self.check_cancel();
            self.pass_on_answers();
        }
        Ok(())
    }

    fn poll(&self, timeout: Duration) -> io::Result<ReadyStreams> {
        let sources = [
            (Some(self.agent_pidfd.as_fd()), PollFlags::IN),
            (self.stdout.as_ref().and_then(|events| events.pipe.fd()), PollFlags::IN),
            (self.stderr.pipe.fd(), PollFlags::IN),
            (self.dialogue.pending_fd(), PollFlags::OUT),
            (self.ports.wake_fd(), PollFlags::IN),
        ];
        let mut fd_indices = [None; 5];
        let mut fds = Vec::with_capacity(sources.len());
        for (fd_index, (fd, flags)) in fd_indices.iter_mut().zip(sources) {
            if let Some(fd) = fd {
                *fd_index = Some(fds.len());
                fds.push(PollFd::from_borrowed_fd(fd, flags));
            }
        }
        let tools = self.tool_commands.iter().flat_map(ToolCommand::sources);
        fds.extend(tools.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        match poll(&mut fds, Some(&timespec(timeout))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |index: usize| {
            fd_indices[index].is_some_and(|fd_index: usize| !fds[fd_index].revents().is_empty())
        };
        Ok(ReadyStreams { stdout: is_ready(1), stderr: is_ready(2), stdin: is_ready(3), wake: is_ready(4) })
    }
}
