//! What has begun and not ended yet, in bounded memory.
//!
//! Agents have a handful of calls open at a time. A stream that opens calls for ever and closes none must not cost
//! memory for ever, so the oldest are forgotten: their end then looks like an end without a begin.

use std::collections::VecDeque;

/// More than any agent runs side by side.
const MOST_ENTRIES: usize = 1024;
/// For keys and values together.
const MOST_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Pending<T> {
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
    /// Remembers `value`, which takes about `bytes`, in place of what was there under that key.
    pub(super) fn insert(&mut self, key: &str, value: T, bytes: usize) {
        self.remove(key);
        let bytes = bytes + key.len();
        while self.entries.len() >= MOST_ENTRIES
            || (self.bytes + bytes > MOST_BYTES && !self.entries.is_empty())
        {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |entry| entry.bytes);
        }
        if bytes <= MOST_BYTES {
            self.bytes += bytes;
            self.entries.push_back(Entry { key: key.to_owned(), value, bytes });
        }
    }

    /// Takes out what was remembered under that key.
    pub(super) fn remove(&mut self, key: &str) -> Option<T> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        let entry = self.entries.remove(at)?;
        self.bytes -= entry.bytes;
        Some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_closed_is_forgotten_oldest_first() {
        let mut pending = Pending::default();
        for n in 0..3 * MOST_ENTRIES {
            pending.insert(&n.to_string(), n, 8);
        }
        assert_eq!(pending.entries.len(), MOST_ENTRIES);
        assert_eq!(pending.remove("0"), None);
        assert_eq!(pending.remove("3000"), Some(3000));
        for n in 0..100 {
            pending.insert(&format!("big{n}"), n, 1 << 20);
            assert!(pending.bytes <= MOST_BYTES);
        }
        pending.insert("too big", 1, MOST_BYTES + 1);
        assert_eq!(pending.remove("too big"), None);
    }
}
