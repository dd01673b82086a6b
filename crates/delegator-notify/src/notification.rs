//! What is sent: the JSON of a notification.
//!
//! Its `id` is the same in every attempt, so that a receiver recognises a repeated one; `delivery_attempt`
//! counts the attempts. Texts are redacted before they are truncated, because a truncated secret is not
//! recognised.

use delegator_domain::notification::SubjectKind;
use delegator_domain::redact::Redactor;
use delegator_domain::task::{EndCounts, EndKind};
use delegator_domain::terminal;
use delegator_domain::text::shorten;
use serde::Serialize;

use crate::SendError;
use crate::settings::NotifySettings;
use crate::subject::{Failure, NotifiedTask, NotifiedWork, state_and_end};
use crate::text::render;

const MAX_TITLE_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 4_000;
/// The limit of each text of one task among several.
const MAX_TEXT_CHARS_OF_MANY: usize = 1_000;
const MAX_LABELS: usize = 32;

/// The body of a webhook request, and the standard input of a command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notification {
    pub version: u32,
    pub id: String,
    pub event: String,
    pub is_test: bool,
    pub delivery_attempt: u32,
    pub title: String,
    pub text: String,
    pub subject: EndedSubject,
    pub tasks: Vec<NotifiedTask>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndedSubject {
    /// `task`, `group` or `chain`
    pub kind: &'static str,
    /// The id of a chain is that of its first task.
    pub id: String,
    #[serde(flatten, serialize_with = "state_and_end")]
    pub end: EndKind,
    pub title: String,
    pub counts: EndCounts,
    pub duration_ms: Option<u64>,
}

impl Notification {
    pub fn new(work: &NotifiedWork, delivery_attempt: u32, settings: &NotifySettings) -> Notification {
        let redactor = settings.redactor();
        let (title, text) = render(work, &settings.template);
        let (kind, id) = (work.subject.kind(), work.subject.id());
        let max_chars = if work.tasks.len() == 1 { MAX_TEXT_CHARS } else { MAX_TEXT_CHARS_OF_MANY };
        Notification {
            version: 1,
            // The end of a chain is another one than that of its first task, whose id it has.
            id: match kind {
                SubjectKind::Chain => format!("{id}.chain_end"),
                SubjectKind::Task | SubjectKind::Group => format!("{id}.end"),
            },
            event: format!("{}.ended", kind.name()),
            is_test: false,
            delivery_attempt,
            title: bounded(&redactor, &title, MAX_TITLE_CHARS),
            text: bounded(&redactor, &text, MAX_TEXT_CHARS),
            subject: EndedSubject {
                kind: kind.name(),
                id: id.to_owned(),
                end: work.end,
                title: bounded(&redactor, work.title(), MAX_TITLE_CHARS),
                counts: work.counts,
                duration_ms: work.duration_ms,
            },
            tasks: work.tasks.iter().map(|task| bounded_task(task, &redactor, max_chars)).collect(),
        }
    }

    pub(crate) fn to_json(&self) -> Result<Vec<u8>, SendError> {
        serde_json::to_vec(self)
            .map_err(|error| SendError::new(format!("the notification could not be written: {error}")))
    }

    #[must_use]
    pub fn into_test(self) -> Notification {
        Notification { id: format!("{}.test", self.subject.id), is_test: true, ..self }
    }
}

fn bounded_task(task: &NotifiedTask, redactor: &Redactor, max_chars: usize) -> NotifiedTask {
    let title = |text: &String| bounded(redactor, text, MAX_TITLE_CHARS);
    let labels = task.labels.iter().take(MAX_LABELS);
    NotifiedTask {
        title: title(&task.title),
        summary: task.summary.as_deref().map(|summary| bounded(redactor, summary, max_chars)),
        failure: task.failure.as_ref().map(|failure| Failure {
            kind: failure.kind.clone(),
            message: bounded(redactor, &failure.message, max_chars),
        }),
        working_dir: bounded(redactor, &task.working_dir, MAX_TEXT_CHARS),
        agent: title(&task.agent),
        labels: labels.map(|(key, value)| (title(key), title(value))).collect(),
        ..task.clone()
    }
}

