//! The progress of a task that a provider runs, folded from its copied events. The folds of a process are
//! retained while their tasks run, so that a wait reads each event once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_registry::{NewBytes, ReadPosition, TaskDir, TaskFile};
use delegator_supervisor::run::{Percent, Snapshot, changed_files, last_message, next_percent};
use delegator_transcript::{Framer, LineLimits, LineSummarizer};

use crate::error::Result;

#[derive(Debug)]
pub(super) struct EventFold {
    position: ReadPosition,
    framer: Framer,
    summarizer: LineSummarizer,
    lines: u64,
    percent: Option<Percent>,
}

impl EventFold {
    fn new() -> EventFold {
        EventFold {
            position: ReadPosition::default(),
            framer: Framer::new(LineLimits::STANDARD),
            summarizer: LineSummarizer::default(),
            lines: 0,
            percent: None,
        }
    }

    fn read_new(&mut self, dir: &TaskDir) -> Result<()> {
        let NewBytes { bytes, is_restarted } =
            dir.read_new(TaskFile::Events, &mut self.position, u64::MAX)?;
        if is_restarted {
            *self = EventFold { position: self.position, ..EventFold::new() };
        }
        let EventFold { framer, summarizer, lines, .. } = self;
        framer.push(&bytes, |line| {
            *lines += 1;
            summarizer.push_line(&line);
        });
        Ok(())
    }

    /// The limits and processes of the worker are not known here.
    pub(super) fn snapshot(&mut self, elapsed: Duration, typical: Option<Duration>) -> Snapshot {
        let report = self.summarizer.report();
        self.percent = next_percent(self.percent, report.progress, elapsed, typical);
        Snapshot {
            thread_id: report.thread_id,
            turn: report.turn,
            percent: self.percent,
            steps: report.progress.and_then(|progress| progress.steps),
            current_activity: report.current_activity,
            last_message: last_message(report.final_message.as_ref(), str::to_owned),
            plan: report.plan,
            usage: report.usage,
            events: self.lines,
            commands: report.commands.finished,
            files: changed_files(&report.files),
            stdout_bytes: self.position.offset,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            ..Snapshot::default()
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct EventFolds(Arc<Mutex<HashMap<TaskId, EventFold>>>);

impl EventFolds {
    pub(super) fn update<T>(&self, dir: &TaskDir, then: impl FnOnce(&mut EventFold) -> T) -> Result<T> {
        let mut folds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fold = folds.entry(dir.id().clone()).or_insert_with(EventFold::new);
        fold.read_new(dir)?;
        Ok(then(fold))
    }

    pub(super) fn remove(&self, id: &TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
