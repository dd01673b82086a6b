//! The numbers of the events a task has stored: `event 1 `, `event 2 `, and so on.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::LoadError;

const BEFORE: &str = "\"text\":\"event ";

/// Which numbered events there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) distinct: usize,
    pub(crate) doubled: usize,
    pub(crate) out_of_order: usize,
    pub(crate) last: u64,
}

impl Numbered {
    /// How many of the first so many are not there.
    pub(crate) fn missing_up_to(&self, count: u64) -> usize {
        usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(self.distinct)
    }

    /// How many are not there although a later one is.
    pub(crate) fn gaps(&self) -> usize {
        self.missing_up_to(self.last)
    }
}

/// Of a file that does not exist: none.
pub(crate) fn read_numbered(path: &Path) -> Result<Numbered, LoadError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(numbers_in(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Numbered::default()),
        Err(error) => Err(LoadError::io(format!("read {}", path.display()))(error)),
    }
}

fn numbers_in(text: &str) -> Numbered {
    let mut seen = BTreeSet::new();
    let mut numbered = Numbered::default();
    for line in text.lines() {
        let number =
            line.split_once(BEFORE).and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
        // A torn line has its number, but not its end.
        let Some(number) = number.filter(|_| line.ends_with('}')) else { continue };
        if !seen.insert(number) {
            numbered.doubled += 1;
        } else if number < numbered.last {
            numbered.out_of_order += 1;
        }
        numbered.last = numbered.last.max(number);
    }
    numbered.distinct = seen.len();
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: &[u64]) -> String {
        let line = |number: &u64| format!("{{\"item\":{{\"text\":\"event {number} xx\"}}}}\n");
        numbers.iter().map(line).collect()
    }

    #[test]
    fn gaps_doubles_and_disorder_are_told_apart() {
        let told = numbers_in(&lines(&[1, 2, 2, 5, 4]));
        assert_eq!(told, Numbered { distinct: 4, doubled: 1, out_of_order: 1, last: 5 });
        assert_eq!((told.gaps(), told.missing_up_to(7)), (1, 3));
    }

    #[test]
    fn a_torn_line_does_not_count() {
        let text = format!("{}{{\"item\":{{\"text\":\"event 2 x", lines(&[1]));
        assert_eq!(numbers_in(&text).distinct, 1);
    }
}
