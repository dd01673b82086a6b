//! Parses JUnit's own runners: the platform's console launcher (`[ 3 tests successful ]`) and JUnit 4's text
//! runner (`OK (2 tests)`).

use super::figures::{Figures, leading_number, numbered};
use super::results::{Output, TestCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut has_summary = false;
    let mut test: Option<&str> = None;
    for line in output.lines() {
        if let Some((count, word)) = parse_boxed(line) {
            match word {
                "tests successful" => counts.add(count, 0, 0),
                "tests failed" => counts.add(0, count, 0),
                "tests skipped" | "tests aborted" => counts.add(0, 0, count),
                _ => {}
            }
            has_summary |= word == "tests successful";
        } else if let Some((total, failed)) = parse_junit4(line) {
            counts.add_total(total, failed, 0);
            has_summary = true;
        } else if line.trim_start().starts_with("MethodSource [") {
            test.take().into_iter().for_each(|name| counts.failed_tests.add(name));
        } else if let Some(name) = numbered(line).filter(|name| name.ends_with(')') && !name.contains(' ')) {
            // `1) wrong(shop.BadTest)`
            counts.failed_tests.add(name);
        } else {
            test = line.strip_prefix("  ").filter(|name| !name.starts_with(' '));
        }
    }
    has_summary.then_some(counts)
}

/// `[         3 tests successful      ]`
fn parse_boxed(line: &str) -> Option<(u64, &str)> {
    let inside = line.strip_prefix('[')?.strip_suffix(']')?;
    let (count, word) = leading_number(inside.trim())?;
    Some((count, word.trim()))
}

/// `OK (2 tests)`, `Tests run: 2,  Failures: 1`
fn parse_junit4(line: &str) -> Option<(u64, u64)> {
    if let Some(inside) = line.strip_prefix("OK (").and_then(|rest| rest.strip_suffix(')')) {
        let (count, rest) = leading_number(inside)?;
        return matches!(rest, " test" | " tests").then_some((count, 0));
    }
    let rest = line.strip_prefix("Tests run: ").filter(|rest| !rest.contains("Errors:"))?;
    let (total, rest) = leading_number(rest)?;
    Some((total, Figures::named(rest, ',', ':').find(&["failures"])?))
}
