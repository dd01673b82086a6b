//! Parses `rspec`: `7 examples, 2 failures, 2 pending`, and the rerun command of each failed example, with
//! its name.

use super::results::{Figures, Output, RunCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    for line in output.lines() {
        if let Some((total, failed, skipped, errors)) = figures(line) {
            counts.add_total(total, failed, skipped);
            counts.add(0, errors, 0);
        } else if let Some(example) = line.strip_prefix("rspec ") {
            counts.failed_tests.add(example.split_once(" # ").map_or(example, |(_, name)| name));
        } else if let Some(file) = line.strip_prefix("An error occurred while loading ") {
            counts.failed_tests.add(file.trim_end_matches('.'));
        }
    }
    Some(counts)
}

fn figures(line: &str) -> Option<(u64, u64, u64, u64)> {
    let figures = Figures::counted(line, ',')?;
    let (total, failed) = (figures.find(&["example", "examples"])?, figures.find(&["failure", "failures"])?);
    let errors = ["error occurred outside of examples", "errors occurred outside of examples"];
    Some((total, failed, figures.sum(&["pending"]), figures.sum(&errors)))
}
