//! The facts by which [`delegator_domain::attention`] decides, and the tasks that a person sees beside those of
//! an overview.

use delegator_domain::attention::TaskFacts;
use delegator_domain::notification::Subject;
use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_registry::{Filter, Task};

use super::overview::{Overview, OverviewRequest, RunningTask};
use crate::Results;
use crate::error::Result;
use crate::shared::snapshot_file::quiet_ms;

impl RunningTask {
    pub fn facts(&self, has_open_question: bool, now_ms: i64) -> TaskFacts {
        let known = TaskFacts { has_open_question, ..TaskFacts::of_state(self.task.state) };
        let Some((snapshot, started_ms)) = self.snapshot.as_ref().zip(self.task.started_at_ms) else {
            return known;
        };
        TaskFacts {
            is_budget_near: !snapshot.warnings.is_empty(),
            quiet_ms: quiet_ms(snapshot, started_ms, now_ms),
            idle_limit_sec: snapshot.idle_limit_sec,
            ..known
        }
    }
}

pub fn ended_facts(task: &Task) -> TaskFacts {
    let failure = |end: &TaskEnd| -> Option<FailureKind> {
        if let TaskEnd::Failed { kind, .. } = end { Some(*kind) } else { None }
    };
    let ended = task.ended.as_ref();
    TaskFacts {
        verification: ended.and_then(|ended| ended.verification),
        failure: ended.and_then(|ended| failure(&ended.end)),
        has_apply_conflict: ended.is_some_and(|ended| ended.has_apply_conflict),
        is_read: ended.is_some_and(|ended| ended.read_at_ms.is_some()),
        is_skipped: task.is_skipped(),
        ..TaskFacts::of_state(task.state)
    }
}

#[derive(Debug, Default)]
pub struct ShownBeside {
    /// Tasks whose results were not read, whenever they ended.
    pub unread: Vec<Task>,
    pub unread_total: u64,
    /// The groups and chains of all these tasks, each with all of its tasks.
    pub submissions: Vec<(Subject, Vec<Task>)>,
}

impl Results<'_> {
    pub fn shown_beside(
        &self,
        overview: &Overview,
        request: &OverviewRequest,
        unread_limit: u32,
    ) -> Result<ShownBeside> {
        let Some(registry) = self.engine.find_registry()? else { return Ok(ShownBeside::default()) };
        let mut beside = ShownBeside::default();
        if request.only.is_empty() {
            let unread = Filter { is_unread: true, ..request.filter.clone() };
            let page = registry.list_ended(&unread, 0, unread_limit, None)?;
            (beside.unread, beside.unread_total) = (page.tasks, page.total);
        }
        let running = overview.running.tasks.iter().map(|running| &running.task.submission);
        let queued = overview.queued.tasks.iter().map(|queued| &queued.task.submission);
        let ended = overview.ended.tasks.iter().chain(&beside.unread).map(|task| &task.submission);
        let mut subjects: Vec<Subject> = running.chain(queued).chain(ended).flatten().cloned().collect();
        subjects.sort();
        subjects.dedup();
        for subject in subjects {
            let tasks = registry.submitted_together(&subject)?;
            beside.submissions.push((subject, tasks));
        }
        Ok(beside)
    }
}
