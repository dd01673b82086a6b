//! `dotnet test` in all its forms: a line for each assembly (`Passed!  - Failed: 0, Passed: 3, …`), the older block
//! (`Total tests: 8` and what follows), the terminal logger's `Test summary: total: 3, …`, and the testing platform's
//! block after `Test run summary:`.
//!
//! The terminal logger sums up what the assemblies' lines tell too: where it is there, it alone counts.

use super::figures::{figure, named};
use super::{Output, Reading};

pub(super) fn read(output: &Output<'_>) -> Option<Reading> {
    let (mut lines, mut summary) = (Reading::default(), Reading::default());
    let (mut has_lines, mut has_summary) = (false, false);
    let mut names = Reading::default();
    let mut block: Option<Block> = None;
    let mut is_name_next = false;
    for line in output.lines() {
        let words = line.trim();
        if std::mem::take(&mut is_name_next) {
            names.failed_tests.add(words.split(" (").next().unwrap_or(words));
        }
        is_name_next = words.ends_with("error TESTERROR:");
        if let Some(open) = &mut block
            && !open.take(words)
        {
            has_lines |= block.take().is_some_and(|block| block.add_to(&mut lines));
        }
        if let Some(figures) = words.strip_prefix("Test summary: ") {
            has_summary |= add(&mut summary, &named(figures, ',', ':'), "succeeded");
        } else if let Some((_, figures)) = words.split_once("!  - ").filter(|(word, _)| is_verdict(word)) {
            has_lines |= add(&mut lines, &named(figures, ',', ':'), "passed");
        } else if words.starts_with("Test run summary:") {
            block = Some(Block::default());
        } else if let Some(figures) = words.strip_prefix("Total tests:") {
            if figures.contains("Passed:") {
                has_lines |= add(&mut lines, &named(&format!("total:{figures}"), '.', ':'), "passed");
            } else {
                block = Some(Block(named(&format!("total:{figures}"), ',', ':')));
            }
        } else if let Some(name) = failed_test(line) {
            names.failed_tests.add(name);
        }
    }
    has_lines |= block.is_some_and(|block| block.add_to(&mut lines));
    let mut reading = if has_summary { summary } else { lines };
    reading.failed_tests = names.failed_tests;
    reading.is_partial |= !has_summary && (output.is_cut || output.may_be_shortened);
    (has_summary || has_lines).then_some(reading)
}

fn is_verdict(word: &str) -> bool {
    matches!(word, "Passed" | "Failed" | "Skipped")
}

fn add(reading: &mut Reading, figures: &[(String, u64)], passed: &str) -> bool {
    let of = |name: &str| figure(figures, name);
    let Some(total) = of("total") else { return false };
    let [passed, failed, skipped] = [passed, "failed", "skipped"].map(|name| of(name).unwrap_or(0));
    reading.add(passed, failed, skipped);
    // Figures of zero are left out, and others may be cut off.
    reading.is_partial |= [passed, failed, skipped].into_iter().fold(0, u64::saturating_add) < total;
    true
}

/// One figure a line.
#[derive(Default)]
struct Block(Vec<(String, u64)>);

impl Block {
    /// Whether the line belongs to it.
    fn take(&mut self, line: &str) -> bool {
        let figures = named(line, ',', ':');
        let is_known = |name: &str| matches!(name, "total" | "passed" | "succeeded" | "failed" | "skipped");
        let is_ours = matches!(figures.as_slice(), [(name, _)] if is_known(name));
        if is_ours {
            self.0.extend(figures);
        }
        // Before the first figure, the assemblies are listed.
        is_ours || self.0.is_empty()
    }

    fn add_to(self, reading: &mut Reading) -> bool {
        let passed = if figure(&self.0, "succeeded").is_some() { "succeeded" } else { "passed" };
        add(reading, &self.0, passed)
    }
}

/// `  Failed Shop.Tests.Wrong [21 ms]`, `failed Wrong (5ms)`; the terminal logger names it after `error TESTERROR:`
fn failed_test(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("  Failed ") {
        return rest.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")).map(|(name, _)| name);
    }
    let rest = line.strip_prefix("failed ")?;
    rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")).map(|(name, _)| name)
}
