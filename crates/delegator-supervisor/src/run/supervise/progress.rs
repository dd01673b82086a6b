//! Reports the progress of a run through its ports.
//!
//! The percentage comes from the agent's plan, else from the time that similar tasks took, else it is
//! unknown. It never decreases: after a change of the source the higher value stays, with its own source. In
//! the first second nothing is estimated from similar tasks: many tasks end before, and looking for similar
//! ones would delay their start.

use std::cell::OnceCell;
use std::process::ChildStdout;
use std::time::Duration;

use delegator_domain::text::{self, last_line};
use delegator_transcript::{FileOperations, FinalMessage, Progress};

use super::super::output::EventReader;
use super::super::ports::{Percent, PercentSource, Snapshot};
use super::budgets::BudgetWatch;
use super::talk::Talk;
use super::{RunContext, TICK};
use crate::verdict::Cause;

#[derive(Default)]
pub(super) struct ReportedProgress {
    thread_reported: bool,
    pub(super) prompt_reported: bool,
    pub(super) last_snapshot: Option<LastSnapshot>,
    typical_duration: OnceCell<Option<Duration>>,
}

pub(super) struct LastSnapshot {
    at: Duration,
    size: ProgressSize,
    percent: Option<Percent>,
}

/// By what progress is recognised: lines, bytes on both streams, and findings about budgets.
type ProgressSize = (u64, u64, u64, usize);

pub(super) struct SnapshotSource<'r, 'a> {
    pub(super) run: &'r RunContext<'a>,
    pub(super) events: &'r EventReader<'a, ChildStdout>,
    pub(super) budgets: &'r BudgetWatch,
    pub(super) now: Duration,
    pub(super) stderr_bytes: u64,
    pub(super) quiet: Duration,
    pub(super) processes: usize,
}

impl SnapshotSource<'_, '_> {
    fn size(&self) -> ProgressSize {
        // A line that we sent is new, too.
        let (lines, stdout_bytes) = (self.events.lines(), self.events.pipe.received);
        (lines, stdout_bytes, self.stderr_bytes, self.budgets.findings.len())
    }
}

impl ReportedProgress {
    /// Reports that the agent has its prompt, and which thread it works in; each once. Returns why the run
    /// must end, if it is the wrong thread.
    pub(super) fn report_prompt_and_thread(
        &mut self,
        run: &RunContext<'_>,
        events: &EventReader<'_, ChildStdout>,
        talk: &Talk,
    ) -> Option<Cause> {
        if !self.prompt_reported && talk.has_prompt && talk.dialogue.is_written() {
            self.prompt_reported = true;
            run.ports.on_stdin_delivered();
        }
        let thread = events.summarizer.thread_id().filter(|_| !self.thread_reported)?;
        self.thread_reported = true;
        run.ports.on_thread(thread);
        let expected = run.spec.plan.expected_thread.as_deref().filter(|expected| *expected != thread)?;
        Some(Cause::WrongThread { expected: expected.to_owned(), announced: thread.to_owned() })
    }

    /// The next snapshot and what is recorded of it, if there is progress and the last one was a second ago.
    pub(super) fn next_snapshot(&self, source: &SnapshotSource<'_, '_>) -> Option<(Snapshot, LastSnapshot)> {
        let percent = || self.percent(source.events.summarizer.progress(), source);
        let is_new = match &self.last_snapshot {
            Some(last) if source.now < last.at + TICK => false,
            Some(last) => last.size != source.size() || last.percent != percent(),
            None => source.size() != ProgressSize::default() || percent().is_some(),
        };
        is_new.then(|| {
            let snapshot = self.snapshot(source);
            let last = LastSnapshot { at: source.now, size: source.size(), percent: snapshot.percent };
            (snapshot, last)
        })
    }

    fn percent(&self, progress: Option<Progress>, source: &SnapshotSource<'_, '_>) -> Option<Percent> {
        let find = || *self.typical_duration.get_or_init(|| source.run.ports.typical_duration());
        let typical = (source.now >= TICK).then(find).flatten();
        let last = self.last_snapshot.as_ref().and_then(|last| last.percent);
        next_percent(last, progress, source.now, typical)
    }

    pub(super) fn snapshot(&self, source: &SnapshotSource<'_, '_>) -> Snapshot {
        let SnapshotSource { run, events, budgets, now, stderr_bytes, quiet, processes } = *source;
        let report = events.summarizer.report();
        let mut plan = report.plan;
        for step in &mut plan {
            step.text = run.redact(&step.text);
        }
        Snapshot {
            thread_id: report.thread_id.map(|id| run.redact(&id)),
            turn: report.turn,
            percent: self.percent(report.progress, source),
            steps: report.progress.and_then(|progress| progress.steps),
            current_activity: report.current_activity.map(|activity| run.redact(&activity)),
            last_message: last_message(report.final_message.as_ref(), |text| run.redact(text)),
            plan,
            usage: report.usage,
            events: events.lines(),
            commands: report.commands.finished,
            files: changed_files(&report.files),
            stdout_bytes: events.pipe.received,
            stderr_bytes,
            elapsed_ms: millis(now),
            hard_limit_sec: run.spec.limits.hard.as_secs(),
            idle_limit_sec: Some(run.spec.limits.idle.as_secs()),
            quiet_ms: millis(quiet),
            processes,
            warnings: budgets.warnings().collect(),
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

/// Characters of a message that fit into one line.
const MAX_MESSAGE_CHARS: usize = 200;

/// More than a secret of several lines takes.
const MAX_REDACTED_BYTES: usize = 64 << 10;

/// The last line of a message. A secret is recognised only while it is whole, and may have several lines.
pub fn last_message(message: Option<&FinalMessage>, redact: impl Fn(&str) -> String) -> Option<String> {
    last_line(&redact(text::end(&message?.text, MAX_REDACTED_BYTES)), MAX_MESSAGE_CHARS)
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
