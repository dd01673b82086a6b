//! Entries that were started and not ended yet, in bounded memory.
//!
//! Agents have a handful of open calls. A stream that opens calls without closing them must not grow memory,
//! so the oldest entries are dropped; their end then looks like an end without a start.

use std::collections::VecDeque;

use super::item_ids::ItemIds;
use crate::event::ItemPhase;
use crate::json::Text;

/// More than any agent runs in parallel.
const MAX_ENTRIES: usize = 1024;
/// Keys and values together.
const MAX_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Pending<T> {
    /// In insertion order.
    entries: VecDeque<Entry<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    key: String,
    value: T,
    bytes: usize,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Pending<T> {
    /// Stores `value`, which takes about `bytes`, and replaces the entry with that key.
    pub(super) fn insert(&mut self, key: &str, value: T, bytes: usize) {
        self.remove(key);
        let bytes = bytes + key.len();
        while self.entries.len() >= MAX_ENTRIES || self.bytes + bytes > MAX_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes;
        }
        if bytes <= MAX_BYTES {
            self.bytes += bytes;
            self.entries.push_back(Entry { key: key.to_owned(), value, bytes });
        }
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Removes and returns all entries, in the order in which they were stored.
    pub(super) fn take_all(&mut self) -> Vec<(String, T)> {
        let all = std::mem::take(self);
        all.entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<T> {
        let at = self.entries.iter().rposition(|entry| entry.key == key)?;
        let entry = self.entries.remove(at)?;
        self.bytes -= entry.bytes;
        Some(entry.value)
    }
}

impl Pending<Text<'static>> {
    /// The phase and the id of an item that the agent starts and completes under the same key.
    pub(super) fn phase_and_id(
        &mut self,
        key: &str,
        is_completed: bool,
        ids: &mut ItemIds,
    ) -> (ItemPhase, Text<'static>) {
        if is_completed {
            return (ItemPhase::Completed, self.remove(key).unwrap_or_else(|| ids.next()));
        }
        let id = ids.next();
        self.insert(key, id.clone(), 0);
        (ItemPhase::Started, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_dropped_first() {
        let mut pending = Pending::default();
        for n in 0..3 * MAX_ENTRIES {
            pending.insert(&n.to_string(), n, 8);
        }
        assert_eq!(pending.entries.len(), MAX_ENTRIES);
        assert_eq!(pending.remove("0"), None);
        assert_eq!(pending.remove("3000"), Some(3000));
        for n in 0..100 {
            pending.insert(&format!("big{n}"), n, 1 << 20);
            assert!(pending.bytes <= MAX_BYTES);
        }
        pending.insert("too big", 1, MAX_BYTES + 1);
        assert_eq!(pending.remove("too big"), None);
    }
}
