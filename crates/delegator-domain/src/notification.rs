//! Notifications about the end of a task, a group or a chain: their channels, when they are sent, and the
//! template of their text.
//!
//! A template is text with placeholders in braces; `{{` and `}}` are braces. Its first line is the title of a
//! notification, the rest is its text. Only the placeholders in [`Placeholder`] exist, so a misspelled one is
//! found when the configuration is read.

use crate::named_enum::named_enum;
use crate::task::{EndKind, GroupId, TaskId};

named_enum! {
    pub enum Channel {
        Command = "command",
        Webhook = "webhook",
        Desktop = "desktop",
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

/// When notifications are sent, and through which channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyPlan {
    /// The ends of a task, a group or a chain.
    pub on: Vec<EndKind>,
    pub channels: Vec<Channel>,
    /// Whether the tasks of a group or a chain also send one each.
    pub each_task: bool,
}

const SEPARATOR: char = '/';
const EACH_TASK: &str = "each_task";

impl NotifyPlan {
    /// An end as `completed` is one whatever the check says; `verify_failed` alone means only those that failed
    /// it.
    pub fn includes(&self, end: EndKind) -> bool {
        self.on.contains(&end) || end == EndKind::VerifyFailed && self.on.contains(&EndKind::Completed)
    }

    /// The stored form: `completed,failed/webhook,desktop`, and `/each_task` if each task sends one.
    pub fn to_text(&self) -> String {
        let on: Vec<&str> = self.on.iter().map(|end| end.name()).collect();
        let channels: Vec<&str> = self.channels.iter().map(|channel| channel.name()).collect();
        let each_task = if self.each_task { format!("{SEPARATOR}{EACH_TASK}") } else { String::new() };
        format!("{}{SEPARATOR}{}{each_task}", on.join(","), channels.join(","))
    }

    pub fn from_text(text: &str) -> Option<NotifyPlan> {
        let (on, rest) = text.split_once(SEPARATOR)?;
        let (channels, each_task) = match rest.split_once(SEPARATOR) {
            None => (rest, false),
            Some((channels, EACH_TASK)) => (channels, true),
            Some(_) => return None,
        };
        Some(NotifyPlan {
            on: parse_list(on, EndKind::from_name)?,
            channels: parse_list(channels, Channel::from_name)?,
            each_task,
        })
    }
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
    fn a_plan_is_stored_as_text() {
        for (plan, text) in [
            (
                NotifyPlan {
                    on: vec![EndKind::Completed, EndKind::Failed],
                    channels: vec![Channel::Webhook],
                    each_task: false,
                },
                "completed,failed/webhook",
            ),
            (
                NotifyPlan {
                    on: Vec::new(),
                    channels: vec![Channel::Command, Channel::Desktop],
                    each_task: true,
                },
                "/command,desktop/each_task",
            ),
        ] {
            assert_eq!(plan.to_text(), text);
            assert_eq!(NotifyPlan::from_text(text), Some(plan));
        }
        let only_refuted = NotifyPlan::from_text("verify_failed/desktop").unwrap();
        assert!(only_refuted.includes(EndKind::VerifyFailed) && !only_refuted.includes(EndKind::Completed));
        assert!(NotifyPlan::from_text("completed/desktop").unwrap().includes(EndKind::VerifyFailed));
        for wrong in ["", "completed", "done/webhook", "completed/pigeon", "completed/webhook/all"] {
            assert_eq!(NotifyPlan::from_text(wrong), None, "{wrong}");
        }
    }
}
