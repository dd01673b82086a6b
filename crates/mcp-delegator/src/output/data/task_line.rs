//! What a person reads about tasks in one line each: their age, their state in words, what they changed; in
//! the sections of a list, with groups and chains as one line above their tasks.

use std::collections::BTreeMap;

use delegator_domain::attention::{Need, Section, TaskFacts, section_of_all};
use delegator_domain::notification::Subject;
use delegator_domain::question::QuestionKind;
use delegator_domain::task::{EndKind, FailureKind, LimitKind, Member, Obstacle, Verification};
use delegator_domain::terminal::sanitize;
use delegator_domain::text::first_line;
use delegator_engine::{LiveRow, LiveTask, Variables, ended_facts, local_time};
use delegator_registry::{AgentPause, BlockedBy, ChangedLines, EndRecord, StoredQuestion, TaskSummary};

use crate::output::data::stored_task::seconds_since;
use crate::output::prelude::*;

/// Characters of a question, an activity or a reason.
const MAX_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLine {
    pub section: Section,
    pub need: Option<Need>,
    pub id: String,
    /// Since its submission, its start or its end.
    pub age_sec: u64,
    pub agent: String,
    /// In words.
    pub state: String,
    /// The state that has the colour of these words.
    pub color_of: &'static str,
    pub lines: Option<ChangedLines>,
    pub cost_microdollars: Option<u64>,
    pub title: String,
    pub labels: BTreeMap<String, String>,
    pub working_dir: String,
    /// It has ended, and its result was not read.
    pub is_unread: bool,
    pub member: Member,
    /// The group or chain with which it was submitted.
    pub submission: Option<Subject>,
}

/// The time at which a list is made, and the time zone of its reader.
#[derive(Debug, Clone, Copy)]
pub struct Clock<'a> {
    pub now_ms: i64,
    pub variables: &'a Variables,
}

impl Clock<'_> {
    /// `14:05`, with the day unless it is today.
    pub fn time(self, at_ms: i64) -> String {
        let [now, at] = [self.now_ms, at_ms].map(|ms| local_time(ms, self.variables));
        let format = if now.date() == at.date() { "%H:%M" } else { "%b %-d %H:%M" };
        at.strftime(format).to_string()
    }
}

impl TaskLine {
    fn of(task: &TaskSummary, facts: &TaskFacts, age_sec: u64) -> TaskLine {
        TaskLine {
            section: facts.section(),
            need: facts.need(),
            id: task.id.to_string(),
            age_sec,
            agent: task.agent.clone(),
            state: String::new(),
            color_of: "",
            lines: None,
            cost_microdollars: None,
            title: task.title.clone(),
            labels: task.labels.clone(),
            working_dir: task.working_dir.clone(),
            is_unread: facts.state.is_terminal() && !facts.is_read,
            member: Member {
                id: task.id.clone(),
                follows: task.follows.as_ref().map(|follows| follows.task.clone()),
                end: None,
                is_skipped: facts.is_skipped,
            },
            submission: task.submission.clone(),
        }
    }

    pub fn running(
        running: &delegator_engine::RunningTask,
        open: Option<&StoredQuestion>,
        clock: Clock<'_>,
    ) -> TaskLine {
        let (task, snapshot) = (&running.task, running.snapshot.as_ref());
        let facts = running.facts(open.is_some(), clock.now_ms);
        let since_ms = task.started_at_ms.unwrap_or(task.created_at_ms);
        let state = match (facts.need(), open) {
            (Some(Need::Answer), Some(open)) => question(open),
            (Some(Need::Budget), _) => {
                let first = snapshot.and_then(|snapshot| snapshot.warnings.first());
                first.cloned().unwrap_or_default()
            }
            (Some(Need::Silence), _) => format!("no activity for {}", short_age(facts.quiet_ms / 1000)),
            _ => snapshot.map_or_else(|| "starting".to_owned(), activity),
        };
        TaskLine {
            state: first_line(&state, MAX_CHARS),
            color_of: if facts.need().is_some() { "warning" } else { "working" },
            ..TaskLine::of(task, &facts, seconds_since(since_ms, clock.now_ms))
        }
    }

