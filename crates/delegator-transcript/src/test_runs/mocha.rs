//! `mocha`, with any reporter that ends with its epilogue: `3 passing`, `2 pending`, `1 failing`, then the failures,
//! each a title over one or more lines that ends with a colon.

use super::figures::leading;
use super::{Output, Reading};

/// Suites a title is looked for in; deeper ones are not a title.
const DEEPEST: usize = 16;

pub(super) fn read(output: &Output<'_>) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut place = Place::Before;
    let mut title: Vec<&str> = Vec::new();
    for line in output.lines() {
        let words = line.trim();
        if let Some(count) = passing(line) {
            reading.add(count, 0, 0);
            place = Place::Figures;
        } else if place == Place::Figures {
            match leading(words) {
                Some((count, " pending")) => reading.add(0, 0, count),
                Some((count, " failing")) => {
                    reading.add(0, count, 0);
                    place = Place::Failures;
                }
                _ if words.is_empty() => {}
                _ => place = Place::After,
            }
        } else if place == Place::Failures {
            let numbered = leading(words).and_then(|(_, rest)| rest.strip_prefix(") "));
            let begins = numbered.filter(|_| line.starts_with("  ") && !line.starts_with("     "));
            match begins {
                Some(first) => title = vec![first],
                None if !title.is_empty() && line.starts_with("       ") => title.push(words),
                None => title.clear(),
            }
            if let Some(last) =
                title.last_mut().and_then(|last| last.strip_suffix(':').map(|end| (end, last)))
            {
                *last.1 = last.0;
                reading.failed_tests.add(&title.join(" "));
                title.clear();
            } else if title.len() > DEEPEST {
                title.clear();
            }
        }
    }
    (place != Place::Before).then_some(reading)
}

#[derive(PartialEq)]
enum Place {
    Before,
    Figures,
    Failures,
    After,
}

/// `  3 passing (6ms)`
fn passing(line: &str) -> Option<u64> {
    let (count, rest) = leading(line.strip_prefix("  ")?.trim_start())?;
    let time = rest.strip_prefix(" passing")?.trim();
    (time.is_empty() || (time.starts_with('(') && time.ends_with(')'))).then_some(count)
}
