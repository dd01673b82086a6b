//! Reports the progress of a run through its ports.

use std::process::ChildStdout;
use std::time::Duration;

use super::super::output::EventReader;
use super::super::ports::Snapshot;
use super::{Run, TICK};
use crate::verdict::Cause;

impl Run<'_> {
    pub(super) fn report_progress(&mut self) {
        let Some(events) = &self.stdout else { return };
        if !self.stdin_reported && self.stdin.pending_fd().is_none() {
            self.stdin_reported = true;
            self.ports.on_stdin_delivered();
        }
        if !self.thread_reported
            && let Some(thread) = events.summarizer.thread_id()
        {
            self.thread_reported = true;
            self.ports.on_thread(thread);
            let expected = self.spec.plan.expected_thread.as_deref();
            if let Some(expected) = expected.filter(|expected| *expected != thread) {
                let (expected, announced) = (expected.to_owned(), thread.to_owned());
                self.begin_ending(Cause::WrongThread { expected, announced });
            }
        }
        let now = self.now();
        let Some(events) = &self.stdout else { return };
        let state = (events.pipe.received(), self.stderr.pipe.received());
        let is_new = self.last_snapshot_bytes.unwrap_or_default() != state;
        if is_new && self.last_snapshot_at.is_none_or(|last| now >= last + TICK) {
            let snapshot = self.snapshot(events, now);
            self.last_snapshot_bytes = Some(state);
            self.last_snapshot_at = Some(now);
            self.ports.on_snapshot(&snapshot);
        }
    }

    /// The progress now.
    pub(super) fn current_snapshot(&self) -> Option<Snapshot> {
        self.stdout.as_ref().map(|events| self.snapshot(events, self.now()))
    }

    fn snapshot(&self, events: &EventReader<'_, ChildStdout>, now: Duration) -> Snapshot {
        let report = events.summarizer.report();
        let redact = |text: String| self.spec.redactor.redact_str(&text).into_owned();
        let mut plan = report.plan;
        for step in &mut plan {
            step.text = redact(std::mem::take(&mut step.text));
        }
        Snapshot {
            thread_id: report.thread_id.map(redact),
            turn: report.turn,
            progress: report.progress,
            current_activity: report.current_activity.map(redact),
            plan,
            usage: report.usage,
            events: events.lines(),
            stdout_bytes: events.pipe.received(),
            stderr_bytes: self.stderr.pipe.received(),
            elapsed_ms: millis(now),
            hard_limit_sec: self.spec.limits.hard.as_secs(),
            quiet_ms: millis(self.limit_timers.idle_time(now)),
            processes: self.usage.processes,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
