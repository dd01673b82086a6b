//! Assembles and redacts the result of a run.

use std::io;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{ExitStatus, FailureKind, TaskEnd};
use delegator_transcript::{AgentTexts, RecentLine, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::ports::{RunResult, RunSpec, StreamSummary};
use super::state::Run;
use crate::agent::NO_SANDBOX_HELPER;
use crate::conversation::Control;
use crate::process::SweepReport;
use crate::verdict::{EndedRun, RefusedCalls, local_time, verdict};

pub(super) const LAST_BYTES: usize = 64 << 10;

impl Run<'_> {
    /// Also returns the specification, for a verification that follows.
    pub(super) fn finish(mut self, sweep_result: io::Result<SweepReport>) -> (RunResult, RunSpec) {
        self.streams.stderr.finish();
        if !self.progress.prompt_reported {
            self.context.ports.on_stdin_delivered();
        }
        let elapsed = self.ended_at.unwrap_or_default();
        self.record_budgets(elapsed);
        let (mut report, stdout, last_output) = self.finish_stdout();
        let mut end = self.verdict(&report);
        if end == TaskEnd::Completed {
            self.talk.control(Control::Completed, &self.context, &mut self.ending);
        }
        let spec = &self.context.spec;
        let redact_all = |texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| self.context.redact(text)).collect()
        };
        let digest = &self.streams.stderr.digest;
        let refused = digest.refused_calls();
        let no_helper = digest.no_sandbox_helper.as_ref().map(|_| NO_SANDBOX_HELPER.to_owned());
        let mut warnings: Vec<_> = no_helper.into_iter().chain(self.budgets.warnings()).collect();
        let sweep = sweep_result.unwrap_or_else(|error| {
            warnings.push(format!("could not sweep the processes of the run: {error}"));
            SweepReport::default()
        });
        warnings.extend(survivor_warning(&sweep, ""));
        if self.ending.cause.is_some() || self.process.exit.is_none() {
            let leftovers = spec.leftovers.as_ref();
            warnings.extend(leftovers.and_then(|left| left.remove(report.thread_id.as_deref())));
        }
        let stderr = self.streams.stderr.summary();
        warnings.extend(storage_warning("all of events", &stdout));
        warnings.extend(storage_warning("all of stderr", &stderr));
        let last_stderr = self.streams.stderr.sink.store.tail(LAST_BYTES);
        self.add_agent_texts(&mut report, &mut end, &last_stderr);
        let enclosure = spec.enclosure.as_ref().filter(|_| self.ending.cause.is_none());
        let not_started = enclosure
            .and_then(|enclosure| enclosure.start_failure(self.process.exit, stdout.received, &last_stderr));
        let redacted_report = redacted_report(&spec.redactor, &report, &mut warnings);
        let result = RunResult {
            end: not_started.unwrap_or(end).redacted(&spec.redactor),
            exit: self.process.exit,
            report,
            redacted_report,
            refused: RefusedCalls { last: redact_all(&refused.last), ..refused },
            warnings: redact_all(&warnings),
            last_output,
            last_stderr,
            stdout,
            stderr,
            signals: self.ending.signals,
            sweep,
            elapsed,
            quiet: self.limits.idle_time(elapsed),
            verification: None,
            reported_before_limit: self.talk.salvage.cause().is_some(),
        };
        (result, self.context.spec)
    }

    fn verdict(&self, report: &Report) -> TaskEnd {
        let spec = &self.context.spec;
        verdict(&EndedRun {
            protocol: spec.protocol,
            cause: self.ending.cause.as_ref().or(self.talk.salvage.cause()),
            exit: self.process.exit,
            was_finished: self.ending.finishing.is_some(),
            report,
            stderr: &self.streams.stderr.digest,
            expected_thread: spec.plan.expected_thread.as_deref(),
            ended_at: &local_time(self.context.ports.now_ms(), &spec.environment),
        })
    }

    /// Adds what the agent's own texts say. An agent that gave no reason failed with the error in them.
    fn add_agent_texts(&self, report: &mut Report, end: &mut TaskEnd, stderr: &str) {
        use FailureKind::{AgentError, AgentExit, NoTerminalEvent};
        let exit_code = self.process.exit.and_then(ExitStatus::code);
        let workdir = self.context.spec.fold.workdir.as_deref();
        let texts = AgentTexts { failure: "", stderr, exit_code, workdir };
        report.add_printed_tests(texts);
        let TaskEnd::Failed { kind: kind @ (AgentError | AgentExit | NoTerminalEvent), message, .. } = end
        else {
            return;
        };
        if let Some(failure) = report.add_own_failure(AgentTexts { failure: message, ..texts })
            && *kind != AgentError
        {
            *message = match &failure.kind {
                Some(kind) => format!("{kind}: {}", failure.message),
                None => failure.message.clone(),
            };
        }
    }

    /// Ends the event stream. Returns the report, the sizes of the stored stream and its last bytes.
    fn finish_stdout(&mut self) -> (Report, StreamSummary, String) {
        let Some(events) = &mut self.streams.stdout else {
            return Default::default();
        };
        events.finish();
        let summary = events.sink.store.summary(events.pipe.received);
        (events.summarizer.report(), summary, events.sink.store.tail(LAST_BYTES))
    }
}

