//! The document of `status`: running, queued and recently ended tasks. Models request it often, so the cells of
//! their tables are short and empty columns are omitted: one task fits in 600 bytes.

use std::collections::BTreeMap;

use crate::output::command_data::CommandData;
use crate::output::data::conversation::MessagesData;
use crate::output::data::group::GroupData;
use crate::output::data::notification::append_notifications;
use crate::output::data::status::{
    CloudTasks, EndedTask, QueuedTask, RunningTask, StatusSnapshot, TaskDescription, Unread, WaitingFor,
};
use crate::output::data::task_line::TaskSections;
use crate::output::documents::document::{plural, truncate_cell};
use crate::output::documents::{conversation, status_screen, task as task_document};
use crate::output::prelude::*;
use crate::output::truncation::apply::{json_size, retain_first};
use crate::output::values::format_duration;

/// Maximum bytes of cells with foreign text.
const MAX_TITLE_BYTES: usize = 100;
const MAX_ACTIVITY_BYTES: usize = 80;
const MAX_LABELS_BYTES: usize = 50;
/// Unread results that are listed; the others are only counted.
const MAX_UNREAD_IDS: usize = 3;

impl CommandData for StatusSnapshot {
    /// For a person the tasks are in sections, for a model in tables.
    fn document(&self) -> Document {
        let document = Document::titled(self.headline());
        let document = match &self.sections {
            Some(sections) => {
                self.append_facts_for_people(document.block(status_screen::block(sections)), sections)
            }
            None => self.append_tables(document),
        };
        let document = self.append_conversations(document);
        let with_lines = self.tasks.iter().filter_map(|task| Some((task, task.last_lines.as_ref()?)));
        let document =
            with_lines.filter(|(_, lines)| !lines.is_empty()).fold(document, |document, (task, lines)| {
                document.quote(format!("Last lines of {}:", task.task_id), lines.join("\n"))
            });
        let document = append_notifications(document, "Notifications:", &self.notifications);
        let is_empty = self.descriptions().next().is_none() && self.cloud.is_none();
        document
            .with(self.usage.as_ref(), |document, usage| usage.append_to(document))
            .with(self.next_call().map(Block::Next), Document::block)
            .with(is_empty.then(|| Block::ForPeople(self.first_step())), Document::block)
    }

    fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        let before = self.list_lengths();
        retain_first(&mut self.tasks, plan.task_list_bytes, json_size);
        retain_first(&mut self.queue, plan.other_bytes, json_size);
        retain_first(&mut self.recently_completed, plan.other_bytes, json_size);
        self.follow_lists(before);
        Sizes::default()
    }

    fn next_cursor(&self, is_selected: &dyn Fn(&str) -> bool) -> Option<String> {
        let is_read = |list: &str| is_selected(list) || is_selected("all_tasks");
        let [running, queued, ended] = self.list_lengths();
        self.cursors.as_ref()?.next_cursor([
            is_read("tasks").then_some(running),
            is_read("queue").then_some(queued),
            is_read("recently_completed").then_some(ended),
        ])
    }
}

impl StatusSnapshot {
    fn descriptions(&self) -> impl Iterator<Item = &TaskDescription> {
        let running = self.tasks.iter().map(|task| &task.description);
        let queued = self.queue.iter().map(|task| &task.description);
        running.chain(queued).chain(self.recently_completed.iter().map(|task| &task.description))
    }

    fn headline(&self) -> String {
        let counts = &self.summary;
        if counts.running + counts.queued + counts.recently_completed == 0 && !self.is_queue_paused {
            let here = if self.cloud.is_some() { " of this machine" } else { "" };
            return format!("No task{here} is running, queued or ended in the last 24 hours");
        }
        let paused = if self.is_queue_paused { " (the queue is paused)" } else { "" };
        format!(
            "{} running, {} queued{paused}, {} ended in the last 24 hours",
            counts.running, counts.queued, counts.recently_completed
        )
    }

