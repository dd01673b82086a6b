//! The test runners whose results are recognised.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    Cargo,
    Nextest,
    Pytest,
    Unittest,
    Jest,
    Vitest,
    Mocha,
    Go,
    Gotestsum,
    /// `node --test`
    Node,
    /// JUnit's own console runners.
    Junit,
    Maven,
    Gradle,
    Rspec,
    Phpunit,
    Ctest,
    Dotnet,
}

impl Runner {
    /// Whether both runners run the same tests.
    pub(crate) fn runs_same_tests_as(self, other: Runner) -> bool {
        let family = |runner: Runner| match runner {
            Runner::Nextest => Runner::Cargo,
            Runner::Gotestsum => Runner::Go,
            runner => runner,
        };
        family(self) == family(other)
    }

    /// Whether the output of the other runner contains what this one would print.
    pub(super) fn is_part_of(self, other: Runner) -> bool {
        matches!(
            (self, other),
            (Runner::Go, Runner::Gotestsum) | (Runner::Junit, Runner::Maven | Runner::Phpunit)
        )
    }
}
