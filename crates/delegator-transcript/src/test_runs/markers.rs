//! Texts without which a runner cannot have told anything: found, all at once, before anything is unescaped.
//!
//! Summaries may be coloured, so a marker lies between two colours; tabs may stand escaped.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::Runner;

const MARKERS: [(&str, &[Runner]); 31] = [
    ("test result: ", &[Runner::Cargo]),
    ("tests run: ", &[Runner::Nextest]),
    ("test run: ", &[Runner::Nextest]),
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
    (" tests successful", &[Runner::Junit]),
    ("OK (", &[Runner::Junit, Runner::Phpunit]),
    ("Tests run:", &[Runner::Maven, Runner::Junit]),
    (" completed, ", &[Runner::Gradle]),
    (" PASSED", &[Runner::Gradle]),
    ("% tests passed", &[Runner::Ctest]),
    (" example", &[Runner::Rspec]),
    ("otal tests: ", &[Runner::Dotnet]),
    ("otal: ", &[Runner::Dotnet]),
];

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let texts = MARKERS.map(|(text, _)| text);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(texts).ok()
});

/// The runners that may have printed a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted(u32);

impl Wanted {
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn contains(self, runner: Runner) -> bool {
        self.0 & 1 << runner as u32 != 0
    }

    pub(super) fn merge(&mut self, other: Wanted) {
        self.0 |= other.0;
    }
}

pub(super) fn found_in(text: &str) -> Wanted {
    let Some(search) = SEARCH.as_ref() else { return Wanted::default() };
    let mut wanted = Wanted::default();
    for found in search.find_iter(text) {
        for runner in MARKERS[found.pattern().as_usize()].1 {
            wanted.0 |= 1 << *runner as u32;
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runner_has_a_marker_and_the_search_is_built() {
        for (runner, _) in Runner::ALL {
            let (text, _) = MARKERS.iter().find(|(_, runners)| runners.contains(&runner)).unwrap();
            assert!(found_in(&format!("x {text}y")).contains(runner), "{runner:?}");
        }
        assert!(found_in("nothing of the kind").is_empty());
    }
}
