//! The tests that an agent or the verify command ran.

use delegator_transcript::TestReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::data::files;
use crate::output::documents::document::known_facts;

/// Flags are included only if they are set.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TestResults {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub failed_tests: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_tests_not_listed_count: Option<u64>,
    /// Some tests ran without being counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_incomplete: bool,
    /// A test command failed although none of its tests did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended_badly: bool,
}

impl TestResults {
    /// `tests: 47 passed, 1 failed, 2 skipped`, and the names of the failed tests.
    pub fn facts(&self) -> Vec<(String, String)> {
        let TestResults { passed, failed, skipped, .. } = self;
        let mut counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
        if self.is_incomplete {
            counts.push_str("; the count is incomplete");
        }
        if self.has_ended_badly {
            counts.push_str("; a test command failed although none of its tests did");
        }
        known_facts([("tests", Some(counts)), ("failed tests", files::joined(&self.failed_tests))])
    }

    /// `None` if no test was counted: uncounted tests are not zero tests.
    pub fn of(tests: &TestReport) -> Option<TestResults> {
        ((tests.passed, tests.failed, tests.skipped) != (0, 0, 0)).then(|| TestResults {
            passed: tests.passed,
            failed: tests.failed,
            skipped: tests.skipped,
            failed_tests: tests.failed_tests.clone(),
            failed_tests_not_listed_count: Some(tests.failed_tests_not_listed).filter(|count| *count > 0),
            is_incomplete: tests.incomplete,
            has_ended_badly: tests.ended_badly,
        })
    }
}
