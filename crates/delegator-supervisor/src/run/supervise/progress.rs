//! Reports the progress of a run through its ports.
//!
//! The percentage comes from the agent's plan, else from the time that similar tasks took, else it is unknown. It never
//! decreases: after a change of the source the higher value stays, with its own source. In the first second nothing is
//! estimated from similar tasks: many tasks end before, and looking for similar ones would delay their start.

use std::process::ChildStdout;
use std::time::Duration;

use delegator_transcript::{FileOperations, Progress};

use super::super::output::EventReader;
use super::super::ports::{Percent, PercentSource, Snapshot};
use super::{Run, TICK};
use crate::verdict::Cause;

impl Run<'_> {
    pub(super) fn report_progress(&mut self) {
        self.report_prompt_and_thread();
        self.report_snapshot();
    }

    /// That the agent has its prompt, and which thread it works in; each once.
    pub(super) fn report_prompt_and_thread(&mut self) {
        let Some(events) = &self.stdout else { return };
        if !self.prompt_reported && self.talk.has_prompt && self.dialogue.is_written() {
            self.prompt_reported = true;
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
    }

    fn report_snapshot(&mut self) {
        let now = self.now();
        let Some(events) = &self.stdout else { return };
        // A line that we sent is new, too.
        let (stdout, stderr) = (events.pipe.received(), self.stderr.pipe.received());
        let counts = (events.lines(), stdout, stderr, self.budgets.findings().len());
        let is_new = self.last_snapshot_counts.unwrap_or_default() != counts
            || self.percent_at(events.summarizer.progress(), now) != self.percent;
        if is_new && self.last_snapshot_at.is_none_or(|last| now >= last + TICK) {
            let snapshot = self.snapshot(events, now);
            self.last_snapshot_counts = Some(counts);
            self.last_snapshot_at = Some(now);
            self.percent = snapshot.percent;
            self.ports.on_snapshot(&snapshot);
        }
    }

    fn percent_at(&self, progress: Option<Progress>, now: Duration) -> Option<Percent> {
        let typical = (now >= TICK)
            .then(|| *self.typical_duration.get_or_init(|| self.ports.typical_duration()))
            .flatten();
        next_percent(self.percent, progress, now, typical)
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
            percent: self.percent_at(report.progress, now),
            steps: report.progress.and_then(|progress| progress.steps),
            current_activity: report.current_activity.map(redact),
            plan,
            usage: report.usage,
            events: events.lines(),
            commands: report.commands.finished,
            files: changed_files(&report.files),
            stdout_bytes: events.pipe.received(),
            stderr_bytes: self.stderr.pipe.received(),
            elapsed_ms: millis(now),
            hard_limit_sec: self.spec.limits.hard.as_secs(),
            quiet_ms: millis(self.limit_timers.idle_time(now)),
            processes: self.usage.processes,
            warnings: self.budgets.warnings().collect(),
        }
    }
}

/// The end of a turn is not the end of the task.
const MAX_PLANNED: u8 = 99;
/// A task that takes longer than usual is not about to end.
const MAX_ESTIMATED: u8 = 95;

fn planned(progress: Option<Progress>) -> Option<Percent> {
    let progress = progress.filter(|progress| progress.steps.is_some())?;
    Some(Percent { value: progress.percent?.min(MAX_PLANNED), source: PercentSource::Plan })
}

fn estimate(elapsed: Duration, typical: Option<Duration>) -> Option<Percent> {
    let percent = (elapsed.as_millis() * 100).checked_div(typical?.as_millis())?;
    let value = u8::try_from(percent).unwrap_or(MAX_ESTIMATED).min(MAX_ESTIMATED);
    Some(Percent { value, source: PercentSource::History })
}

/// The percentage after `last`.
pub fn next_percent(
    last: Option<Percent>,
    progress: Option<Progress>,
    elapsed: Duration,
    typical: Option<Duration>,
) -> Option<Percent> {
    at_least(last, planned(progress).or_else(|| estimate(elapsed, typical)))
}

/// The current percentage, unless the last one was higher.
fn at_least(last: Option<Percent>, current: Option<Percent>) -> Option<Percent> {
    match (last, current) {
        (Some(last), Some(current)) if current.value < last.value => Some(last),
        // An estimate adds nothing to a plan with the same value.
        (Some(last), Some(current)) if current.value == last.value && last.source == PercentSource::Plan => {
            Some(last)
        }
        (last, current) => current.or(last),
    }
}

pub fn changed_files(files: &FileOperations) -> u64 {
    (files.added.len() + files.modified.len() + files.deleted.len()) as u64 + files.not_listed
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use delegator_transcript::PlanSteps;

    use super::*;

    const fn percent(value: u8, source: PercentSource) -> Option<Percent> {
        Some(Percent { value, source })
    }

    #[test]
    fn without_plan_and_history_the_percentage_is_unknown() {
        assert_eq!(planned(None), None);
        assert_eq!(planned(Some(Progress { percent: Some(100), steps: None })), None);
        assert_eq!(estimate(Duration::from_secs(60), None), None);
        assert_eq!(at_least(None, None), None);
    }

    #[test]
    fn an_estimate_ends_at_95_and_a_plan_at_99() {
        let typical = Some(Duration::from_secs(100));
        for (elapsed, expected) in [(0, 0), (60, 60), (96, 95), (100, 95), (100_000, 95)] {
            let expected = percent(expected, PercentSource::History);
            assert_eq!(estimate(Duration::from_secs(elapsed), typical), expected);
        }
        let steps = Some(PlanSteps { completed: 3, total: 3 });
        let done = planned(Some(Progress { percent: Some(100), steps }));
        assert_eq!(done, percent(99, PercentSource::Plan));
    }

    #[test]
    fn an_estimate_never_changes_the_percentage_of_a_plan() {
        let steps = Some(PlanSteps { completed: 1, total: 2 });
        let half = Some(Progress { percent: Some(50), steps });
        let at = |last, seconds| {
            next_percent(last, half, Duration::from_secs(seconds), Some(Duration::from_secs(100)))
        };
        let first = at(None, 10);
        assert_eq!(first, percent(50, PercentSource::Plan));
        assert_eq!(at(first, 90), first, "the time alone makes no new snapshot");
    }

    #[test]
    fn the_percentage_never_decreases_when_its_source_changes() {
        use PercentSource::{History, Plan};
        assert_eq!(at_least(percent(60, History), percent(20, Plan)), percent(60, History));
        assert_eq!(at_least(percent(60, History), percent(60, Plan)), percent(60, Plan));
        assert_eq!(at_least(percent(50, Plan), percent(50, History)), percent(50, Plan));
        assert_eq!(at_least(percent(50, Plan), percent(70, History)), percent(70, History));
        assert_eq!(at_least(percent(50, Plan), None), percent(50, Plan));
    }
}
