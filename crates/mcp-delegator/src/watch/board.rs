//! All tasks as the screen lists them: the lines and sections of `status`, made from the live view, and what
//! is shown about a task beside its line. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use delegator_domain::attention::Section;
use delegator_domain::notification::Subject;
use delegator_engine::{LiveOverall, LiveRow, LiveState, LiveTask};
use delegator_registry::StoredQuestion;
use delegator_transcript::{PlanStep, Usage};

use crate::output::data::task_line::{Clock, Entry, TaskLine, TaskSections};

/// What is known about a task beside its line; only running tasks have it.
#[derive(Debug, Clone, Default)]
pub struct Peek {
    pub questions: Vec<StoredQuestion>,
    pub plan: Vec<PlanStep>,
    pub last_message: Option<String>,
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone, Default)]
pub struct Board {
    pub made_at_ms: i64,
    pub sections: TaskSections,
    /// By the id of the task.
    pub peeks: BTreeMap<String, Peek>,
    pub overall: Arc<LiveOverall>,
}

/// What can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Task(String),
    /// A group, or a chain, whose id is that of its first task.
    Submission(String),
}

impl Key {
    pub fn id(&self) -> &str {
        let (Key::Task(id) | Key::Submission(id)) = self;
        id
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    Heading(Section, usize),
    Submission { id: &'a str, state: &'a str, tasks: &'a [TaskLine] },
    Task { line: &'a TaskLine, is_member: bool },
}

impl<'a> Row<'a> {
    pub fn line(&self) -> Option<&'a TaskLine> {
        if let Row::Task { line, .. } = self { Some(line) } else { None }
    }

    /// `None` if it cannot be selected.
    pub fn key(&self) -> Option<Key> {
        match self {
            Row::Heading(..) => None,
            Row::Submission { id, .. } => Some(Key::Submission((*id).to_owned())),
            Row::Task { line, .. } => Some(Key::Task(line.id.clone())),
        }
    }
}

impl Board {
    pub fn of(state: &LiveState, clock: Clock<'_>) -> Board {
        let overall = Arc::clone(&state.overall);
        let tasks = state.in_order();
        let mut lines: Vec<(i64, TaskLine)> = tasks
            .iter()
            .map(|task| (task.seq(), TaskLine::live(task, overall.is_queue_paused, clock)))
            .collect();
        let peeks = tasks.iter().filter_map(|task| Some((task.id().to_string(), Peek::of(task)?))).collect();
        let all = lines.iter().map(|(_, line)| line.clone()).collect();
        lines.sort_by_key(|(seq, _)| *seq);
        let mut submissions: BTreeMap<Subject, Vec<TaskLine>> = BTreeMap::new();
        for (_, line) in lines {
            if let Some(subject) = &line.submission {
                submissions.entry(subject.clone()).or_default().push(line);
            }
        }
        let submissions: Vec<(Subject, Vec<TaskLine>)> = submissions.into_iter().collect();
        let sections = TaskSections::of(all, &submissions, overall.unread_total);
        Board { made_at_ms: clock.now_ms, sections, peeks, overall }
    }

    /// The rows with all of these words, and those of what is selected: it does not change because its words do.
    pub fn rows(&self, filter: &str, selected: Option<&Key>) -> Vec<Row<'_>> {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let mut rows = Vec::new();
        for (section, entries) in &self.sections.entries {
            let is_shown =
                |entry: &&Entry| has_all(entry, &words) || selected.is_some_and(|key| has_key(entry, key));
            let shown: Vec<&Entry> = entries.iter().filter(is_shown).collect();
            rows.extend((!shown.is_empty()).then_some(Row::Heading(*section, shown.len())));
            for entry in shown {
                match entry {
                    Entry::Task(line) => rows.push(Row::Task { line, is_member: false }),
                    Entry::Submission { id, state, tasks } => {
                        rows.push(Row::Submission { id, state, tasks });
                        rows.extend(tasks.iter().map(|line| Row::Task { line, is_member: true }));
                    }
                }
            }
        }
        rows
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sections.entries.iter().flat_map(|(_, entries)| entries)
    }

    pub fn line(&self, id: &str) -> Option<&TaskLine> {
        self.entries().flat_map(lines_of).find(|line| line.id == id)
    }

    pub fn members(&self, id: &str) -> Option<&[TaskLine]> {
        let is_found = |entry: &&Entry| matches!(entry, Entry::Submission { id: own, .. } if own == id);
        self.entries().find(is_found).map(lines_of)
    }

    pub fn count(&self, section: Section) -> usize {
        let entries = self.sections.entries.iter().find(|(own, _)| *own == section);
        entries.map_or(0, |(_, entries)| entries.len())
    }

    pub fn question(&self, id: &str) -> Option<&StoredQuestion> {
        self.peeks.get(id)?.questions.first()
    }
}

fn lines_of(entry: &Entry) -> &[TaskLine] {
    match entry {
        Entry::Task(line) => std::slice::from_ref(line),
        Entry::Submission { tasks, .. } => tasks,
    }
}

fn has_key(entry: &Entry, key: &Key) -> bool {
    match (entry, key) {
        (Entry::Submission { id, .. }, Key::Submission(selected)) => id == selected,
        (_, Key::Task(selected)) => lines_of(entry).iter().any(|line| line.id == *selected),
        (Entry::Task(_), Key::Submission(_)) => false,
    }
}

fn has_all(entry: &Entry, words: &[String]) -> bool {
    let submission = if let Entry::Submission { id, .. } = entry { id } else { "" };
    let is_found = |line: &TaskLine| {
        let TaskLine { id, agent, state, title, working_dir, labels, .. } = line;
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text =
            [submission, id, agent, state, title, working_dir, &labels.join(" ")].join(" ").to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    };
    words.is_empty() || lines_of(entry).iter().any(is_found)
}

impl Peek {
    fn of(task: &LiveTask) -> Option<Peek> {
        let LiveRow::Running(running) = &task.row else { return None };
        let snapshot = running.snapshot.as_ref();
        Some(Peek {
            questions: task.questions.clone(),
            plan: snapshot.map(|snapshot| snapshot.plan.clone()).unwrap_or_default(),
            last_message: snapshot.and_then(|snapshot| snapshot.last_message.clone()),
            usage: snapshot.and_then(|snapshot| snapshot.usage.as_ref()).map(|usage| usage.own),
        })
    }
}