/// `of` says of what, unless it is the agent.
pub(super) fn survivor_warning(sweep: &SweepReport, of: &str) -> Option<String> {
    let pids: Vec<String> = sweep.survivors.iter().map(|survivor| survivor.pid.to_string()).collect();
    (!pids.is_empty()).then(|| format!("kill_incomplete: could not kill processes {}{of}", pids.join(", ")))
}

pub(super) fn storage_warning(stream: &str, stored: &StreamSummary) -> Option<String> {
    stored.problem.as_ref().map(|problem| format!("could not store {stream}: {problem}"))
}

pub(super) fn not_started(spec: &RunSpec, problem: &str) -> RunResult {
    let program = spec.plan.program.display();
    let message = format!("could not start {program}: {problem}");
    let end = TaskEnd::failed(FailureKind::SpawnFailed, message);
    RunResult::without_output(end.redacted(&spec.redactor))
}

/// The report for storage. If it cannot be redacted, an empty report, and a warning.
pub fn redacted_report(redactor: &Redactor, report: &Report, warnings: &mut Vec<String>) -> Report {
    let redacted = redact_record(redactor, report).unwrap_or_else(|_| {
        warnings.push("the agent's report is not stored, because it could not be redacted".to_owned());
        Report::default()
    });
    let recent_lines = report.recent_lines.iter().map(|line| redacted_line(redactor, line)).collect();
    Report { recent_lines, ..redacted }
}

/// Masks the secrets in a record. If a secret is also the name of a field, only the values are redacted. An
/// error if it is also a fixed value of the record's format, such as a state.
pub fn redact_record<T: Serialize + DeserializeOwned>(
    redactor: &Redactor,
    record: &T,
) -> serde_json::Result<T> {
    serde_json::from_str(&redactor.redact_str(&serde_json::to_string(record)?)).or_else(|_| {
        let mut value = serde_json::to_value(record)?;
        redact_values(redactor, &mut value);
        serde_json::from_value(value)
    })
}

fn redact_values(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => *text = redactor.redact_str(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_values(redactor, item)),
        Value::Object(object) => object.values_mut().for_each(|item| redact_values(redactor, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// In a truncated line, a possible prefix of a secret at its end is removed as well.
fn redacted_line(redactor: &Redactor, line: &RecentLine) -> RecentLine {
    let mut stream = redactor.stream();
    let mut text = Vec::with_capacity(line.text.len());
    stream.push(line.text.as_bytes(), &mut text);
    if line.bytes <= line.text.len() as u64 {
        stream.finish(&mut text);
    }
    RecentLine { number: line.number, bytes: line.bytes, text: String::from_utf8_lossy(&text).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_cannot_be_redacted_is_not_stored() {
        let report = Report { thread_id: Some("hunter2".to_owned()), ..Report::default() };
        let redact = |secret: &str| {
            let mut warnings = Vec::new();
            let redactor = Redactor::builder().named_secret(secret).build();
            (redacted_report(&redactor, &report, &mut warnings).thread_id, warnings.len())
        };
        assert_eq!(redact("hunter2"), (Some("[REDACTED:env]".to_owned()), 0));
        // The name of a field.
        assert_eq!(redact("commands"), (Some("hunter2".to_owned()), 0));
        // A fixed value.
        assert_eq!(redact("none"), (None, 1));
    }
}