    fn append_tables(&self, document: Document) -> Document {
        let common =
            task_document::common_directory(self.descriptions().map(|task| task.working_dir.as_str()));
        let rows = self.recently_completed.iter().map(|task| ended_row(task, common));
        let document = document
            .table(&RUNNING_COLUMNS, self.tasks.iter().map(|task| running_row(task, common)).collect())
            .table(&QUEUED_COLUMNS, self.queue.iter().map(|task| queued_row(task, common)).collect())
            .with(self.not_listed_text(), Document::text)
            .table(&ENDED_COLUMNS, rows.collect());
        let pauses = self.agent_pauses.iter().map(|pause| pause.fact());
        append_facts(
            document,
            [
                fact("directory", common.map(str::to_owned)),
                fact("worktree", self.worktree.clone()),
                self.groups.iter().map(GroupData::states_fact).collect(),
                fact("unread results", self.unread.as_ref().map(unread_ids)),
                fact("cloud tasks", self.cloud.as_ref().map(cloud_tasks)),
                pauses.collect(),
            ],
        )
    }

    /// What the lines do not show.
    fn append_facts_for_people(&self, document: Document, sections: &TaskSections) -> Document {
        let more = (sections.unread_not_listed > 0).then(|| {
            let count = plural(sections.unread_not_listed, "more result");
            let read = NextCall::new(&["read"]).with("all", true);
            Block::ForPeople(Suggestion::with_call(
                format!("{count} not read. Mark all as read: {{call}}"),
                read,
            ))
        });
        append_facts(
            document.with(self.not_listed_text(), Document::text).with(more, Document::block),
            [
                fact("directory", sections.common_directory().map(str::to_owned)),
                fact("worktree", self.worktree.clone()),
                fact("cloud tasks", self.cloud.as_ref().map(cloud_tasks)),
            ],
        )
    }

    fn append_conversations(&self, mut document: Document) -> Document {
        for task in &self.tasks {
            let open = &task.conversation.waiting_for_answer;
            if !open.is_empty() {
                let label = format!("{} waits for an answer.", task.task_id);
                document = conversation::append_questions(document.text(label), &task.task_id, open);
            }
        }
        let running = self.tasks.iter().map(|task| task.conversation.messages.as_ref());
        let queued = self.queue.iter().map(|task| task.messages.as_ref());
        let ended = self.recently_completed.iter().map(|task| task.messages.as_ref());
        running.chain(queued).chain(ended).fold(document, conversation::append_messages)
    }

    /// A wait for the only task that has not ended; if there is none, the results of an unread task, or else
    /// the list of the cloud tasks.
    fn next_call(&self) -> Option<NextCall> {
        let next = |command, id: &str| Some(NextCall::for_task(command, id));
        let running = self.tasks.iter().map(|task| &task.task_id);
        let mut unfinished = running.chain(self.queue.iter().map(|task| &task.task_id));
        match (unfinished.next(), unfinished.next()) {
            (Some(only), None) => next(&["local", "wait"], only),
            (Some(_), Some(_)) => None,
            (None, _) => match self.unread.as_ref().and_then(|unread| unread.task_ids.first()) {
                Some(id) => next(&["local", "results"], id),
                None => self.cloud.as_ref().map(|_| NextCall::new(&["cloud", "status"])),
            },
        }
    }

    /// For people without tasks.
    fn first_step(&self) -> Suggestion {
        if self.is_cloud {
            let environments = NextCall::new(&["cloud", "list-environments"]);
            return Suggestion::with_call("List the environments for cloud tasks: {call}", environments);
        }
        let first = NextCall::new(&["local", "run"]).with("task", "Explain what this project does.");
        Suggestion::with_call("Start a task that only reads: {call}", first)
    }

    fn not_listed_text(&self) -> Option<String> {
        let more = self.not_listed.as_ref()?;
        Some(format!(
            "{} running and {} queued tasks are not listed: filter by working_dir, labels or state.",
            more.running_count, more.queued_count
        ))
    }
}

fn append_facts<const N: usize>(mut document: Document, blocks: [Vec<(String, String)>; N]) -> Document {
    document.blocks.extend(blocks.into_iter().filter(|facts| !facts.is_empty()).map(Block::Facts));
    document
}

