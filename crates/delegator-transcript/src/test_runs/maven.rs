//! Parses Maven with surefire or failsafe: `Tests run: …` once per class, with a time, and once per module,
//! without. Only the module lines are summed. If the output ends before the line of a module, its class lines
//! are used and the counts are partial.

use super::figures::Figures;
use super::results::{Output, TestCounts};

/// Headings of the lists before a module's sum, in new and old versions.
const LISTS: [&str; 4] = ["Failures:", "Errors:", "Failed tests:", "Tests in error:"];

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let (mut modules, mut classes) = (TestCounts::default(), TestCounts::default());
    let (mut has_summary, mut classes_open) = (false, false);
    let mut is_list = false;
    for line in output.lines() {
        let line = without_level(line);
        if let Some((total, failed, skipped, is_class)) = figures(line) {
            is_list = false;
            if is_class {
                classes_open = true;
                classes.add_total(total, failed, skipped);
            } else {
                (has_summary, classes_open) = (true, false);
                classes = TestCounts::default();
                modules.add_total(total, failed, skipped);
            }
        } else if let Some(heading) = LISTS.iter().find(|heading| line.starts_with(**heading)) {
            is_list = true;
            // The old format starts on the same line.
            failed_test(&mut modules, &line[heading.len()..]);
        } else if is_list && line.starts_with("  ") {
            failed_test(&mut modules, line);
        } else if is_list && !line.trim().is_empty() {
            is_list = false;
        }
    }
    if classes_open {
        modules.add(classes.passed, classes.failed, classes.skipped);
        modules.is_partial = true;
    }
    modules.is_partial |= output.is_truncated || output.may_be_shortened;
    (has_summary || classes_open).then_some(modules)
}

/// `[ERROR] Tests run: 3, …` → `Tests run: 3, …`; the indentation of a list is preserved.
fn without_level(line: &str) -> &str {
    ["[INFO] ", "[ERROR] ", "[WARNING] "].iter().find_map(|level| line.strip_prefix(level)).unwrap_or(line)
}

fn figures(line: &str) -> Option<(u64, u64, u64, bool)> {
    let rest = line.strip_prefix("Tests run:")?;
    let figures = Figures::named(line, ',', ':');
    let get = |name: &str| figures.find(&[name]);
    let failed = get("failures")?.saturating_add(get("errors")?);
    Some((get("tests run")?, failed, get("skipped").unwrap_or(0), rest.contains("Time elapsed")))
}

/// `  BadTest.wrong:8 expected: <1> but was: <2>`, in old versions `  wrong(shop.BadTest): expected…`
fn failed_test(counts: &mut TestCounts, line: &str) {
    // Further lines of a message are indented more.
    if line.starts_with("    ") {
        return;
    }
    let name = line.trim();
    let end = name.find([':', ' ']).unwrap_or(name.len());
    let name = &name[..end];
    if name.contains(['.', '(']) {
        counts.failed_tests.add(name);
    }
}