fn bounded(redactor: &Redactor, text: &str, max_chars: usize) -> String {
    shorten(&terminal::sanitize(&redactor.redact_str(text)), max_chars)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use delegator_domain::notification::Subject;
    use delegator_domain::task::{GroupId, TaskId, TaskLocation};
    use serde_json::json;

    use super::*;

    pub(crate) fn ended_task() -> NotifiedWork {
        NotifiedWork::of_task(task())
    }

    /// A group of which the first attempt failed and the second completed.
    pub(crate) fn ended_group() -> NotifiedWork {
        let second = NotifiedTask {
            id: TaskId::from_random(TaskLocation::Local, [8; 16]),
            attempt: Some(2),
            end: EndKind::Completed,
            summary: Some("Added the missing check\nand a test".to_owned()),
            failure: None,
            agent: "claude".to_owned(),
            ..task()
        };
        NotifiedWork {
            subject: Subject::Group(GroupId::from_random([9; 16])),
            end: EndKind::Completed,
            counts: EndCounts { completed: 1, failed: 1, skipped: 1, ..EndCounts::default() },
            duration_ms: Some(125_000),
            tasks: vec![NotifiedTask { attempt: Some(1), ..task() }, second],
        }
    }

    fn task() -> NotifiedTask {
        NotifiedTask {
            id: TaskId::from_random(TaskLocation::Local, [7; 16]),
            attempt: None,
            end: EndKind::Failed,
            title: "fix the test".to_owned(),
            summary: Some("Failed: the agent exited".to_owned()),
            failure: Some(Failure { kind: "agent_exit".to_owned(), message: "exit code 3".to_owned() }),
            working_dir: "/home/me/project".to_owned(),
            agent: "codex".to_owned(),
            labels: BTreeMap::new(),
            ended_at_ms: 1_700_000_000_000,
            duration_ms: Some(63_000),
        }
    }

    pub(crate) fn settings(template: Option<&str>) -> NotifySettings {
        NotifySettings::new(None, None, template.map(str::to_owned), &BTreeMap::new())
    }

    #[test]
    fn the_template_makes_title_and_text_and_the_id_stays_the_same() {
        let settings = settings(Some("{state} {title}\n{summary} after {duration}"));
        let first = Notification::new(&ended_task(), 1, &settings);
        assert_eq!(
            (first.title.as_str(), first.text.as_str()),
            ("failed fix the test", "Failed: the agent exited after 1 min 3 s")
        );
        let second = Notification::new(&ended_task(), 2, &settings);
        assert_eq!((&first.id, first.delivery_attempt, second.delivery_attempt), (&second.id, 1, 2));
        assert_ne!(first.clone().into_test().id, first.id);
    }

    #[test]
    fn texts_are_redacted_then_truncated() {
        let key = format!("sk-proj-{}", "A1b2C3d4".repeat(6));
        let long = NotifiedWork::of_task(NotifiedTask {
            title: format!("{}{key}", "x ".repeat(90)),
            summary: Some("y".repeat(9_000)),
            ..task()
        });
        let sent = serde_json::to_string(&Notification::new(&long, 1, &settings(None))).unwrap();
        assert!(!sent.contains("sk-proj-A1b2"));
        assert!(sent.len() < 16 << 10, "{}", sent.len());
    }

    #[test]
    fn a_group_has_its_counts_and_its_tasks() {
        let sent = Notification::new(&ended_group(), 1, &settings(None));
        let json = serde_json::to_value(&sent).unwrap();
        assert_eq!((&json["event"], &json["subject"]["kind"]), (&json!("group.ended"), &json!("group")));
        let id = json["subject"]["id"].as_str().unwrap();
        assert!(id.starts_with("G-local-") && json["id"] == format!("{id}.end"), "{json}");
        assert_eq!(
            json["subject"]["counts"],
            json!({"completed": 1, "failed": 1, "cancelled": 0, "timeout": 0, "skipped": 1})
        );
        let states: Vec<_> = sent.tasks.iter().map(|task| (task.attempt, task.end.name())).collect();
        assert_eq!(states, [(Some(1), "failed"), (Some(2), "completed")]);
    }

    #[test]
    fn the_ends_of_a_chain_and_of_its_first_task_have_different_ids() {
        let task = ended_task();
        let chain = NotifiedWork { subject: Subject::Chain(task.tasks[0].id.clone()), ..task.clone() };
        let id = |work| Notification::new(work, 1, &settings(None)).id;
        assert_ne!(id(&task), id(&chain));
    }
}
