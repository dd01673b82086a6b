//! Parses `dotnet test` in all its formats: one line per assembly (`Passed!  - Failed: 0, Passed: 3, …`), the
//! older block (`Total tests: 8` and following lines), the terminal logger's `Test summary: total: 3, …`, and
//! the testing platform's block after `Test run summary:`.
//!
//! The terminal logger's summary includes the lines of the assemblies; if it is present, only it counts.

use super::results::{Figures, Output, RunCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<RunCounts> {
    let (mut lines, mut summary) = (RunCounts::default(), RunCounts::default());
    let (mut has_lines, mut has_summary) = (false, false);
    let mut names = RunCounts::default();
    // A block with one count per line.
    let mut block: Option<Figures> = None;
    let mut is_name_next = false;
    for line in output.lines() {
        let text = line.trim();
        if std::mem::take(&mut is_name_next) {
            names.failed_tests.add(text.split(" (").next().unwrap_or(text));
        }
        is_name_next = text.ends_with("error TESTERROR:");
        if let Some(open) = &mut block
            && !continues_block(open, text)
        {
            has_lines |= block.take().is_some_and(|block| add(&mut lines, &block));
        }
        if let Some(figures) = text.strip_prefix("Test summary: ") {
            has_summary |= add(&mut summary, &Figures::named(figures, ',', ':'));
        } else if let Some((_, figures)) = text.split_once("!  - ").filter(|(word, _)| is_verdict(word)) {
            has_lines |= add(&mut lines, &Figures::named(figures, ',', ':'));
        } else if text.starts_with("Test run summary:") {
            block = Some(Figures::default());
        } else if let Some(figures) = text.strip_prefix("Total tests:") {
            if figures.contains("Passed:") {
                has_lines |= add(&mut lines, &Figures::named(&format!("total:{figures}"), '.', ':'));
            } else {
                block = Some(Figures::named(&format!("total:{figures}"), ',', ':'));
            }
        } else if let Some(name) = failed_test(line) {
            names.failed_tests.add(name);
        }
    }
    has_lines |= block.is_some_and(|block| add(&mut lines, &block));
    let mut counts = if has_summary { summary } else { lines };
    counts.failed_tests = names.failed_tests;
    counts.is_partial |= !has_summary && (output.is_truncated || output.may_be_shortened);
    (has_summary || has_lines).then_some(counts)
}

fn is_verdict(word: &str) -> bool {
    matches!(word, "Passed" | "Failed" | "Skipped")
}

fn add(counts: &mut RunCounts, figures: &Figures) -> bool {
    let Some(total) = figures.find(&["total"]) else { return false };
    let [passed, failed, skipped] = [&["succeeded", "passed"][..], &["failed"], &["skipped"]]
        .map(|names| figures.find(names).unwrap_or(0));
    counts.add(passed, failed, skipped);
    // Zero counts are omitted, and other counts may be missing.
    counts.is_partial |= [passed, failed, skipped].into_iter().fold(0, u64::saturating_add) < total;
    true
}

/// Adds a line to a block; returns whether it belongs to it.
fn continues_block(block: &mut Figures, line: &str) -> bool {
    let figures = Figures::named(line, ',', ':');
    let is_known = |name: &str| matches!(name, "total" | "passed" | "succeeded" | "failed" | "skipped");
    let is_count_line = matches!(figures.0.as_slice(), [(name, _)] if is_known(name));
    if is_count_line {
        block.0.extend(figures.0);
    }
    // The assemblies are listed before the first count.
    is_count_line || block.0.is_empty()
}

/// `  Failed Shop.Tests.Wrong [21 ms]`, `failed Wrong (5ms)`; the terminal logger prints the name after
/// `error TESTERROR:`.
fn failed_test(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("  Failed ") {
        return rest.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")).map(|(name, _)| name);
    }
    let rest = line.strip_prefix("failed ")?;
    rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")).map(|(name, _)| name)
}
