//! Counts the numbered events a task has stored: `event 1 `, `event 2 `, and so on.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::LoadError;

const TEXT_PREFIX: &str = "\"text\":\"event ";

/// Which numbered events are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventNumbers {
    pub(crate) distinct: usize,
    pub(crate) duplicates: usize,
    pub(crate) out_of_order: usize,
    pub(crate) last: u64,
}

impl EventNumbers {
    /// How many of the first `count` events are missing.
    pub(crate) fn missing_up_to(&self, count: u64) -> usize {
        usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(self.distinct)
    }

    /// How many events are missing although a later one is stored.
    pub(crate) fn gaps(&self) -> usize {
        self.missing_up_to(self.last)
    }
}

/// A missing file has no events.
pub(crate) fn read_event_numbers(path: &Path) -> Result<EventNumbers, LoadError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(parse_event_numbers(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(EventNumbers::default()),
        Err(error) => Err(LoadError::io(format!("read {}", path.display()))(error)),
    }
}

fn parse_event_numbers(text: &str) -> EventNumbers {
    let mut unique = BTreeSet::new();
    let mut numbers = EventNumbers::default();
    for line in text.lines() {
        let number =
            line.split_once(TEXT_PREFIX).and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
        // A truncated line has its number, but not its end.
        let Some(number) = number.filter(|_| line.ends_with('}')) else { continue };
        if !unique.insert(number) {
            numbers.duplicates += 1;
        } else if number < numbers.last {
            numbers.out_of_order += 1;
        }
        numbers.last = numbers.last.max(number);
    }
    numbers.distinct = unique.len();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: &[u64]) -> String {
        let line = |number: &u64| format!("{{\"item\":{{\"text\":\"event {number} xx\"}}}}\n");
        numbers.iter().map(line).collect()
    }

    #[test]
    fn gaps_duplicates_and_disorder_are_counted_separately() {
        let numbers = parse_event_numbers(&lines(&[1, 2, 2, 5, 4]));
        assert_eq!(numbers, EventNumbers { distinct: 4, duplicates: 1, out_of_order: 1, last: 5 });
        assert_eq!((numbers.gaps(), numbers.missing_up_to(7)), (1, 3));
    }

    #[test]
    fn incomplete_lines_are_not_counted() {
        let text = format!("{}{{\"item\":{{\"text\":\"event 2 x", lines(&[1]));
        assert_eq!(parse_event_numbers(&text).distinct, 1);
    }
}
