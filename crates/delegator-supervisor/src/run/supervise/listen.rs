//! Waits for whatever comes first, and takes it in.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::super::limits::IdleCounts;
use super::super::wait::timespec;
use super::{Run, TICK};

/// A wait that took so much longer than it should was a pause of our own.
const PAUSE: Duration = Duration::from_secs(1);
/// Reads of one stream before everything else has its turn.
const READS_AT_ONCE: usize = 8;

struct Ready {
    stdout: bool,
    stderr: bool,
    stdin: bool,
    wake: bool,
}

impl Run<'_> {
    fn next_deadline(&self, now: Duration) -> Duration {
        let due = match &self.ending {
            Some(ending) => ending.due(),
            None => self.watch.next(),
        };
        let mut next = due.min(self.last_tick + TICK);
        if self.ending.is_none() && self.spec.limits.idle_counts == IdleCounts::Activity {
            let first = now.saturating_sub(self.watch.quiet(now)) + self.sampler.rest();
            next = next.min(self.sampler.next().unwrap_or(first));
        }
        next.saturating_sub(now)
    }

    /// Waits for something, and takes in whatever there is.
    pub(super) fn wait_and_read(&mut self) -> io::Result<()> {
        let before = self.now();
        let limit = self.next_deadline(before);
        let ready = self.poll(limit)?;
        let after = self.now();
        let overslept = after.saturating_sub(before + limit);
        let was_paused = overslept > PAUSE;
        if was_paused {
            self.watch.paused(overslept);
            self.sampler.forget();
        }
        let mut is_drained = true;
        if let (Some(events), true) = (&mut self.events, ready.stdout) {
            is_drained = false;
            for _ in 0..READS_AT_ONCE {
                let (count, is_work) = events.read(&mut self.buffer);
                if is_work {
                    self.watch.activity(after);
                }
                if count == 0 {
                    is_drained = true;
                    break;
                }
            }
        }
        if ready.stderr {
            let (_, is_work) = self.complaints.read(&mut self.buffer);
            if is_work {
                self.watch.activity(after);
            }
        }
        // What came into the pipes during a pause may take another round.
        self.is_drained = is_drained && !was_paused;
        if ready.stdin {
            self.feed.push();
        }
        if ready.wake {
            self.look_for_cancel();
        }
        Ok(())
    }

    fn poll(&self, limit: Duration) -> io::Result<Ready> {
        let sources = [
            (Some(self.pidfd.as_fd()), PollFlags::IN),
            (self.events.as_ref().and_then(|events| events.pipe.fd()), PollFlags::IN),
            (self.complaints.pipe.fd(), PollFlags::IN),
            (self.feed.pending(), PollFlags::OUT),
            (self.ports.wake_fd(), PollFlags::IN),
        ];
        let mut places = [None; 5];
        let mut fds = Vec::with_capacity(sources.len());
        for (place, (fd, flags)) in places.iter_mut().zip(sources) {
            if let Some(fd) = fd {
                *place = Some(fds.len());
                fds.push(PollFd::from_borrowed_fd(fd, flags));
            }
        }
        match poll(&mut fds, Some(&timespec(limit))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready =
            |index: usize| places[index].is_some_and(|place: usize| !fds[place].revents().is_empty());
        Ok(Ready { stdout: is_ready(1), stderr: is_ready(2), stdin: is_ready(3), wake: is_ready(4) })
    }
}
