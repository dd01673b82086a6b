//! What is kept of a run when it is over: the report, the tails, and how it was ended.

use delegator_domain::redact::Redactor;
use delegator_registry::Tokens;
use delegator_supervisor::run::{RunResult, StreamSummary};
use delegator_supervisor::verdict::RefusedCalls;
use delegator_transcript::Report;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check_record::CheckRecord;
use super::evidence::{Evidence, EvidenceAndFindings, Finding};
use crate::submit::launch::Limits;

/// The content of `report.json`. Redacted throughout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The fold of the agent's events.
    pub report: Value,
    pub last_events: Value,
    pub last_output: String,
    pub last_stderr: String,
    pub stdout: StreamRecord,
    pub stderr: StreamRecord,
    pub warnings: Vec<String>,
    #[serde(default)]
    pub refused: RefusedCalls,
    /// What was sent to end it, in order; empty when it ended by itself.
    pub signals: Vec<String>,
    pub survivors: Vec<i32>,
    /// What it had left behind; records of earlier versions do not say.
    #[serde(default)]
    pub swept: SweptProcesses,
    pub elapsed_ms: u64,
    pub quiet_ms: u64,
    /// What it was allowed; records of earlier versions do not say.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// What became of the check, if one was begun.
    #[serde(default)]
    pub check: Option<CheckRecord>,
    /// What the files themselves say; records of earlier versions do not tell, nor do those of tasks that never ran.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// Processes that were still there when the agent had ended, and were ended after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptProcesses {
    pub processes: usize,
    /// Whether any of them needed SIGKILL.
    pub killed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    pub received: u64,
    pub stored: u64,
    pub truncated: bool,
}

impl From<&StreamSummary> for StreamRecord {
    fn from(summary: &StreamSummary) -> Self {
        StreamRecord { received: summary.received, stored: summary.stored, truncated: summary.truncated }
    }
}

impl Record {
    /// Adds what was seen, redacted: a file's name, or a commit's first line, may be anything.
    pub(crate) fn add_evidence(&mut self, observed: EvidenceAndFindings, redactor: &Redactor) {
        let clean = serde_json::to_string(&observed)
            .ok()
            .and_then(|text| serde_json::from_str(&redactor.redact_str(&text)).ok());
        (self.evidence, self.findings) = clean.unwrap_or_default();
    }

    pub(crate) fn of(ended: &RunResult, limits: Limits) -> Record {
        let milliseconds =
            |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Record {
            report: serde_json::from_str(&ended.report_json).unwrap_or_default(),
            last_events: serde_json::to_value(&ended.partial.last_events).unwrap_or_default(),
            last_output: ended.partial.last_output.clone(),
            last_stderr: ended.partial.last_stderr.clone(),
            stdout: (&ended.stdout).into(),
            stderr: (&ended.stderr).into(),
            warnings: ended.warnings.clone(),
            refused: ended.refused.clone(),
            signals: ended.signals.iter().map(|signal| signal.name().to_owned()).collect(),
            survivors: ended.sweep.survivors.iter().map(|survivor| survivor.pid).collect(),
            swept: SweptProcesses { processes: ended.sweep.ended, killed: ended.sweep.killed },
            elapsed_ms: milliseconds(ended.elapsed),
            quiet_ms: milliseconds(ended.quiet),
            limits: Some(limits),
            check: None,
            evidence: None,
            findings: Vec::new(),
        }
    }
}

/// What the run itself used, if its agent told.
pub(crate) fn tokens(report: &Report) -> Option<Tokens> {
    let own = report.usage?.own;
    Some(Tokens {
        input: own.input_tokens,
        cached_input: own.cached_input_tokens,
        output: own.output_tokens,
        reasoning_output: own.reasoning_output_tokens.unwrap_or(0),
    })
}
