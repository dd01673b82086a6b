//! The verification of a task's work in our JSON and in documents. It is our own result, separate from the
//! agent's report.

use std::borrow::Cow;

use delegator_domain::task::Verification;
use delegator_engine::VerifyCommand;
use delegator_transcript::TestReport;

use crate::error::{AppError, ErrorCode};
use crate::output::data::files;
use crate::output::prelude::*;

const TAIL_BYTES: usize = 4 << 10;
const MAX_TAIL_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VerificationData {
    #[schemars(extend("enum" = ["verified", "verify_failed", "not_run"]))]
    pub status: Cow<'static, str>,
    /// As it was given: a command line, or a program and its arguments.
    #[schemars(with = "Value")]
    pub command: VerifyCommand,
    #[serde(flatten)]
    pub run: Option<VerifyRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A run of the verify command.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VerifyRun {
    #[schemars(extend("x-optional" = true))]
    pub exit_code: Option<i32>,
    pub is_sandboxed: bool,
    pub duration_ms: u64,
    pub output_tail: String,
    pub output_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_results: Option<TestResults>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The verification of an ended task; `None` if none was requested. `budget`: the output size that the caller
/// requested.
pub fn of_task(task: &Task, record: Option<&Record>, budget: Option<usize>) -> Option<VerificationData> {
    let command = verify_command(task)?;
    let Some(check) = record.and_then(|record| record.check.as_ref()) else {
        let outcome = task.ended.as_ref().map(|ended| Verification::not_run(&ended.end))?;
        let (status, reason) = (outcome.status().into(), outcome.reason().map(Cow::Borrowed));
        return Some(VerificationData { status, command, run: None, reason, detail: None });
    };
    Some(VerificationData {
        status: check.outcome.status().into(),
        command,
        run: Some(VerifyRun {
            exit_code: check.exit_code,
            is_sandboxed: check.is_sandboxed,
            duration_ms: check.duration_ms,
            output_tail: tail(&check.last_output, budget).to_owned(),
            output_bytes: check.output.received,
            test_results: check.tests.as_ref().and_then(TestResults::of),
            signal: check.signal,
        }),
        reason: check.outcome.reason().map(Cow::Borrowed),
        detail: check.detail.clone(),
    })
}

fn verify_command(task: &Task) -> Option<VerifyCommand> {
    VerifyCommand::deserialize(task.input.get("verify")?).ok()
}

pub fn warnings(task: &Task, record: Option<&Record>) -> Vec<Warning> {
    let failed = record
        .and_then(|record| record.check.as_ref())
        .filter(|check| verify_command(task).is_some() && check.outcome != Verification::Verified);
    failed.map(|check| Warning::new(WarningCode::NotVerified, check.describe())).into_iter().collect()
}

pub fn failure(task: &Task, record: Option<&Record>) -> Option<AppError> {
    let verification = of_task(task, record, None).filter(|value| value.status != "verified")?;
    let check = record.and_then(|record| record.check.as_ref());
    let problem = check.map_or_else(|| "not verified".to_owned(), delegator_engine::CheckRecord::describe);
    let error = AppError::new(ErrorCode::AgentFailed, format!("The agent completed its task; {problem}."));
    Some(
        error
            .context("failure_kind", verification.status.as_ref())
            .context("verification", json!(verification)),
    )
}

impl VerificationData {
    pub fn has_failed(&self) -> bool {
        self.status == Verification::Refuted.status()
    }

    /// Adds the verification to a document; unless verified, with the output of the verify command.
    pub fn append_to(&self, document: Document) -> Document {
        let exit_code = self.run.as_ref().and_then(|run| run.exit_code);
        let mut facts = known_facts([
            ("verification", Some(self.status.to_string())),
            ("reason", self.reason.as_ref().map(ToString::to_string)),
            ("detail", self.detail.clone()),
            ("exit code", exit_code.map(|code| code.to_string())),
        ]);
        let tests = self.run.as_ref().and_then(|run| run.test_results.as_ref());
        facts.extend(tests.into_iter().flat_map(TestResults::facts));
        let output = self.run.as_ref().map(|run| run.output_tail.as_str());
        let output = output.filter(|text| !text.is_empty() && self.status != Verification::Verified.status());
        document
            .block(Block::Facts(facts))
            .with(output, |document, text| document.quote("The last output of the verify command:", text))
    }

    pub fn shrink(&mut self, budget: usize) {
        if let Some(run) = &mut self.run {
            run.output_tail = tail(&run.output_tail, Some(budget)).to_owned();
        }
    }
}

fn tail(text: &str, budget: Option<usize>) -> &str {
    let bytes = budget.unwrap_or(0).clamp(TAIL_BYTES, MAX_TAIL_BYTES);
    delegator_domain::text::end(text, bytes)
}

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
