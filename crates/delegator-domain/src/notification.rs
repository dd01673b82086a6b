//! Notifications about the end of a task, a group or a chain, and about a running task that needs a person:
//! their channels, when they are sent, and the template of their text.
//!
//! A template is text with placeholders in braces; `{{` and `}}` are braces. Its first line is the title of a
//! notification, the rest is its text. Only the placeholders in [`Placeholder`] exist, so a misspelled one is
//! found when the configuration is read.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;
use crate::question::QuestionNumber;
use crate::task::{EndKind, GroupId, TaskId};

named_enum! {
    pub enum Channel {
        Command = "command",
        Webhook = "webhook",
        Desktop = "desktop",
    }
}

named_enum! {
    /// What the body of a webhook request is.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum WebhookFormat {
        #[default]
        Json = "json",
        Slack = "slack",
        Ntfy = "ntfy",
        Telegram = "telegram",
    }
}

named_enum! {
    /// The state of a notification in the outbox, per channel.
    pub enum DeliveryState {
        /// To be sent, or to be sent again.
        Pending = "pending",
        Delivered = "delivered",
        /// Given up.
        Failed = "failed",
        /// Not sent, because it did not apply any more or a person had the task on a screen.
        Dropped = "dropped",
    }
}

named_enum! {
    pub enum SubjectKind {
        Task = "task",
        Group = "group",
        Chain = "chain",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Task(TaskId),
    /// Several attempts, with the tasks that follow them.
    Group(GroupId),
    /// The first task of a chain, with all that follow it.
    Chain(TaskId),
}

impl Subject {
    pub fn kind(&self) -> SubjectKind {
        match self {
            Subject::Task(_) => SubjectKind::Task,
            Subject::Group(_) => SubjectKind::Group,
            Subject::Chain(_) => SubjectKind::Chain,
        }
    }

    /// The id of the task or the group; of a chain, that of its first task.
    pub fn id(&self) -> &str {
        match self {
            Subject::Task(id) | Subject::Chain(id) => id.as_str(),
            Subject::Group(id) => id.as_str(),
        }
    }

    pub fn from_parts(kind: SubjectKind, id: &str) -> Option<Subject> {
        Some(match kind {
            SubjectKind::Task => Subject::Task(id.parse().ok()?),
            SubjectKind::Group => Subject::Group(id.parse().ok()?),
            SubjectKind::Chain => Subject::Chain(id.parse().ok()?),
        })
    }
}

/// What a notification says about its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    End,
    /// The agent of a task waits for an answer.
    Question(QuestionNumber),
    /// A budget of a task is used to 80 %.
    Budget,
    /// There was no activity for half of the idle limit of a task.
    Stuck,
}

const QUESTION: &str = "question_";

impl Topic {
    /// The second part of the event: `task.question`.
    pub fn event(self) -> &'static str {
        match self {
            Topic::End => "ended",
            Topic::Question(_) => "question",
            Topic::Budget => "budget",
            Topic::Stuck => "stuck",
        }
    }

    /// Identifies a notification among those about one subject.
    pub fn suffix(self) -> String {
        match self {
            Topic::End => "end".to_owned(),
            Topic::Question(number) => format!("{QUESTION}{number}"),
            Topic::Budget | Topic::Stuck => self.event().to_owned(),
        }
    }

    pub fn from_suffix(text: &str) -> Option<Topic> {
        let parsed = match text.strip_prefix(QUESTION) {
            Some(number) => Topic::Question(QuestionNumber(number.parse().ok()?)),
            None => {
                [Topic::End, Topic::Budget, Topic::Stuck].into_iter().find(|topic| topic.suffix() == text)?
            }
        };
        Some(parsed)
    }
}

named_enum! {
    /// What a user can ask to be notified of.
    pub enum NotifyEvent {
        Question = "question",
        Budget = "budget",
        Stuck = "stuck",
        Completed = "completed",
        VerifyFailed = "verify_failed",
        Failed = "failed",
        /// A task failed because of a usage limit, which is also `failed`.
        UsageLimit = "usage_limit",
        Cancelled = "cancelled",
        Timeout = "timeout",
    }
}

impl From<EndKind> for NotifyEvent {
    fn from(end: EndKind) -> NotifyEvent {
        match end {
            EndKind::Completed => NotifyEvent::Completed,
            EndKind::VerifyFailed => NotifyEvent::VerifyFailed,
            EndKind::Cancelled => NotifyEvent::Cancelled,
            EndKind::Timeout => NotifyEvent::Timeout,
            EndKind::Failed => NotifyEvent::Failed,
        }
    }
}

/// When notifications are sent, and through which channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyPlan {
    pub on: Vec<NotifyEvent>,
    pub channels: Vec<Channel>,
    /// Whether the tasks of a group or a chain also send one each.
    pub each_task: bool,
}

