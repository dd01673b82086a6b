//! `phpunit`: `OK (2 tests, 2 assertions)`, or `Tests: 11, Assertions: 7, …` with what was not well.

use super::figures::{figure, leading, named};
use super::{Output, Reading};

pub(super) fn read(output: &Output<'_>) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut is_told = false;
    let mut is_list = false;
    for line in output.lines() {
        if let Some(total) = all_well(line) {
            reading.add(total, 0, 0);
            is_told = true;
        } else if let Some((total, failed, skipped)) = figures(line) {
            reading.add_total(total, failed, skipped);
            is_told = true;
        } else if line.starts_with("There was ") || line.starts_with("There were ") {
            is_list =
                [" error:", " errors:", " failure:", " failures:"].iter().any(|end| line.ends_with(end));
        } else if let Some(name) = numbered(line).filter(|_| is_list) {
            reading.failed_tests.add(name);
        }
    }
    is_told.then_some(reading)
}

/// `1) BadTest::testThrows`
fn numbered(line: &str) -> Option<&str> {
    let (_, rest) = leading(line)?;
    rest.strip_prefix(") ").filter(|name| name.contains("::"))
}

fn all_well(line: &str) -> Option<u64> {
    let (total, rest) = leading(line.strip_prefix("OK (")?)?;
    let is_ours = rest.starts_with(" test") && rest.contains(" assertion");
    is_ours.then_some(total)
}

fn figures(line: &str) -> Option<(u64, u64, u64)> {
    line.strip_prefix("Tests: ")?;
    let figures = named(line, ',', ':');
    let of = |name: &str| figure(&figures, name);
    of("assertions")?;
    let sum = |names: [&str; 2]| names.iter().filter_map(|name| of(name)).fold(0, u64::saturating_add);
    Some((of("tests")?, sum(["errors", "failures"]), sum(["skipped", "incomplete"])))
}
