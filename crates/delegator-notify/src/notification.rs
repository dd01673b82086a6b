//! What is sent: the JSON of a notification.
//!
//! Its `id` is the same in every attempt, so that a receiver recognises a repeated one; `delivery_attempt`
//! counts the attempts. Texts are redacted before they are truncated, because a truncated secret is not
//! recognised.

use std::collections::BTreeSet;

use delegator_domain::notification::{SubjectKind, Topic};
use delegator_domain::task::{EndCounts, EndKind, State};
use delegator_domain::text::{first_line, shorten};
use serde::Serialize;

use crate::SendError;
use crate::live::{LiveBody, NeedyTask};
use crate::settings::NotifySettings;
use crate::subject::{Failure, NotifiedTask, NotifiedWork, state_and_end};
use crate::text::render;
use crate::text_bounds::{MAX_TEXT_CHARS, MAX_TITLE_CHARS, TextBounds};

/// How many notifications are merged into one, so that the text has room for each.
pub const MAX_MERGED: usize = 10;
/// The limit of each text of one task among several.
const MAX_TEXT_CHARS_OF_MANY: usize = 1_000;

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
    /// The page about it, if the dashboard runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What is said where this is one of several.
    #[serde(skip)]
    pub(crate) brief: String,
    #[serde(flatten)]
    pub(crate) content: NotificationBody,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum NotificationBody {
    Ended { subject: EndedSubject, tasks: Vec<NotifiedTask> },
    Live(LiveBody),
    Several { notifications: Vec<Notification> },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct EndedSubject {
    /// `task`, `group` or `chain`
    pub(crate) kind: &'static str,
    /// The id of a chain is that of its first task.
    pub(crate) id: String,
    #[serde(flatten, serialize_with = "state_and_end")]
    pub(crate) end: EndKind,
    pub(crate) title: String,
    pub(crate) counts: EndCounts,
    pub(crate) duration_ms: Option<u64>,
}

/// How urgent a notification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    Normal,
    Failed,
    NeedsPerson,
}

impl Notification {
    pub fn new(work: &NotifiedWork, delivery_attempt: u32, settings: &NotifySettings) -> Notification {
        let bounds = TextBounds::new(settings);
        let (title, text) = render(work, &settings.template);
        let (kind, id) = (work.subject.kind(), work.subject.id());
        let max_chars = if work.tasks.len() == 1 { MAX_TEXT_CHARS } else { MAX_TEXT_CHARS_OF_MANY };
        let text = bounds.apply(&text, MAX_TEXT_CHARS);
        let subject = EndedSubject {
            kind: kind.name(),
            id: id.to_owned(),
            end: work.end,
            title: bounds.apply(work.title(), MAX_TITLE_CHARS),
            counts: work.counts,
            duration_ms: work.duration_ms,
        };
        let tasks = work.tasks.iter().map(|task| bounded_task(task, &bounds, max_chars)).collect();
        Notification {
            version: 1,
            // The end of a chain is another one than that of its first task, whose id it has.
            id: match kind {
                SubjectKind::Chain => format!("{id}.chain_end"),
                SubjectKind::Task | SubjectKind::Group => format!("{id}.end"),
            },
            event: format!("{}.{}", kind.name(), Topic::End.event()),
            is_test: false,
            link: None,
            delivery_attempt,
            title: bounds.apply(&title, MAX_TITLE_CHARS),
            brief: first_line(&text, MAX_TITLE_CHARS),
            text,
            content: NotificationBody::Ended { subject, tasks },
        }
    }

    pub fn of_need(
        task: &NeedyTask,
        delivery_attempt: u32,
        settings: &NotifySettings,
        now_ms: i64,
    ) -> Notification {
        let bounds = TextBounds::new(settings);
        let described = task.describe(&bounds, now_ms);
        let (kind, topic) = (SubjectKind::Task.name(), task.topic());
        Notification {
            version: 1,
            id: format!("{}.{}", task.id, topic.suffix()),
            event: format!("{kind}.{}", topic.event()),
            is_test: false,
            link: None,
            delivery_attempt,
            title: described.title,
            text: described.text,
            brief: described.brief,
            content: NotificationBody::Live(described.body),
        }
    }

    /// One notification in place of at most [`MAX_MERGED`].
    pub fn merged(mut notifications: Vec<Notification>) -> Notification {
        if let [only] = notifications.as_mut_slice() {
            return only.clone();
        }
        let needing: BTreeSet<&str> = notifications.iter().filter_map(Notification::needing).collect();
        let ended = notifications.iter().filter(|found| found.needing().is_none()).count();
        let need = match needing.len() {
            0 => None,
            1 => Some("1 task needs you".to_owned()),
            count => Some(format!("{count} tasks need you")),
        };
        let ended = (ended > 0).then(|| format!("{ended} ended"));
        let block = |found: &Notification| format!("{}\n{}", found.title, found.brief);
        let blocks: Vec<String> = notifications.iter().map(block).collect();
        Notification {
            version: 1,
            id: notifications.first().map(|first| format!("{}.several", first.id)).unwrap_or_default(),
            event: "several".to_owned(),
            is_test: false,
            link: None,
            delivery_attempt: notifications.iter().map(|found| found.delivery_attempt).max().unwrap_or(1),
            title: need.into_iter().chain(ended).collect::<Vec<_>>().join(", "),
            text: shorten(&blocks.join("\n\n"), MAX_TEXT_CHARS),
            brief: String::new(),
            content: NotificationBody::Several { notifications },
        }
    }

