//! Finds out, in one search, which runners can have printed a text, before its escapes are resolved.
//!
//! Each marker occurs in every result of its runner. Summaries may be coloured, so a marker contains no
//! colour change; tabs may be escaped. The search looks for the first four bytes of the markers, so they
//! begin where these are rare: `test` is on every line of some runners.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, packed};

use super::Runner;

const MARKERS: [(&str, &[Runner]); 30] = [
    ("t result: ", &[Runner::Cargo]),
    ("run: ", &[Runner::Nextest]),
    (" passed", &[Runner::Pytest]),
    (" failed", &[Runner::Pytest]),
    (" skipped", &[Runner::Pytest]),
    ("short test summary info", &[Runner::Pytest]),
    ("Ran ", &[Runner::Unittest]),
    ("Tests: ", &[Runner::Jest, Runner::Phpunit]),
    (" assertion", &[Runner::Phpunit]),
    ("   Tests ", &[Runner::Vitest]),
    (" passing", &[Runner::Mocha]),
    ("--- PASS: ", &[Runner::Go]),
    ("--- FAIL: ", &[Runner::Go, Runner::Gotestsum]),
    ("ok  \t", &[Runner::Go]),
    ("ok  \\t", &[Runner::Go]),
    ("FAIL\t", &[Runner::Go]),
    ("FAIL\\t", &[Runner::Go]),
    ("Action\":", &[Runner::Go]),
    ("Action\\\":", &[Runner::Go]),
    ("DONE ", &[Runner::Gotestsum]),
    ("cancelled ", &[Runner::Node]),
    ("s successful", &[Runner::Junit]),
    ("OK (", &[Runner::Junit, Runner::Phpunit]),
    ("Tests run:", &[Runner::Maven, Runner::Junit]),
    (" completed, ", &[Runner::Gradle]),
    (" PASSED", &[Runner::Gradle]),
    ("% tests passed", &[Runner::Ctest]),
    (" example", &[Runner::Rspec]),
    ("otal tests: ", &[Runner::Dotnet]),
    ("otal: ", &[Runner::Dotnet]),
];

/// The packed search uses SIMD where the processor supports it.
enum Search {
    Packed(packed::Searcher),
    Plain(AhoCorasick),
}

static SEARCH: LazyLock<Option<Search>> = LazyLock::new(|| {
    let texts = MARKERS.map(|(text, _)| text);
    let plain = || AhoCorasick::new(texts).ok().map(Search::Plain);
    packed::Searcher::new(texts).map(Search::Packed).or_else(plain)
});

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunnerSet(u32);

impl RunnerSet {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn contains(self, runner: Runner) -> bool {
        self.0 & 1 << runner as u32 != 0
    }

    pub(super) fn merge(&mut self, other: RunnerSet) {
        self.0 |= other.0;
    }
}

pub(super) fn find_runners(text: &str) -> RunnerSet {
    let mut runners = RunnerSet::default();
    let mut add_marker = |marker: usize| {
        for runner in MARKERS.get(marker).map_or(&[] as &[Runner], |(_, runners)| runners) {
            runners.0 |= 1 << *runner as u32;
        }
    };
    match SEARCH.as_ref() {
        Some(Search::Packed(search)) => {
            search.find_iter(text).for_each(|marker| add_marker(marker.pattern().as_usize()));
        }
        Some(Search::Plain(search)) => {
            search.find_iter(text).for_each(|marker| add_marker(marker.pattern().as_usize()));
        }
        None => {}
    }
    runners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runner_has_a_marker_and_the_search_is_built() {
        for (runner, _) in crate::test_runs::PARSERS {
            let (text, _) = MARKERS.iter().find(|(_, runners)| runners.contains(&runner)).unwrap();
            assert!(find_runners(&format!("x {text}y")).contains(runner), "{runner:?}");
        }
        assert!(find_runners("nothing of the kind").is_empty());
    }
}