const SEPARATOR: char = '/';
const EACH_TASK: &str = "each_task";

impl NotifyPlan {
    /// An end as `completed` is one whatever the check says; `verify_failed` alone means only those that failed
    /// it, and `usage_limit` alone only failures of this kind.
    pub fn includes_end(&self, end: EndKind, is_usage_limit: bool) -> bool {
        let implied = match end {
            EndKind::VerifyFailed => Some(NotifyEvent::Completed),
            EndKind::Failed if is_usage_limit => Some(NotifyEvent::UsageLimit),
            _ => None,
        };
        self.on.contains(&end.into()) || implied.is_some_and(|event| self.on.contains(&event))
    }

    /// Whether a notification about a running task is wanted.
    pub fn includes(&self, topic: Topic) -> bool {
        match topic {
            Topic::End => false,
            Topic::Question(_) => self.on.contains(&NotifyEvent::Question),
            Topic::Budget => self.on.contains(&NotifyEvent::Budget),
            Topic::Stuck => self.on.contains(&NotifyEvent::Stuck),
        }
    }

    /// The stored form: `completed,failed/webhook,desktop`, and `/each_task` if each task sends one. It has only
    /// the events that the first programs know, because they cannot read others.
    pub fn to_text(&self) -> String {
        let channels: Vec<&str> = self.channels.iter().map(|channel| channel.name()).collect();
        let each_task = if self.each_task { format!("{SEPARATOR}{EACH_TASK}") } else { String::new() };
        format!("{}{SEPARATOR}{}{each_task}", self.event_names(is_first), channels.join(","))
    }

    /// The stored form of the other events: `question,budget`.
    pub fn later_events(&self) -> String {
        self.event_names(|event| !is_first(event))
    }

    fn event_names(&self, is_included: impl Fn(NotifyEvent) -> bool) -> String {
        let included = self.on.iter().filter(|event| is_included(**event));
        included.map(|event| event.name()).collect::<Vec<_>>().join(",")
    }

    /// Later events that only a newer program knows are ignored.
    pub fn from_text(text: &str, later_events: &str) -> Option<NotifyPlan> {
        let (on, rest) = text.split_once(SEPARATOR)?;
        let (channels, each_task) = match rest.split_once(SEPARATOR) {
            None => (rest, false),
            Some((channels, EACH_TASK)) => (channels, true),
            Some(_) => return None,
        };
        let mut on = parse_list(on, |name| NotifyEvent::from_name(name).filter(|event| is_first(*event)))?;
        on.extend(later_events.split(',').filter_map(NotifyEvent::from_name));
        Some(NotifyPlan { on, channels: parse_list(channels, Channel::from_name)?, each_task })
    }
}

/// Whether every program knows this event.
fn is_first(event: NotifyEvent) -> bool {
    EndKind::from_name(event.name()).is_some()
}

fn parse_list<T>(list: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    list.split(',').filter(|name| !name.is_empty()).map(parse).collect()
}

named_enum! {
    /// What a template can insert.
    pub enum Placeholder {
        Subject = "subject",
        SubjectId = "subject_id",
        State = "state",
        Counts = "counts",
        Title = "title",
        Summary = "summary",
        WorkingDir = "working_dir",
        Agent = "agent",
        Duration = "duration",
    }
}

pub const DEFAULT_TEMPLATE: &str =
    "{state}: {title}\n{summary}\n{subject} {subject_id}, {duration}, {working_dir}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Inserted(Placeholder),
}

impl Template {
    pub fn parse(text: &str) -> Result<Template, String> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let name = after.split_once('}').filter(|_| brace == "{");
            let Some((name, after)) = name else {
                return Err(format!("`{brace}` is not part of a placeholder; write it twice"));
            };
            let placeholder = Placeholder::from_name(name).ok_or_else(|| unknown_placeholder(name))?;
            parts.push(Part::Literal(std::mem::take(&mut literal)));
            parts.push(Part::Inserted(placeholder));
            rest = after;
        }
        literal.push_str(rest);
        parts.push(Part::Literal(literal));
        Ok(Template { parts })
    }

    /// The title and the text. An inserted line break ends no title: there it is a space.
    pub fn render(&self, value: impl Fn(Placeholder) -> String) -> (String, String) {
        let (mut title, mut text, mut in_title) = (String::new(), String::new(), true);
        for part in &self.parts {
            match part {
                Part::Literal(literal) if in_title => match literal.split_once('\n') {
                    Some((before, after)) => {
                        title.push_str(before);
                        text.push_str(after);
                        in_title = false;
                    }
                    None => title.push_str(literal),
                },
                Part::Literal(literal) => text.push_str(literal),
                Part::Inserted(placeholder) if in_title => {
                    title.push_str(&value(*placeholder).replace(['\n', '\r'], " "));
                }
                Part::Inserted(placeholder) => text.push_str(&value(*placeholder)),
            }
        }
        (title.trim().to_owned(), text.trim().to_owned())
    }
}

