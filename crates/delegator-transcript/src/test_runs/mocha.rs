//! Parses `mocha` with any reporter that prints the epilogue: `3 passing`, `2 pending`, `1 failing`, then the
//! failures, each with a title of one or more lines that ends with a colon.

use super::figures::{leading_number, numbered};
use super::results::{Output, TestCounts};

/// Lines of a title; longer ones are not a title.
const MAX_TITLE_DEPTH: usize = 16;

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut section = Section::Before;
    let mut title: Vec<&str> = Vec::new();
    for line in output.lines() {
        let text = line.trim();
        if let Some(count) = passing(line) {
            counts.add(count, 0, 0);
            section = Section::Figures;
        } else if section == Section::Figures {
            match leading_number(text) {
                Some((count, " pending")) => counts.add(0, 0, count),
                Some((count, " failing")) => {
                    counts.add(0, count, 0);
                    section = Section::Failures;
                }
                _ if text.is_empty() => {}
                _ => section = Section::After,
            }
        } else if section == Section::Failures {
            let begins = numbered(text).filter(|_| line.starts_with("  ") && !line.starts_with("     "));
            match begins {
                Some(first) => title = vec![first],
                None if !title.is_empty() && line.starts_with("       ") => title.push(text),
                None => title.clear(),
            }
            if let Some(name) = title.join(" ").strip_suffix(':') {
                counts.failed_tests.add(name);
                title.clear();
            } else if title.len() > MAX_TITLE_DEPTH {
                title.clear();
            }
        }
    }
    (section != Section::Before).then_some(counts)
}

#[derive(PartialEq)]
enum Section {
    Before,
    Figures,
    Failures,
    After,
}

/// `  3 passing (6ms)`
fn passing(line: &str) -> Option<u64> {
    let (count, rest) = leading_number(line.strip_prefix("  ")?.trim_start())?;
    let time = rest.strip_prefix(" passing")?.trim();
    (time.is_empty() || (time.starts_with('(') && time.ends_with(')'))).then_some(count)
}