    pub fn queued(
        queued: &delegator_engine::QueuedTask,
        is_queue_paused: bool,
        clock: Clock<'_>,
    ) -> TaskLine {
        let (task, blocker) = (&queued.task, queued.waiting_for.as_ref());
        let state = match (blocker.map(blocked), queued.agent_pause.as_ref()) {
            (Some(blocked), _) => blocked,
            (None, Some(pause)) => paused(pause, clock),
            (None, None) if is_queue_paused && task.environment.is_none() => "the queue is paused".to_owned(),
            (None, None) => match queued.position {
                0 => "waits for a free slot".to_owned(),
                ahead => format!("waits for a free slot, {ahead} ahead"),
            },
        };
        let facts = TaskFacts::of_state(task.state);
        TaskLine { state, ..TaskLine::of(task, &facts, seconds_since(task.created_at_ms, clock.now_ms)) }
    }

    pub fn live(live: &LiveTask, is_queue_paused: bool, clock: Clock<'_>) -> TaskLine {
        match &live.row {
            LiveRow::Running(running) => TaskLine::running(running, live.questions.first(), clock),
            LiveRow::Queued(queued) => TaskLine::queued(queued, is_queue_paused, clock),
            LiveRow::Stored(task) => TaskLine::of_row(task, clock),
        }
    }

    /// A task of which only the row is known; usually it has ended.
    pub fn of_row(task: &Task, clock: Clock<'_>) -> TaskLine {
        let facts = ended_facts(task);
        let line = |ended_ms| TaskLine {
            member: task.into(),
            ..TaskLine::of(&task.into(), &facts, seconds_since(ended_ms, clock.now_ms))
        };
        let Some(ended) = &task.ended else {
            // A task of a group or a chain that is not listed by itself.
            return TaskLine { state: task.state.public_name().to_owned(), ..line(task.created_at_ms) };
        };
        let (state, color_of) = end(ended, facts.is_skipped, clock);
        let line = line(ended.at_ms);
        TaskLine {
            state,
            color_of,
            lines: ended.lines.filter(|lines| lines.added + lines.deleted > 0),
            cost_microdollars: ended.cost_microdollars,
            ..line
        }
    }
}

/// A line of `status --watch` in a pipe.
#[derive(Debug, Serialize)]
struct TaskNews<'a> {
    task_id: &'a str,
    section: &'static str,
    line: &'a str,
    title: &'a str,
}

impl TaskLine {
    /// The state in one line: `T-local-… verified (fix the login test)`, or a JSON object.
    pub fn news(&self, is_for_people: bool) -> String {
        let TaskLine { id, state, title, .. } = self;
        if is_for_people {
            return format!("{}\n", sanitize(&format!("{id} {state} ({title})")));
        }
        let news = TaskNews { task_id: id, section: self.section.name(), line: state, title };
        format!("{}\n", json!(news))
    }
}

/// `needs you: allow 'npm i'?`
fn question(open: &StoredQuestion) -> String {
    let question = &open.question;
    let action = question.detail.as_deref().map(|detail| first_line(detail, MAX_CHARS));
    match action.filter(|action| question.kind == QuestionKind::Permission && !action.is_empty()) {
        Some(action) => format!("needs you: allow '{action}'?"),
        None => format!("needs you: {}", question.title),
    }
}

/// The activity, with the steps of the plan if there is one.
pub fn activity(snapshot: &delegator_engine::Snapshot) -> String {
    let activity = snapshot.current_activity.as_deref().unwrap_or("working");
    match snapshot.steps {
        Some(steps) => format!("{activity} ({} of {} steps)", steps.completed, steps.total),
        None => activity.to_owned(),
    }
}

fn blocked(blocker: &BlockedBy) -> String {
    let BlockedBy { task, obstacle } = blocker;
    match obstacle {
        Obstacle::WorkTree => format!("waits for {task} in this directory"),
        Obstacle::Thread => format!("waits for {task} in this thread"),
        Obstacle::Predecessor => format!("follows {task}"),
    }
}

fn paused(pause: &AgentPause, clock: Clock<'_>) -> String {
    match (pause.until_ms, &pause.task) {
        // Only the end of a task with a usage limit pauses until a time.
        (Some(until_ms), Some(_)) => format!("usage limit until {}", clock.time(until_ms)),
        _ => format!("{} is paused", pause.agent),
    }
}

