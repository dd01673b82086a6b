//! What a run tells on its way.

use std::process::ChildStdout;
use std::time::Duration;

use super::super::output::Events;
use super::super::ports::Snapshot;
use super::{Run, TICK};
use crate::verdict::Cause;

impl Run<'_> {
    /// Tells whoever wants to know.
    pub(super) fn tell(&mut self) {
        let Some(events) = &self.events else { return };
        if !self.stdin_told && self.feed.pending().is_none() {
            self.stdin_told = true;
            self.ports.on_stdin_delivered();
        }
        if !self.thread_told
            && let Some(thread) = events.account.thread_id()
        {
            self.thread_told = true;
            self.ports.on_thread(thread);
            let expected = self.spec.plan.expected_thread.as_deref();
            if let Some(asked) = expected.filter(|asked| *asked != thread) {
                let (asked, announced) = (asked.to_owned(), thread.to_owned());
                self.end(Cause::WrongThread { asked, announced });
            }
        }
        let now = self.now();
        let Some(events) = &self.events else { return };
        let state = (events.pipe.received(), self.complaints.pipe.received());
        let is_new = self.snapshot_of.unwrap_or_default() != state;
        if is_new && self.last_snapshot.is_none_or(|last| now >= last + TICK) {
            let snapshot = self.snapshot(events, now);
            self.snapshot_of = Some(state);
            self.last_snapshot = Some(now);
            self.ports.on_snapshot(&snapshot);
        }
    }

    /// How it stands when it is over, for what comes after it.
    pub(super) fn last_snapshot(&self) -> Option<Snapshot> {
        self.events.as_ref().map(|events| self.snapshot(events, self.now()))
    }

    fn snapshot(&self, events: &Events<'_, ChildStdout>, now: Duration) -> Snapshot {
        let report = events.account.report();
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
            stderr_bytes: self.complaints.pipe.received(),
            elapsed_ms: millis(now),
            quiet_ms: millis(self.watch.quiet(now)),
            processes: self.counted.processes,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
