//! Notifications about a running task that needs a person: its agent asks, it is about to use up a budget, or
//! it is silent. Their text is fixed: what is wrong, the command that helps, and which task it is.

use std::collections::BTreeMap;
use std::path::Path;

use delegator_domain::attention::Section;
use delegator_domain::notification::{SubjectKind, Topic};
use delegator_domain::question::{Question, QuestionKind};
use delegator_domain::task::{State, TaskId};
use delegator_domain::text::{first_line, shell_word, shorten};
use serde::Serialize;

use crate::text::format_duration;
use crate::text_bounds::{MAX_TEXT_CHARS, MAX_TITLE_CHARS, TextBounds};

const MAX_OPTIONS: usize = 20;
const MAX_DETAIL_CHARS: usize = 1_000;
const MAX_LABEL_CHARS: usize = 80;
/// The options of a question, where it is one of several.
const MAX_BRIEF_CHARS: usize = 120;

/// A running task that needs a person, as it is stored.
#[derive(Debug, Clone)]
pub struct NeedyTask {
    pub id: TaskId,
    pub attempt: Option<u8>,
    pub title: String,
    pub working_dir: String,
    /// The top of its work tree.
    pub repository: String,
    pub agent: String,
    pub labels: BTreeMap<String, String>,
    pub need: LiveNeed,
}