fn fact(name: &str, value: Option<String>) -> Vec<(String, String)> {
    value.map(|value| (name.to_owned(), value)).into_iter().collect()
}

const RUNNING_COLUMNS: [&str; 9] =
    ["running", "task", "seconds", "progress", "activity", "messages", "labels", "sandbox", "directory"];

fn running_row(task: &RunningTask, common_directory: Option<&str>) -> Vec<String> {
    let (description, progress) = (&task.description, task.progress.as_ref());
    let activity = if task.conversation.waiting_for_answer.is_empty() {
        let activity = progress.and_then(|progress| progress.current_activity.as_ref());
        truncate_cell(&cell(activity), MAX_ACTIVITY_BYTES)
    } else {
        "Waiting for an answer".to_owned()
    };
    // The percentage; if it is unknown, what the agent has done so far.
    let done = progress.and_then(|progress| progress.percent_text().or_else(|| progress.counts_text()));
    vec![
        task.task_id.clone(),
        title(description),
        task.elapsed_seconds.to_string(),
        cell(done.as_ref()),
        activity,
        message_counts(task.conversation.messages.as_ref()),
        labels(&description.labels),
        cell(task_document::sandbox(description.sandbox).as_ref()),
        task_document::directory_cell(&description.working_dir, common_directory),
    ]
}

const QUEUED_COLUMNS: [&str; 9] =
    ["queued", "task", "position", "waits for", "starts in", "messages", "labels", "sandbox", "directory"];

fn queued_row(task: &QueuedTask, common_directory: Option<&str>) -> Vec<String> {
    let description = &task.description;
    let paused = || task.agent_pause.as_ref().map(|pause| format!("{} (paused)", pause.agent));
    let waits_for = task.waiting_for.as_ref().map(WaitingFor::text).or_else(paused);
    vec![
        task.task_id.clone(),
        title(description),
        // As in the acknowledgement of a task: 1 is the next.
        (task.position + 1).to_string(),
        cell(waits_for.as_ref()),
        cell(task.estimated_start_ms.map(format_duration).as_ref()),
        message_counts(task.messages.as_ref()),
        labels(&description.labels),
        cell(task_document::sandbox(description.sandbox).as_ref()),
        task_document::directory_cell(&description.working_dir, common_directory),
    ]
}

const ENDED_COLUMNS: [&str; 7] = ["ended", "state", "task", "seconds", "labels", "sandbox", "directory"];

fn ended_row(task: &EndedTask, common_directory: Option<&str>) -> Vec<String> {
    let description = &task.description;
    vec![
        task.task_id.clone(),
        task.end.to_owned(),
        title(description),
        task.duration_seconds.to_string(),
        labels(&description.labels),
        cell(task_document::sandbox(description.sandbox).as_ref()),
        task_document::directory_cell(&description.working_dir, common_directory),
    ]
}

fn message_counts(messages: Option<&MessagesData>) -> String {
    cell(messages.map(MessagesData::counts_text).as_ref())
}

fn title(task: &TaskDescription) -> String {
    truncate_cell(&task.title, MAX_TITLE_BYTES)
}

fn labels(labels: &BTreeMap<String, String>) -> String {
    truncate_cell(&cell(task_document::labels(labels).as_ref()), MAX_LABELS_BYTES)
}

impl WaitingFor {
    /// `T-… (its reason)`.
    pub fn text(&self) -> String {
        format!("{} ({})", self.task_id, self.reason)
    }
}

fn cloud_tasks(cloud: &CloudTasks) -> String {
    let counts = [(cloud.unfinished_count, "unfinished"), (cloud.unread_count, "unread")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, name)| format!("{count} {name}")).collect();
    format!("{}; cloud status lists them", counts.join(", "))
}

fn unread_ids(unread: &Unread) -> String {
    let ids: Vec<&str> = unread.task_ids.iter().take(MAX_UNREAD_IDS).map(String::as_str).collect();
    match unread.count.saturating_sub(ids.len() as u64) {
        0 => ids.join(", "),
        more => format!("{} and {more} more", ids.join(", ")),
    }
}
