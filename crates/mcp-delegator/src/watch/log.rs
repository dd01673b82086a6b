//! What the agent of the open task did, one entry for each event: the timeline shows the first line of each,
//! the output all of them. Only a bounded number of lines is stored. Pure.

use std::collections::VecDeque;

use delegator_transcript::{ItemPhase, ThreadEvent};

use crate::output::data::log_entry::EntryKind;
use crate::output::data::task_line::short_age;
use crate::watch::lines::{Look, MAX_COLUMNS, TextLine, clean, fitted};

const MAX_LINES: usize = 2_000;
/// Of one entry, and of one of its lines.
const MAX_ENTRY_LINES: usize = 500;
const MAX_LINE_COLUMNS: usize = 10 * MAX_COLUMNS;
/// A longer pause between two events becomes an entry of its own. Events have no times, so only pauses while
/// the task is open are known.
const MIN_PAUSE_MS: i64 = 30_000;

/// At most six letters, and how the first line looks.
fn label(kind: Option<EntryKind>) -> (&'static str, Look) {
    match kind {
        Some(EntryKind::Turn) => ("turn", Look::Dim),
        Some(EntryKind::Command) => ("run", Look::Plain),
        Some(EntryKind::Test) => ("test", Look::Good),
        Some(EntryKind::Edit) => ("edit", Look::Plain),
        Some(EntryKind::Message) => ("agent", Look::Heading),
        Some(EntryKind::Plan) => ("plan", Look::Plain),
        Some(EntryKind::Problem) => ("error", Look::Bad),
        Some(EntryKind::Other) => ("", Look::Plain),
        None => ("pause", Look::Dim),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// `None`: nothing happened for a while.
    pub kind: Option<EntryKind>,
    pub has_failed: bool,
    /// Safe to show; its first line describes the event.
    pub text: String,
    /// What the agent began or ended with it.
    pub item: Option<ItemPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPlace {
    id: String,
    has_ended: bool,
}

impl ItemPlace {
    fn of(event: Option<&ThreadEvent<'_>>) -> Option<ItemPlace> {
        let Some(ThreadEvent::Item { phase, item }) = event else { return None };
        Some(ItemPlace { id: item.id.resolve().into_owned(), has_ended: *phase == ItemPhase::Completed })
    }
}

impl LogEntry {
    pub fn of(event: Option<&ThreadEvent<'_>>, text: &str) -> LogEntry {
        let (kind, has_failed) = EntryKind::of(event);
        let text = clean(text);
        let mut lines: Vec<String> =
            text.lines().take(MAX_ENTRY_LINES).map(|line| fitted(line, MAX_LINE_COLUMNS)).collect();
        let omitted = text.lines().count() - lines.len();
        lines.extend((omitted > 0).then(|| format!("[{omitted} lines omitted; logs --full shows them]")));
        LogEntry { kind: Some(kind), has_failed, text: lines.join("\n"), item: ItemPlace::of(event) }
    }

    fn lines(&self) -> usize {
        self.text.lines().count().max(1)
    }

    fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    fn look(&self) -> Look {
        if self.has_failed { Look::Bad } else { label(self.kind).1 }
    }

    fn look_of_rest(&self, line: &str) -> Look {
        match (self.kind, line.as_bytes().first()) {
            (Some(EntryKind::Edit), Some(b'+')) => Look::Added,
            (Some(EntryKind::Edit), Some(b'-')) => Look::Deleted,
            (Some(EntryKind::Message), _) => Look::Plain,
            _ => Look::Dim,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Log {
    entries: VecDeque<LogEntry>,
    lines: usize,
    last_ms: Option<i64>,
}

impl Log {
    pub fn push(&mut self, entry: LogEntry, now_ms: i64) {
        let pause_ms = self.last_ms.map_or(0, |last_ms| now_ms - last_ms);
        self.last_ms = Some(now_ms);
        if pause_ms >= MIN_PAUSE_MS {
            let text = format!("nothing for {}", short_age(pause_ms.unsigned_abs() / 1000));
            self.append(LogEntry { kind: None, has_failed: false, text, item: None });
        }
        if let Some(ended) = entry.item.as_ref().filter(|item| item.has_ended) {
            self.remove_begun(&ended.id);
        }
        self.append(entry);
    }

    /// The entry of the end takes the place of this one.
    fn remove_begun(&mut self, id: &str) {
        let is_begun =
            |entry: &LogEntry| entry.item.as_ref().is_some_and(|item| item.id == id && !item.has_ended);
        let at = self.entries.iter().rposition(is_begun);
        let removed = at.and_then(|at| self.entries.remove(at));
        self.lines -= removed.map_or(0, |removed| removed.lines());
    }

    fn append(&mut self, entry: LogEntry) {
        self.lines += entry.lines();
        self.entries.push_back(entry);
        while self.lines > MAX_LINES && self.entries.len() > 1 {
            let oldest = self.entries.pop_front();
            self.lines -= oldest.map_or(0, |oldest| oldest.lines());
        }
    }

    /// One line for each event.
    pub fn timeline(&self) -> Vec<TextLine> {
        let line = |entry: &LogEntry| {
            let first = entry.first_line();
            let first = first.strip_prefix("Message: ").unwrap_or(first);
            TextLine::new(entry.look(), fitted(&format!("{:<6} {first}", label(entry.kind).0), MAX_COLUMNS))
        };
        self.entries.iter().map(line).collect()
    }

    pub fn output(&self) -> Vec<TextLine> {
        let lines = |entry: &LogEntry| -> Vec<TextLine> {
            let rest = entry.text.lines().skip(1);
            let rest = rest.map(|line| TextLine::new(entry.look_of_rest(line), format!("  {line}")));
            let first = TextLine::new(entry.look(), entry.first_line());
            std::iter::once(first).chain(rest).flat_map(TextLine::pieces).collect()
        };
        self.entries.iter().flat_map(lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> LogEntry {
        LogEntry { kind: Some(EntryKind::Message), has_failed: false, text: text.to_owned(), item: None }
    }

    #[test]
    fn a_pause_becomes_one_line() {
        let mut log = Log::default();
        for (text, at_ms) in [("Message: a", 0), ("Message: b", 29_999), ("Message: c", 150_000)] {
            log.push(message(text), at_ms);
        }
        let texts: Vec<String> = log.timeline().into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["agent  a", "agent  b", "pause  nothing for 2m", "agent  c"]);
    }

    #[test]
    fn a_command_that_runs_is_shown_until_it_ends() {
        let mut log = Log::default();
        let entry = |text: &str, id: &str, has_ended| LogEntry {
            item: Some(ItemPlace { id: id.to_owned(), has_ended }),
            ..message(text)
        };
        for (text, id, has_ended) in
            [("Running a", "1", false), ("Running b", "2", false), ("Running a: exit 0", "1", true)]
        {
            log.push(entry(text, id, has_ended), 0);
        }
        let texts: Vec<String> = log.output().into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["Running b", "Running a: exit 0"]);
        assert_eq!(log.lines, 2);
    }

    #[test]
    fn an_entry_is_bounded() {
        let text = format!("{}\n{}", "x".repeat(3 * MAX_LINE_COLUMNS), "y\n".repeat(MAX_ENTRY_LINES));
        let entry = LogEntry::of(None, &text);
        assert_eq!(entry.text.lines().last(), Some("[1 lines omitted; logs --full shows them]"));
        assert_eq!(entry.first_line().chars().count(), MAX_LINE_COLUMNS);
    }

    #[test]
    fn only_the_last_lines_are_stored() {
        let mut log = Log::default();
        (0..MAX_LINES).for_each(|number| log.push(message(&format!("{number}\nx")), 0));
        assert_eq!((log.entries.len(), log.lines), (MAX_LINES / 2, MAX_LINES));
        assert_eq!(log.output().len(), MAX_LINES);
        assert_eq!(log.output()[0].text, format!("{}", MAX_LINES / 2));
    }
}
