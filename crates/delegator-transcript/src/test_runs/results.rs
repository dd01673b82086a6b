//! The results of a test run, the output from which they are parsed, and the counts in it. Memory is bounded:
//! only some names of tests are stored.

use std::borrow::Cow;

use delegator_domain::text::beginning;

pub(crate) const MAX_NAMES: usize = 100;
/// Names of passed tests that are stored; they can clear earlier failures.
const MAX_PASSED_NAMES: usize = 1_000;
const MAX_NAME_BYTES: usize = 300;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) failed_tests: TestNames,
    /// Some of the passed tests, if the runner prints their names.
    pub(crate) passed_tests: Vec<String>,
    /// Some tests ran without being counted.
    pub(crate) is_partial: bool,
}

impl RunCounts {
    pub(super) fn add_passed_test(&mut self, name: &str) {
        if self.passed_tests.len() < MAX_PASSED_NAMES {
            self.passed_tests.push(beginning(name, MAX_NAME_BYTES).to_owned());
        }
    }

    /// Adds counts of which passed is the remainder.
    pub(super) fn add_total(&mut self, total: u64, failed: u64, skipped: u64) {
        let passed = total.saturating_sub(failed).saturating_sub(skipped);
        self.add(passed, failed, skipped);
    }

    pub(crate) fn add(&mut self, passed: u64, failed: u64, skipped: u64) {
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    pub(crate) fn counts_nothing(&self) -> bool {
        (self.passed, self.failed, self.skipped) == (0, 0, 0)
    }
}

/// Names of tests without duplicates; the first [`MAX_NAMES`] are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestNames(pub(crate) Vec<String>);

impl TestNames {
    pub(super) fn add(&mut self, name: &str) {
        let name = beginning(name.trim(), MAX_NAME_BYTES);
        if self.0.len() < MAX_NAMES && !name.is_empty() && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }
}

/// The output of a command, without control sequences.
#[derive(Debug)]
pub(super) struct Output<'t> {
    pub(super) text: Cow<'t, str>,
    /// The output passed through `tail` or `head`.
    pub(super) may_be_shortened: bool,
    /// The middle is missing because the line was over-long.
    pub(super) is_truncated: bool,
}

impl Output<'_> {
    /// Lines as a terminal finally shows them: text before a carriage return is overwritten.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.split('\n').map(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            memchr::memrchr(b'\r', line.as_bytes()).map_or(line, |at| &line[at + 1..])
        })
    }
}

pub(super) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The text after `N) `.
pub(super) fn numbered(text: &str) -> Option<&str> {
    leading_number(text)?.1.strip_prefix(") ")
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Figures(pub(super) Vec<(String, u64)>);

impl Figures {
    /// Parses `N words` parts between separators; `None` if a part has another form.
    pub(super) fn counted(text: &str, separator: char) -> Option<Self> {
        let piece = |piece: &str| {
            let (count, name) = leading_number(piece.trim())?;
            name.starts_with(' ').then(|| (name.trim().to_owned(), count))
        };
        text.split(separator).map(piece).collect::<Option<_>>().map(Self)
    }

    /// Parses `name: N` (or `name=N`) parts between separators, names in lower case; other parts are skipped.
    pub(super) fn named(text: &str, separator: char, mark: char) -> Self {
        let piece = |piece: &str| {
            let (name, count) = piece.split_once(mark)?;
            let (count, rest) = leading_number(count.trim())?;
            let is_whole = rest.trim_end_matches(['.', ')']).is_empty();
            is_whole.then(|| (name.trim().to_ascii_lowercase(), count))
        };
        Self(text.split(separator).filter_map(piece).collect())
    }

    fn of<'f>(&'f self, names: &'f [&str]) -> impl Iterator<Item = u64> + 'f {
        self.0.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, count)| *count)
    }

    pub(super) fn find(&self, names: &[&str]) -> Option<u64> {
        self.of(names).next()
    }

    pub(super) fn sum(&self, names: &[&str]) -> u64 {
        self.of(names).fold(0, u64::saturating_add)
    }

    pub(super) fn all(&self, is_allowed: impl Fn(&str) -> bool) -> bool {
        self.0.iter().all(|(name, _)| is_allowed(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_or_rejected() {
        let figures = |list: &[(&str, u64)]| Figures(list.iter().map(|(n, c)| ((*n).into(), *c)).collect());
        assert_eq!(
            Figures::counted("3 passed, 1 failed", ','),
            Some(figures(&[("passed", 3), ("failed", 1)]))
        );
        assert_eq!(Figures::counted("3 passed, and more", ','), None);
        assert_eq!(Figures::counted("99999999999999999999999 passed", ','), None);
        assert_eq!(
            Figures::named("Total: 4, Failed:  1, Time: 3 s", ',', ':'),
            figures(&[("total", 4), ("failed", 1)])
        );
        assert_eq!(Figures::named("failures=3, errors=1)", ',', '=').find(&["errors"]), Some(1));
    }
}
