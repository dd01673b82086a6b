//! Parses the output of JUnit, Maven and Gradle.

use super::results::{Figures, Output, RunCounts, leading_number, numbered};

/// Parses JUnit's own runners: the platform's console launcher (`[ 3 tests successful ]`) and JUnit 4's text
/// runner (`OK (2 tests)`).
pub(super) fn parse_junit(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
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

/// Headings of the lists before a module's sum, in new and old versions.
const LISTS: [&str; 4] = ["Failures:", "Errors:", "Failed tests:", "Tests in error:"];

/// Parses Maven with surefire or failsafe: `Tests run: …` once per class, with a time, and once per module,
/// without. Only the module lines are summed. If the output ends before the line of a module, its class lines
/// are used and the counts are partial.
pub(super) fn parse_maven(output: &Output<'_>) -> Option<RunCounts> {
    let (mut modules, mut classes) = (RunCounts::default(), RunCounts::default());
    let (mut has_summary, mut classes_open) = (false, false);
    let mut is_list = false;
    for line in output.lines() {
        let line = without_level(line);
        if let Some((total, failed, skipped, is_class)) = maven_figures(line) {
            is_list = false;
            if is_class {
                classes_open = true;
                classes.add_total(total, failed, skipped);
            } else {
                (has_summary, classes_open) = (true, false);
                classes = RunCounts::default();
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

fn maven_figures(line: &str) -> Option<(u64, u64, u64, bool)> {
    let rest = line.strip_prefix("Tests run:")?;
    let figures = Figures::named(line, ',', ':');
    let get = |name: &str| figures.find(&[name]);
    let failed = get("failures")?.saturating_add(get("errors")?);
    Some((get("tests run")?, failed, get("skipped").unwrap_or(0), rest.contains("Time elapsed")))
}

/// `  BadTest.wrong:8 expected: <1> but was: <2>`, in old versions `  wrong(shop.BadTest): expected…`
fn failed_test(counts: &mut RunCounts, line: &str) {
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

/// Parses `gradle test`: `6 tests completed, 2 failed, 1 skipped` for each task with failures. A task without
/// failures prints no summary; if the build enables test events (`Class > test PASSED`), these are counted.
pub(super) fn parse_gradle(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    // Events since the last task with a summary.
    let mut events = RunCounts::default();
    let mut has_summary = false;
    for line in output.lines() {
        if let Some((total, failed, skipped)) = gradle_figures(line) {
            counts.add_total(total, failed, skipped);
            (events.passed, events.failed, events.skipped) = (0, 0, 0);
            has_summary = true;
        } else if let Some((name, verdict)) = event(line) {
            match verdict {
                "PASSED" => {
                    events.add(1, 0, 0);
                    counts.add_passed_test(name);
                }
                "FAILED" => {
                    events.add(0, 1, 0);
                    counts.failed_tests.add(name);
                }
                _ => events.add(0, 0, 1),
            }
        }
    }
    let has_events = !events.counts_nothing();
    // Some builds print events of skipped and failed tests, but not of passed ones.
    counts.is_partial |= has_events && events.passed == 0;
    counts.add(events.passed, events.failed, events.skipped);
    counts.is_partial |= output.is_truncated || (output.may_be_shortened && !has_summary);
    (has_summary || has_events).then_some(counts)
}

fn gradle_figures(line: &str) -> Option<(u64, u64, u64)> {
    let figures = Figures::counted(line, ',')?;
    let total = figures.find(&["tests completed", "test completed"])?;
    Some((total, figures.find(&["failed"])?, figures.sum(&["skipped"])))
}

/// `shop.BadTest > wrong FAILED`, but not `> Task :test FAILED`.
fn event(line: &str) -> Option<(&str, &str)> {
    let (name, verdict) = line.rsplit_once(' ')?;
    let is_event = matches!(verdict, "PASSED" | "FAILED" | "SKIPPED");
    (is_event && name.contains(" > ") && !name.starts_with([' ', '>', '\t'])).then_some((name, verdict))
}