#[derive(Debug, Clone)]
pub enum LiveNeed {
    Answer {
        question: Question,
        deadline_at_ms: i64,
    },
    /// The first line says what is wrong, the others what follows.
    Attention {
        topic: Topic,
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct LiveSubject {
    kind: &'static str,
    id: String,
    state: &'static str,
    title: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct LiveTask {
    task_id: TaskId,
    attempt: Option<u8>,
    state: &'static str,
    title: String,
    working_dir: String,
    repository: NotifiedRepository,
    agent: String,
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct NotifiedRepository {
    /// The name of the folder.
    name: String,
    path: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct QuestionBody {
    number: u32,
    kind: &'static str,
    title: String,
    detail: Option<String>,
    options: Vec<OptionBody>,
    is_text_accepted: bool,
    /// Milliseconds since 1970.
    deadline_at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OptionBody {
    id: String,
    label: String,
}

/// The fields of a notification about a running task that others do not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LiveBody {
    section: &'static str,
    subject: LiveSubject,
    tasks: Vec<LiveTask>,
    question: Option<QuestionBody>,
    command: String,
}

impl LiveBody {
    pub(crate) fn task_id(&self) -> &str {
        &self.subject.id
    }
}

pub(crate) struct LiveDescription {
    pub(crate) title: String,
    pub(crate) text: String,
    /// What is said where this is one of several.
    pub(crate) brief: String,
    pub(crate) body: LiveBody,
}

impl NeedyTask {
    pub(crate) fn topic(&self) -> Topic {
        match &self.need {
            LiveNeed::Answer { question, .. } => Topic::Question(question.number),
            LiveNeed::Attention { topic, .. } => *topic,
        }
    }

    pub(crate) fn describe(&self, bounds: &TextBounds, now_ms: i64) -> LiveDescription {
        let title = |text: &str| bounds.apply(text, MAX_TITLE_CHARS);
        let path = bounds.apply(&self.repository, MAX_TEXT_CHARS);
        let repository = NotifiedRepository { name: folder_name(&path), path };
        let state = State::Working.public_name();
        let live = LiveTask {
            task_id: self.id.clone(),
            attempt: self.attempt,
            state,
            title: title(&self.title),
            working_dir: bounds.apply(&self.working_dir, MAX_TEXT_CHARS),
            repository,
            agent: title(&self.agent),
            labels: bounds.labels(&self.labels),
        };
        let command = bounds.apply(&self.command(), MAX_TEXT_CHARS);
        let (question, lines) = match &self.need {
            LiveNeed::Answer { question, deadline_at_ms } => {
                let body = question_body(question, *deadline_at_ms, bounds);
                let lines = question_lines(&body, &command, now_ms);
                (Some(body), lines)
            }
            LiveNeed::Attention { topic, detail } => {
                (None, attention_lines(*topic, detail, &command, &self.id))
            }
        };
        let LiveTask { title: task, repository, agent, .. } = &live;
        let NotifiedRepository { name, path } = repository;
        let Lines { headline, text, brief } = lines;
        let text = format!("{text}\nTask: {task}\nRepository: {name} ({path})\nAgent: {agent}");
        LiveDescription {
            title: title(&headline),
            text: bounds.apply(&text, MAX_TEXT_CHARS),
            brief: bounds.apply(&format!("{brief}\n({task}, {name})"), MAX_TEXT_CHARS),
            body: LiveBody {
                section: Section::NeedsYou.name(),
                subject: LiveSubject {
                    kind: SubjectKind::Task.name(),
                    id: self.id.to_string(),
                    state,
                    title: task.clone(),
                },
                tasks: vec![live],
                question,
                command,
            },
        }
    }

    /// The command that answers, or shows what is wrong. A person types another option if the first one is
    /// wrong.
    fn command(&self) -> String {
        let id = &self.id;
        match &self.need {
            LiveNeed::Answer { question, .. } => {
                let answer = match question.options.first() {
                    Some(option) => format!("--option {}", shell_word(&option.id)),
                    None => "--text TEXT".to_owned(),
                };
                format!("mcp-delegator answer {id} {answer} --question {}", question.number)
            }
            LiveNeed::Attention { topic: Topic::Stuck, .. } => format!("mcp-delegator logs {id}"),
            LiveNeed::Attention { .. } => format!("mcp-delegator show {id}"),
        }
    }
}

/// The text of a notification before what it says of the task.
struct Lines {
    headline: String,
    text: String,
    brief: String,
}

fn question_body(question: &Question, deadline_at_ms: i64, bounds: &TextBounds) -> QuestionBody {
    let options = question.options.iter().take(MAX_OPTIONS).map(|option| OptionBody {
        id: bounds.apply(&option.id, MAX_TITLE_CHARS),
        label: bounds.apply(&option.label, MAX_LABEL_CHARS),
    });
    QuestionBody {
        number: question.number.0,
        kind: question.kind.name(),
        title: bounds.apply(&question.title, MAX_TITLE_CHARS),
        detail: question.detail.as_deref().map(|detail| bounds.apply(detail, MAX_DETAIL_CHARS)),
        options: options.collect(),
        is_text_accepted: question.free_text,
        deadline_at_ms,
    }
}

fn question_lines(question: &QuestionBody, command: &str, now_ms: i64) -> Lines {
    let kind = if question.kind == QuestionKind::Permission.name() { "Permission" } else { "Question" };
    let options: Vec<String> = (1..)
        .zip(&question.options)
        .map(|(number, option): (u32, _)| format!("{number}. {}", option.label))
        .collect();
    let left_ms = u64::try_from(question.deadline_at_ms.saturating_sub(now_ms)).unwrap_or(0);
    let other = match (question.is_text_accepted, options.is_empty()) {
        (true, false) => Some("or a text: --text TEXT instead of --option".to_owned()),
        _ => None,
    };
    let answer = format!("Answer within {}, for example:\n{command}", format_duration(left_ms));
    let lines = question.detail.iter().cloned().chain(options.iter().cloned()).chain(other).chain([answer]);
    Lines {
        headline: format!("{kind}: {}", question.title),
        text: lines.collect::<Vec<_>>().join("\n"),
        brief: shorten(&options.join("  "), MAX_BRIEF_CHARS) + "\n" + command,
    }
}

fn attention_lines(topic: Topic, detail: &str, command: &str, id: &TaskId) -> Lines {
    let (first, rest) = detail.split_once('\n').unwrap_or((detail, ""));
    let kind = if topic == Topic::Budget { "Budget" } else { "Stuck" };
    Lines {
        headline: format!("{kind}: {first}"),
        text: format!("{rest}\n{command}\nmcp-delegator cancel {id}"),
        brief: command.to_owned(),
    }
}

fn folder_name(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    first_line(&name, MAX_TITLE_CHARS)
}

#[cfg(test)]
pub(crate) mod tests {
    use delegator_domain::question::{AnswerOption, OptionKind, QuestionNumber};
    use delegator_domain::task::TaskLocation;

    use super::*;

    pub(crate) fn asking_task() -> NeedyTask {
        let option = |id: &str, label: &str| AnswerOption {
            id: id.to_owned(),
            label: label.to_owned(),
            kind: OptionKind::Other,
        };
        NeedyTask {
            id: TaskId::from_random(TaskLocation::Local, [7; 16]),
            attempt: None,
            title: "fix the test".to_owned(),
            working_dir: "/home/me/site/src".to_owned(),
            repository: "/home/me/site".to_owned(),
            agent: "claude".to_owned(),
            labels: BTreeMap::new(),
            need: LiveNeed::Answer {
                question: Question {
                    number: QuestionNumber(2),
                    kind: QuestionKind::Permission,
                    title: "Run a command?".to_owned(),
                    detail: Some("make all".to_owned()),
                    options: vec![option("allow it", "Allow"), option("deny", "Reject")],
                    free_text: false,
                },
                deadline_at_ms: 1_700_000_125_000,
            },
        }
    }
}
