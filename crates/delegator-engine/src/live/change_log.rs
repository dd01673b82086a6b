//! The last changes, numbered in one order, so that a reader can continue where it stopped.
//!
//! The log is bounded and shared by all readers: one that falls behind by more than the log holds misses
//! changes and gets a whole state instead. It never delays the writer.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::state::{LiveChange, LiveOverall, LiveState};

/// More than the tasks that are shown, so that one change of each of them fits.
pub(super) const CAPACITY: usize = 8_192;

/// The place of a reader in the changes of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// A number of the process: the changes of another one are others.
    pub(super) log: u64,
    /// The last change that the reader knows.
    pub revision: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}-{}", self.log, self.revision)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Cursor, ()> {
        let (log, revision) = text.split_once('-').ok_or(())?;
        let log = u64::from_str_radix(log, 16).map_err(drop)?;
        Ok(Cursor { log, revision: revision.parse().map_err(drop)? })
    }
}

/// What a reader learns next.
#[derive(Debug, Clone)]
pub enum Update {
    Snapshot {
        state: Arc<LiveState>,
        /// The reader had an earlier state, and changes since then are lost.
        has_gap: bool,
        cursor: Cursor,
    },
    Changes {
        /// In their order, each with the place after it. Of several changes of one task there is only the last:
        /// it has the whole task.
        changes: Vec<(Cursor, LiveChange)>,
        /// As it is after them.
        overall: Arc<LiveOverall>,
        cursor: Cursor,
    },
}

#[derive(Debug)]
pub(super) struct ChangeLog {
    log: u64,
    revision: u64,
    /// The last one has this revision.
    changes: VecDeque<LiveChange>,
}

impl ChangeLog {
    pub(super) fn new(log: u64) -> ChangeLog {
        ChangeLog { log, revision: 0, changes: VecDeque::new() }
    }

    pub(super) fn push(&mut self, change: LiveChange) {
        if self.changes.len() == CAPACITY {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
        self.revision += 1;
    }

    pub(super) fn end(&self) -> Cursor {
        Cursor { log: self.log, revision: self.revision }
    }

    /// What has changed after `cursor`; `None` if the log does not hold all of it.
    pub(super) fn after(&self, cursor: Cursor) -> Option<Vec<(Cursor, LiveChange)>> {
        let missing = self.revision.checked_sub(cursor.revision).filter(|_| cursor.log == self.log)?;
        let missing = usize::try_from(missing).ok()?;
        self.changes.len().checked_sub(missing)?;
        let mut found = BTreeSet::new();
        let newest_first = self.changes.iter().rev().take(missing).zip((0..=self.revision).rev());
        let mut last_of_each: Vec<(Cursor, LiveChange)> = newest_first
            .filter(|(change, _)| found.insert(change.task()))
            .map(|(change, revision)| (Cursor { revision, ..cursor }, change.clone()))
            .collect();
        last_of_each.reverse();
        Some(last_of_each)
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::{TaskId, TaskLocation};

    use super::*;

    fn change(number: usize) -> LiveChange {
        // A character of an id has five bits of a byte.
        let bytes = std::array::from_fn(|at| u8::try_from(number >> (5 * at).min(63) & 31).unwrap());
        LiveChange::Removed(TaskId::from_random(TaskLocation::Local, bytes))
    }

    #[test]
    fn a_reader_continues_where_it_stopped_or_learns_that_changes_are_missing() {
        let mut log = ChangeLog::new(7);
        let start = log.end();
        assert_eq!(log.after(start), Some(Vec::new()));
        (0..3).for_each(|number| log.push(change(number)));
        let at = |revision: u64| Cursor { revision, ..start };
        let all = vec![(at(1), change(0)), (at(2), change(1)), (at(3), change(2))];
        assert_eq!(log.after(start), Some(all));
        let middle = at(2);
        assert_eq!(log.after(middle), Some(vec![(at(3), change(2))]));
        (3..CAPACITY + 2).for_each(|number| log.push(change(number)));
        assert_eq!(log.after(start), None, "two changes are gone");
        assert_eq!(log.after(middle).map(|changes| changes.len()), Some(CAPACITY));
        let end = log.end();
        for unknown in [Cursor { log: 8, ..end }, Cursor { revision: end.revision + 1, ..end }] {
            assert_eq!(log.after(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn of_several_changes_of_a_task_the_last_one_counts() {
        let mut log = ChangeLog::new(7);
        [0, 1, 0].map(change).into_iter().for_each(|change| log.push(change));
        let found = log.after(Cursor { log: 7, revision: 0 }).unwrap();
        let revisions: Vec<u64> = found.iter().map(|(cursor, _)| cursor.revision).collect();
        assert_eq!(revisions, [2, 3]);
        assert_eq!(found[1].1, change(0));
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor { log: u64::MAX, revision: 12 };
        assert_eq!(cursor.to_string(), "ffffffffffffffff-12");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "-", "7", "x-1", "7-", "7--1", "10000000000000000-1"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(()), "{wrong}");
        }
    }
}