fn unknown_placeholder(name: &str) -> String {
    let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
    format!("there is no placeholder `{{{shown}}}`; there are {}", placeholder_list())
}

pub fn placeholder_list() -> String {
    let names: Vec<String> = Placeholder::NAMES.iter().map(|name| format!("{{{name}}}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str) -> (String, String) {
        Template::parse(template).unwrap().render(|placeholder| match placeholder {
            Placeholder::Summary => "two\nlines {state}".to_owned(),
            other => other.name().to_uppercase(),
        })
    }

    #[test]
    fn the_first_line_is_the_title_and_values_are_not_templates() {
        let expected =
            ("STATE: TITLE two lines {state}".to_owned(), "two\nlines {state}\nSUBJECT_ID".to_owned());
        assert_eq!(rendered("{state}: {title} {summary}\n{summary}\n{subject_id}\n"), expected);
        assert_eq!(rendered("done"), ("done".to_owned(), String::new()));
        assert_eq!(rendered("{{{state}}} }}\n"), ("{STATE} }".to_owned(), String::new()));
    }

    #[test]
    fn a_wrong_template_is_described() {
        for (template, expected) in [
            ("{stat}", "no placeholder `{stat}`; there are {subject}, {subject_id}, {state}"),
            ("{}", "no placeholder `{}`"),
            ("{state", "`{` is not part"),
            ("a } b", "`}` is not part"),
            ("{a\u{1b}[1m}", "no placeholder `{a\\u{1b}[1m}`"),
        ] {
            let error = Template::parse(template).unwrap_err();
            assert!(error.contains(expected), "{template}: {error}");
        }
        assert!(Template::parse(DEFAULT_TEMPLATE).is_ok());
    }

    #[test]
    fn a_plan_is_stored_as_text_that_older_programs_read() {
        use NotifyEvent::{Budget, Completed, Failed, Question, UsageLimit};
        for (on, channels, each_task, text, later) in [
            (vec![Completed, Failed], vec![Channel::Webhook], false, "completed,failed/webhook", ""),
            (Vec::new(), vec![Channel::Command, Channel::Desktop], true, "/command,desktop/each_task", ""),
            (
                vec![Failed, Question, Budget, UsageLimit],
                vec![Channel::Webhook],
                false,
                "failed/webhook",
                "question,budget,usage_limit",
            ),
        ] {
            let plan = NotifyPlan { on, channels, each_task };
            assert_eq!((plan.to_text().as_str(), plan.later_events().as_str()), (text, later));
            assert_eq!(NotifyPlan::from_text(text, later), Some(plan));
        }
        for wrong in
            ["", "completed", "done/webhook", "question/webhook", "completed/pigeon", "completed/webhook/all"]
        {
            assert_eq!(NotifyPlan::from_text(wrong, ""), None, "{wrong}");
        }
        assert_eq!(NotifyPlan::from_text("/webhook", "question,moon").unwrap().on, [Question]);
    }

    #[test]
    fn verify_failed_and_usage_limit_alone_mean_only_these() {
        let plan = |on, later| NotifyPlan::from_text(&format!("{on}/desktop"), later).unwrap();
        let includes = |plan: NotifyPlan, end| [plan.includes_end(end, false), plan.includes_end(end, true)];
        assert_eq!(includes(plan("verify_failed", ""), EndKind::VerifyFailed), [true, true]);
        assert_eq!(includes(plan("verify_failed", ""), EndKind::Completed), [false, false]);
        assert_eq!(includes(plan("completed", ""), EndKind::VerifyFailed), [true, true]);
        assert_eq!(includes(plan("", "usage_limit"), EndKind::Failed), [false, true]);
        assert_eq!(includes(plan("failed", ""), EndKind::Failed), [true, true]);
        assert_eq!(includes(plan("", "usage_limit"), EndKind::Timeout), [false, false]);
    }

    #[test]
    fn a_topic_is_read_back_from_its_suffix() {
        for (topic, suffix) in [
            (Topic::End, "end"),
            (Topic::Question(QuestionNumber(12)), "question_12"),
            (Topic::Budget, "budget"),
            (Topic::Stuck, "stuck"),
        ] {
            assert_eq!((topic.suffix().as_str(), Topic::from_suffix(suffix)), (suffix, Some(topic)));
        }
        assert_eq!((Topic::from_suffix("question_x"), Topic::from_suffix("moon")), (None, None));
    }
}
