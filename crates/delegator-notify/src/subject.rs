//! What a notification is about: an ended task, group or chain.

use std::collections::BTreeMap;

use delegator_domain::notification::Subject;
use delegator_domain::task::{EndCounts, EndKind, Member, TaskId};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// An ended task, group or chain, as it is stored.
#[derive(Debug, Clone)]
pub struct NotifiedWork {
    pub subject: Subject,
    pub end: EndKind,
    pub counts: EndCounts,
    pub duration_ms: Option<u64>,
    /// The tasks that were not skipped, in order of submission; at least one.
    pub tasks: Vec<NotifiedTask>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotifiedTask {
    #[serde(rename = "task_id")]
    pub id: TaskId,
    /// Its number, if it is one of several attempts.
    pub attempt: Option<u8>,
    #[serde(flatten, serialize_with = "state_and_end")]
    pub end: EndKind,
    pub title: String,
    pub summary: Option<String>,
    #[serde(rename = "error")]
    pub failure: Option<Failure>,
    pub working_dir: String,
    pub agent: String,
    pub labels: BTreeMap<String, String>,
    /// Milliseconds since 1970.
    pub ended_at_ms: i64,
    pub duration_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub kind: String,
    pub message: String,
}

/// The state, as everywhere in our JSON, and the end, which says whether the check failed.
pub(crate) fn state_and_end<S: Serializer>(end: &EndKind, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(2))?;
    fields.serialize_entry("state", end.state().public_name())?;
    fields.serialize_entry("end", end.name())?;
    fields.end()
}

impl NotifiedWork {
    pub fn of_task(task: NotifiedTask) -> NotifiedWork {
        let member = Member { id: task.id.clone(), follows: None, end: Some(task.end), is_skipped: false };
        NotifiedWork {
            subject: Subject::Task(task.id.clone()),
            end: task.end,
            counts: EndCounts::of(&[member]),
            duration_ms: task.duration_ms,
            tasks: vec![task],
        }
    }

    pub(crate) fn title(&self) -> &str {
        self.tasks.first().map_or("", |task| &task.title)
    }
}
