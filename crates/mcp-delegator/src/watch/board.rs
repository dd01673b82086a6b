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
    Whole(String),
}

impl Key {
    pub fn id(&self) -> &str {
        let (Key::Task(id) | Key::Whole(id)) = self;
        id
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    Heading(Section, usize),
    Whole { id: &'a str, state: &'a str, tasks: &'a [TaskLine] },
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
            Row::Whole { id, .. } => Some(Key::Whole((*id).to_owned())),
            Row::Task { line, .. } => Some(Key::Task(line.id.clone())),
        }
    }
}

impl Board {
    pub fn of(state: &LiveState, clock: Clock<'_>) -> Board {
        let overall = Arc::clone(&state.overall);
        let tasks = state.in_order();
        let mut lines: Vec<(i64, TaskLine)> =
            tasks.iter().map(|task| line(task, overall.is_queue_paused, clock)).collect();
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

    /// The rows with all of these words.
    pub fn rows(&self, filter: &str) -> Vec<Row<'_>> {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let mut rows = Vec::new();
        for (section, entries) in &self.sections.entries {
            let shown: Vec<&Entry> = entries.iter().filter(|entry| has_all(entry, &words)).collect();
            rows.extend((!shown.is_empty()).then_some(Row::Heading(*section, shown.len())));
            for entry in shown {
                match entry {
                    Entry::Task(line) => rows.push(Row::Task { line, is_member: false }),
                    Entry::Whole { id, state, tasks } => {
                        rows.push(Row::Whole { id, state, tasks });
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

    pub fn whole(&self, id: &str) -> Option<&[TaskLine]> {
        let is_whole = |entry: &&Entry| matches!(entry, Entry::Whole { id: own, .. } if own == id);
        self.entries().find(is_whole).map(lines_of)
    }

    pub fn count(&self, section: Section) -> usize {
        let entries = self.sections.entries.iter().find(|(own, _)| *own == section);
        entries.map_or(0, |(_, entries)| entries.len())
    }

    pub fn question(&self, id: &str) -> Option<&StoredQuestion> {
        self.peeks.get(id)?.questions.first()
    }
}

fn line(task: &LiveTask, is_queue_paused: bool, clock: Clock<'_>) -> (i64, TaskLine) {
    (task.seq(), TaskLine::live(task, is_queue_paused, clock))
}

fn lines_of(entry: &Entry) -> &[TaskLine] {
    match entry {
        Entry::Task(line) => std::slice::from_ref(line),
        Entry::Whole { tasks, .. } => tasks,
    }
}

fn has_all(entry: &Entry, words: &[String]) -> bool {
    let whole = if let Entry::Whole { id, .. } = entry { id } else { "" };
    let is_found = |line: &TaskLine| {
        let TaskLine { id, agent, state, title, working_dir, labels, .. } = line;
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = [whole, id, agent, state, title, working_dir, &labels.join(" ")].join(" ").to_lowercase();
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
