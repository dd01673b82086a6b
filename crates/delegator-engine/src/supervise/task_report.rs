//! The record of a finished run, stored as `report.json`. Everything in it is redacted.

use delegator_domain::redact::Redactor;
use delegator_registry::{ChangedLines, TaskDir, TaskFile, Tokens};
use delegator_supervisor::run::{RunResult, StreamSummary, redact_record};
use delegator_supervisor::verdict::RefusedCalls;
use delegator_transcript::Report;
use serde::{Deserialize, Serialize};

use super::check_record::CheckRecord;
use super::evidence::{Evidence, EvidenceAndFindings, Finding};
use crate::error::Result;
use crate::shared::format_version::{FormatVersion, read_record};
use crate::submit::launch_file::{Limits, SkippedAgent};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub version: FormatVersion<1>,
    pub report: Report,
    pub last_output: String,
    pub last_stderr: String,
    pub stdout: StreamSummary,
    pub stderr: StreamSummary,
    pub warnings: Vec<String>,
    /// Agents that came first and could not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_agents: Vec<SkippedAgent>,
    /// Set if the task wants a report when a limit ends it, and one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salvage: Option<Salvage>,
    pub refused: RefusedCalls,
    /// Signals that were sent to end the agent, in order; empty if it exited by itself.
    pub signals: Vec<String>,
    pub survivors: Vec<i32>,
    pub swept: SweptProcesses,
    pub elapsed_ms: u64,
    pub quiet_ms: u64,
    /// `None` for an imported session.
    pub limits: Option<Limits>,
    /// The verify command, if it was started.
    pub check: Option<CheckRecord>,
    /// `None` for a task that never ran.
    pub evidence: Option<Evidence>,
    pub findings: Vec<Finding>,
}

/// How the agent came to report on work that a limit ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Salvage {
    /// It was asked shortly before the limit.
    BeforeLimit,
    /// It was asked in a turn of its own afterwards.
    AfterLimit,
    /// There is no report. The reason is redacted.
    Failed { reason: String },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptProcesses {
    pub processes: usize,
    pub killed: bool,
}

impl Record {
    /// An error if it exists and cannot be read.
    pub(crate) fn read(dir: &TaskDir) -> Result<Option<Record>> {
        read_record(dir, TaskFile::Report)
    }

    /// Adds evidence, redacted: file names and commit subjects may contain secrets.
    pub(crate) fn add_evidence(&mut self, observed: EvidenceAndFindings, redactor: &Redactor) {
        (self.evidence, self.findings) = redact_record(redactor, &observed).unwrap_or_else(|_| {
            self.warnings.push("the evidence is not stored, because it could not be redacted".to_owned());
            EvidenceAndFindings::default()
        });
    }

    pub(crate) fn of(result: &RunResult, limits: Limits) -> Record {
        let milliseconds =
            |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Record {
            report: result.redacted_report.clone(),
            last_output: result.last_output.clone(),
            last_stderr: result.last_stderr.clone(),
            stdout: result.stdout.clone(),
            stderr: result.stderr.clone(),
            warnings: result.warnings.clone(),
            refused: result.refused.clone(),
            signals: result.signals.iter().map(|signal| signal.name().to_owned()).collect(),
            survivors: result.sweep.survivors.iter().map(|survivor| survivor.pid).collect(),
            swept: SweptProcesses { processes: result.sweep.ended, killed: result.sweep.killed },
            elapsed_ms: milliseconds(result.elapsed),
            quiet_ms: milliseconds(result.quiet),
            limits: Some(limits),
            ..Record::default()
        }
    }
}

/// `None` if no line was counted.
pub(crate) fn changed_lines(record: &Record) -> Option<ChangedLines> {
    let lines = record.evidence.as_ref()?.lines;
    Some(ChangedLines { added: lines.added, deleted: lines.deleted })
}

pub fn tokens(report: &Report) -> Option<Tokens> {
    let own = report.usage?.own;
    Some(Tokens {
        input: own.input_tokens,
        cached_input: own.cached_input_tokens,
        output: own.output_tokens,
        reasoning_output: own.reasoning_output_tokens.unwrap_or(0),
    })
}