    /// Adds the page about it, of the dashboard at this address.
    #[must_use]
    pub fn with_link(self, dashboard: &str) -> Notification {
        // One that was merged with no other has it.
        if self.link.is_some() {
            return self;
        }
        let page = match &self.content {
            NotificationBody::Several { .. } => "/".to_owned(),
            NotificationBody::Ended { subject, .. } if subject.kind == SubjectKind::Group.name() => {
                format!("/ui/groups/{}", subject.id)
            }
            _ => format!("/ui/tasks/{}", self.subject().1),
        };
        let link = format!("{dashboard}{page}");
        Notification { text: format!("{}\n{link}", self.text), link: Some(link), ..self }
    }

    /// The task that needs a person.
    fn needing(&self) -> Option<&str> {
        if let NotificationBody::Live(body) = &self.content { Some(body.task_id()) } else { None }
    }

    pub(crate) fn urgency(&self) -> Urgency {
        match &self.content {
            NotificationBody::Ended { subject, .. } => match subject.end {
                EndKind::Failed | EndKind::Timeout | EndKind::VerifyFailed => Urgency::Failed,
                EndKind::Completed | EndKind::Cancelled => Urgency::Normal,
            },
            NotificationBody::Live(_) => Urgency::NeedsPerson,
            NotificationBody::Several { notifications } => {
                notifications.iter().map(Notification::urgency).max().unwrap_or(Urgency::Normal)
            }
        }
    }

    /// The kind, the id and the state of the subject; of several, all ids.
    pub(crate) fn subject(&self) -> (&'static str, String, &'static str) {
        match &self.content {
            NotificationBody::Ended { subject, .. } => {
                (subject.kind, subject.id.clone(), subject.end.state().public_name())
            }
            NotificationBody::Live(body) => {
                (SubjectKind::Task.name(), body.task_id().to_owned(), State::Working.public_name())
            }
            NotificationBody::Several { notifications } => {
                let ids: BTreeSet<String> =
                    notifications.iter().map(|notification| notification.subject().1).collect();
                let ids = ids.into_iter().collect::<Vec<_>>().join(" ");
                (SubjectKind::Task.name(), ids, State::Working.public_name())
            }
        }
    }

    pub(crate) fn to_json(&self) -> Result<Vec<u8>, SendError> {
        serde_json::to_vec(self)
            .map_err(|error| SendError::new(format!("the notification could not be written: {error}")))
    }

    #[must_use]
    pub fn into_test(self) -> Notification {
        Notification { id: format!("{}.test", self.subject().1), is_test: true, ..self }
    }
}

fn bounded_task(task: &NotifiedTask, bounds: &TextBounds, max_chars: usize) -> NotifiedTask {
    let title = |text: &String| bounds.apply(text, MAX_TITLE_CHARS);
    NotifiedTask {
        title: title(&task.title),
        summary: task.summary.as_deref().map(|summary| bounds.apply(summary, max_chars)),
        failure: task.failure.as_ref().map(|failure| Failure {
            kind: failure.kind.clone(),
            message: bounds.apply(&failure.message, max_chars),
        }),
        working_dir: bounds.apply(&task.working_dir, MAX_TEXT_CHARS),
        agent: title(&task.agent),
        labels: bounds.labels(&task.labels),
        ..task.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use delegator_domain::notification::Subject;
    use delegator_domain::task::{GroupId, TaskId, TaskLocation};
    use serde_json::json;

    use super::*;
    use crate::live::tests::asking_task;

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
        let states: Vec<_> = json["tasks"].as_array().unwrap().iter().map(|task| &task["end"]).collect();
        assert_eq!(states, ["failed", "completed"]);
    }

    #[test]
    fn the_ends_of_a_chain_and_of_its_first_task_have_different_ids() {
        let task = ended_task();
        let chain = NotifiedWork { subject: Subject::Chain(task.tasks[0].id.clone()), ..task.clone() };
        let id = |work| Notification::new(work, 1, &settings(None)).id;
        assert_ne!(id(&task), id(&chain));
    }

    #[test]
    fn several_are_one_with_a_block_for_each() {
        let task = asking_task();
        let other = NeedyTask { id: TaskId::from_random(TaskLocation::Local, [8; 16]), ..task.clone() };
        let of_need = |task| Notification::of_need(task, 1, &settings(None), 0);
        let (first, second) = (of_need(&task), of_need(&other));
        let end = Notification::new(&ended_task(), 2, &settings(None));
        let merged = Notification::merged(vec![first.clone(), second.clone()]);
        assert_eq!((merged.event.as_str(), merged.title.as_str()), ("several", "2 tasks need you"));
        let block = |id| {
            format!(
                "Permission: Run a command?\n1. Allow  2. Reject\nmcp-delegator answer {id} --option 'allow it' \
                 --question 2\n(fix the test, site)"
            )
        };
        assert_eq!(merged.text, format!("{}\n\n{}", block(&task.id), block(&other.id)));
        assert_eq!(
            serde_json::to_value(&merged).unwrap()["notifications"],
            serde_json::to_value([&first, &second]).unwrap()
        );
        let mixed = Notification::merged(vec![first.clone(), first.clone(), end]);
        assert_eq!((mixed.title.as_str(), mixed.delivery_attempt), ("1 task needs you, 1 ended", 2));
        assert_eq!(Notification::merged(vec![first.clone()]), first);
        let many = Notification::merged(vec![first; MAX_MERGED]);
        assert_eq!(many.text.matches("mcp-delegator answer").count(), MAX_MERGED);
        assert!(!many.text.ends_with('…'));
    }
}
