//! The lines about tasks that a person reads in `status`.

use delegator_domain::attention::Section;

use crate::output::data::task_line::{Entry, TaskLine, TaskSections, short_age};
use crate::output::data::usage::dollars;
use crate::output::documents::document::{Block, LineCells, LineSection, SectionLine};
use crate::output::documents::task::{common_directory, directory_cell, labels};

pub(super) fn block(sections: &TaskSections) -> Block {
    let section = |(section, entries): &(Section, Vec<Entry>)| LineSection {
        heading: heading(*section),
        lines: entries.iter().flat_map(|entry| lines(entry, sections.common_directory())).collect(),
    };
    Block::Sections(sections.entries.iter().map(section).collect())
}

pub fn heading(section: Section) -> &'static str {
    match section {
        Section::NeedsYou => "Needs you",
        Section::Working => "Working",
        Section::Waiting => "Waiting",
        Section::FinishedUnread => "Finished, unread",
        Section::Finished => "Recent",
    }
}

fn lines(entry: &Entry, common_directory: Option<&str>) -> Vec<SectionLine> {
    let (id, state, tasks) = match entry {
        Entry::Task(task) => return vec![SectionLine::Task(cells(task, common_directory), task.color_of)],
        Entry::Submission { id, state, tasks } => (id, state, tasks),
    };
    let title = tasks.first().map(|task| task.title.as_str()).unwrap_or_default();
    let members = tasks.iter().map(|task| {
        let mut cells = cells(task, common_directory);
        cells[0].insert_str(0, "  ");
        if task.title == title {
            cells[6].clear();
        }
        SectionLine::Task(cells, task.color_of)
    });
    std::iter::once(SectionLine::Whole(format!("{id}  {state}  {title}"))).chain(members).collect()
}

fn cells(task: &TaskLine, common_directory: Option<&str>) -> LineCells {
    let lines = task.lines.map(|lines| format!("+{} −{}", lines.added, lines.deleted));
    let cost = task.cost_microdollars.map(|cost| format!("${:.2}", dollars(cost)));
    let directory = Some(directory_cell(&task.working_dir, common_directory)).filter(|cell| cell != "-");
    [
        task.id.clone(),
        short_age(task.age_sec),
        task.agent.clone(),
        task.state.clone(),
        lines.unwrap_or_default(),
        cost.unwrap_or_default(),
        task.title.clone(),
        labels(&task.labels).unwrap_or_default(),
        directory.unwrap_or_default(),
    ]
}

impl TaskSections {
    fn tasks(&self) -> impl Iterator<Item = &TaskLine> {
        self.entries.iter().flat_map(|(_, entries)| entries).flat_map(|entry| match entry {
            Entry::Task(task) => std::slice::from_ref(task),
            Entry::Submission { tasks, .. } => tasks,
        })
    }

    /// The directory in which all of these tasks work.
    pub fn common_directory(&self) -> Option<&str> {
        common_directory(self.tasks().map(|task| task.working_dir.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use delegator_domain::attention::Section;
    use delegator_domain::task::{Member, TaskId, TaskLocation};
    use delegator_registry::ChangedLines;
    use delegator_testkit::generated::assert_up_to_date;

    use super::*;
    use crate::output::command_data::CommandData;
    use crate::output::data::status::{CloudTasks, StatusCounts, StatusSnapshot};
    use crate::output::documents::text::TextStyle;

    fn task(number: u8, age_sec: u64, agent: &str, state: &str, title: &str) -> TaskLine {
        let id = TaskId::from_random(TaskLocation::Local, [number; 16]);
        TaskLine {
            section: Section::Working,
            need: None,
            id: id.to_string(),
            age_sec,
            agent: agent.to_owned(),
            state: state.to_owned(),
            color_of: "",
            lines: None,
            cost_microdollars: None,
            title: title.to_owned(),
            labels: BTreeMap::new(),
            working_dir: "/home/me/shop".to_owned(),
            is_unread: false,
            member: Member { id, follows: None, end: None, is_skipped: false },
            submission: None,
        }
    }

    fn changed(task: TaskLine, added: u64, deleted: u64, cost_microdollars: Option<u64>) -> TaskLine {
        TaskLine { lines: Some(ChangedLines { added, deleted }), cost_microdollars, ..task }
    }

    fn sections() -> TaskSections {
        let single = |tasks: Vec<TaskLine>| tasks.into_iter().map(Entry::Task).collect::<Vec<_>>();
        let needs = vec![
            task(1, 130, "claude", "needs you: allow 'npm install --save-dev vitest'?", "Add a test runner"),
            changed(task(2, 700, "codex", "verify failed", "Fix the login page of the shop"), 120, 31, None),
        ];
        let attempts = Entry::Submission {
            id: "G-local-0000000000".to_owned(),
            state: "group of 2, 1 of 2 ended".to_owned(),
            tasks: vec![
                changed(task(4, 45, "codex", "verified", "Make the search faster"), 12, 3, None),
                task(5, 260, "claude", "Running cargo test (2 of 5 steps)", "Make the search faster"),
            ],
        };
        let mut working = single(vec![task(3, 59, "codex", "Editing src/cart.rs", "Round the prices")]);
        working.push(attempts);
        let waits =
            format!("waits for {} in this directory", TaskId::from_random(TaskLocation::Local, [3; 16]));
        let waiting = vec![
            task(6, 30, "codex", &waits, "Write down how the prices are rounded"),
            task(7, 5, "claude", "usage limit until 14:05", "Translate the manual"),
        ];
        let unread = vec![changed(
            task(8, 4_000, "claude", "verified", "Show a message if the cart is empty"),
            7,
            0,
            Some(120_000),
        )];
        let recent = vec![
            changed(
                task(9, 90_000, "claude", "failed: agent exit", "Remove the old cart"),
                0,
                250,
                Some(2_340_000),
            ),
            task(10, 200_000, "codex", "cancelled", "Try another color"),
        ];
        TaskSections {
            entries: vec![
                (Section::NeedsYou, single(needs)),
                (Section::Working, working),
                (Section::Waiting, single(waiting)),
                (Section::FinishedUnread, single(unread)),
                (Section::Finished, single(recent)),
            ],
            unread_not_listed: 3,
        }
    }

    #[test]
    fn the_sections_fit_60_and_100_columns() {
        let counts = StatusCounts { running: 3, queued: 2, recently_completed: 5 };
        let snapshot = StatusSnapshot {
            summary: counts,
            sections: Some(sections()),
            cloud: Some(CloudTasks { unfinished_count: 1, unread_count: 0 }),
            ..StatusSnapshot::default()
        };
        let screen = |columns: usize| {
            let text =
                snapshot.document().to_text(TextStyle { columns: Some(columns), ..TextStyle::default() });
            let widest = text.lines().map(textwrap::core::display_width).max();
            assert!(widest <= Some(columns), "{text}");
            format!("==== {columns} columns ====\n{text}\n")
        };
        let screens = [60, 100].map(screen);
        assert_up_to_date("crates/mcp-delegator/tests/screens/status_sections.txt", &screens.join("\n"));
    }
}
