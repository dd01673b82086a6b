//! What a notification is about: an ended task, group or chain.

use std::collections::BTreeMap;

use delegator_domain::notification::Subject;
use delegator_domain::task::{EndCounts, EndedMember, State, TaskId};
use serde::Serialize;

/// The facts about an ended task, group or chain, as they are stored.
#[derive(Debug, Clone)]
pub struct SubjectFacts {
    pub subject: Subject,
    pub state: State,
    pub counts: EndCounts,
    pub duration_ms: Option<u64>,
    /// The tasks that were not skipped, in order of submission; at least one.
    pub tasks: Vec<TaskFacts>,
}

/// The facts about an ended task, as they are stored.
#[derive(Debug, Clone)]
pub struct TaskFacts {
    pub id: TaskId,
    /// Its number, if it is one of several attempts.
    pub attempt: Option<u8>,
    pub state: State,
    pub title: String,
    pub summary: Option<String>,
    pub failure: Option<Failure>,
    pub working_dir: String,
    pub agent: String,
    pub labels: BTreeMap<String, String>,
    pub ended_at_ms: i64,
    pub ran_ms: Option<u64>,
}

/// Why a task failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub kind: String,
    pub message: String,
}

impl SubjectFacts {
    /// The facts about a task by itself.
    pub fn of_task(task: TaskFacts) -> SubjectFacts {
        let member = EndedMember { id: task.id.clone(), follows: None, state: task.state, is_skipped: false };
        SubjectFacts {
            subject: Subject::Task(task.id.clone()),
            state: task.state,
            counts: EndCounts::of(&[member]),
            duration_ms: task.ran_ms,
            tasks: vec![task],
        }
    }

    pub(crate) fn title(&self) -> &str {
        self.tasks.first().map_or("", |task| &task.title)
    }
}