/// The words, and the state that has their colour.
fn end(ended: &EndRecord, is_skipped: bool, clock: Clock<'_>) -> (String, &'static str) {
    let state = ended.end.state().name();
    match (&ended.end, ended.verification) {
        _ if ended.has_apply_conflict => ("not applied: conflicts".to_owned(), State::Failed.name()),
        (TaskEnd::Completed, None) => (state.to_owned(), state),
        (TaskEnd::Completed, Some(Verification::Verified)) => ("verified".to_owned(), state),
        (TaskEnd::Completed, Some(check)) if check.has_failed() => {
            (EndKind::VerifyFailed.words().to_owned(), State::Failed.name())
        }
        (TaskEnd::Completed, Some(_)) => ("not verified".to_owned(), "warning"),
        (TaskEnd::Failed { kind: FailureKind::Auth, .. }, _) => ("failed: not signed in".to_owned(), state),
        (TaskEnd::Failed { kind: FailureKind::UsageLimit, retry_at_ms: Some(at_ms), .. }, _) => {
            (format!("usage limit until {}", clock.time(*at_ms)), state)
        }
        (TaskEnd::Failed { kind, .. }, _) => (format!("failed: {}", kind.name().replace('_', " ")), state),
        (TaskEnd::Timeout(LimitKind::Idle), _) => ("idle limit".to_owned(), state),
        (TaskEnd::Timeout(LimitKind::Hard), _) => ("time limit".to_owned(), state),
        (TaskEnd::Cancelled { .. }, _) if is_skipped => ("skipped".to_owned(), ""),
        (TaskEnd::Cancelled { .. }, _) => (state.to_owned(), state),
    }
}

/// `45s`, `12m`, `3h`, `2d`.
pub fn short_age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A task by itself, or all tasks of a group or a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Task(TaskLine),
    Submission { id: String, state: String, tasks: Vec<TaskLine> },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskSections {
    /// Those that have entries, in order of urgency.
    pub entries: Vec<(Section, Vec<Entry>)>,
    pub unread_not_listed: u64,
}

impl TaskSections {
    /// `lines` in their order. `submissions` are the groups and chains among them, each with all of its tasks.
    pub fn of(
        lines: Vec<TaskLine>,
        submissions: &[(Subject, Vec<TaskLine>)],
        unread_total: u64,
    ) -> TaskSections {
        let mut entries: Vec<(Section, Entry)> = Vec::new();
        let mut shown: Vec<&Subject> = Vec::new();
        for line in &lines {
            let of_line =
                |(subject, _): &&(Subject, Vec<TaskLine>)| Some(subject) == line.submission.as_ref();
            match submissions.iter().find(of_line) {
                None => entries.push((line.section, Entry::Task(line.clone()))),
                Some((subject, tasks)) if !shown.contains(&subject) => {
                    shown.push(subject);
                    let known = |task: &TaskLine| lines.iter().find(|line| line.id == task.id);
                    let line = |task: &TaskLine| known(task).unwrap_or(task).clone();
                    entries.push(submission_entry(subject, tasks.iter().map(line).collect()));
                }
                Some(_) => {}
            }
        }
        let of_section = |section| {
            let entries = entries.iter().filter(|(own, _)| *own == section);
            let entries: Vec<Entry> = entries.map(|(_, entry)| entry.clone()).collect();
            (!entries.is_empty()).then_some((section, entries))
        };
        let unread = lines.iter().filter(|line| line.is_unread).count() as u64;
        TaskSections {
            entries: Section::ALL.into_iter().filter_map(of_section).collect(),
            unread_not_listed: unread_total.saturating_sub(unread),
        }
    }
}

fn submission_entry(subject: &Subject, tasks: Vec<TaskLine>) -> (Section, Entry) {
    let members: Vec<Member> = tasks.iter().map(|task| task.member.clone()).collect();
    let standing = |member: &Member| {
        let task = tasks.iter().find(|task| task.member.id == member.id);
        task.map_or((Section::Finished, None), |task| (task.section, task.need))
    };
    let section = section_of_all(&members, standing);
    let ended = members.iter().filter(|member| member.end.is_some()).count();
    let state = format!("{} of {}, {ended} of {} ended", subject.kind().name(), tasks.len(), tasks.len());
    (section, Entry::Submission { id: subject.id().to_owned(), state, tasks })
}
