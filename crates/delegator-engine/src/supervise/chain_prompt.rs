//! The prompt of a task that follows or reviews another: its own text, then what the other task did, as
//! quoted data. Composed when the task starts, because only then the other task has ended. A report that is
//! missing does not keep a follower from starting.

use std::fmt::Write;

use delegator_domain::task::{State, TaskEnd, TaskId, Verification};
use delegator_registry::{EndRecord, Registry, TaskFile};

use super::quotation::{Keep, append_quotation, shorten};
use super::task_diff::recorded_diff;
use super::task_report::Record;
use crate::error::{EngineError, Result};
use crate::submit::launch_file::Launch;

/// A whole report. The limits of its parts add up to less, so that each part has its place.
const MAX_REPORT_BYTES: usize = 16 * 1024;
const MAX_TITLE_BYTES: usize = 200;
const MAX_SUMMARY_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 8 * 1024;
const MAX_FILES_BYTES: usize = 1536;
const MAX_CHECK_BYTES: usize = 3 * 1024;
const MAX_ERRORS_BYTES: usize = 1536;
/// What a reviewer reads of a diff. It can read the rest in the files.
const MAX_DIFF_BYTES: usize = 256 * 1024;

pub(super) fn complete_prompt(registry: &Registry, id: &TaskId, mut launch: Launch) -> Result<Launch> {
    let parse = |id: Option<&str>| id.and_then(|id| id.parse::<TaskId>().ok());
    let (reviewed, earlier) = (parse(launch.reviews.as_deref()), parse(launch.report_of.as_deref()));
    let predecessor = registry.predecessor(id)?;
    let mut others: Vec<&TaskId> = [&predecessor, &earlier, &reviewed].into_iter().flatten().collect();
    others.dedup();
    for other in others {
        append_report(&mut launch.task, registry, other)?;
    }
    if let Some(reviewed) = reviewed {
        let diff = shorten(&review_diff(registry, &reviewed, &launch), MAX_DIFF_BYTES, Keep::Beginning);
        append_quotation(&mut launch.task, &format!("The changes of task {reviewed}, as a diff."), &diff);
    }
    Ok(launch)
}

fn append_report(prompt: &mut String, registry: &Registry, id: &TaskId) -> Result<()> {
    let record = registry.dir().task(id).read(TaskFile::Report)?;
    let record: Option<Record> = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let report = match registry.get(id)? {
        Some(task) => describe(&task.title, task.state, task.ended.as_ref(), record.as_ref()),
        None => "The task was deleted, and its report with it.".to_owned(),
    };
    append_quotation(prompt, &format!("The report of task {id}, which ended before this one."), &report);
    Ok(())
}

/// What a task changed, or why that is unknown: a reviewer can still read the files that the report names.
fn review_diff(registry: &Registry, id: &TaskId, launch: &Launch) -> String {
    let unknown = || EngineError::unknown(id);
    let task = registry.get(id).map_err(EngineError::from).and_then(|task| task.ok_or_else(unknown));
    match task.and_then(|task| recorded_diff(registry, &task, &launch.variables)) {
        Ok(diff) if diff.text.is_empty() => "The task changed nothing.".to_owned(),
        Ok(diff) => launch.redactor().redact_str(&String::from_utf8_lossy(&diff.text)).into_owned(),
        Err(error) => format!("There is no diff of this task: {error}"),
    }
}

/// What a task did, as plain text of at most [`MAX_REPORT_BYTES`].
fn describe(title: &str, state: State, ended: Option<&EndRecord>, record: Option<&Record>) -> String {
    let title = shorten(title, MAX_TITLE_BYTES, Keep::Beginning);
    let mut text = format!("Task: {title}\nState: {}\n", state.public_name());
    let Some(ended) = ended else { return text };
    if let Some(summary) = &ended.summary {
        let _ = writeln!(text, "Summary: {}", shorten(summary, MAX_SUMMARY_BYTES, Keep::Beginning));
    }
    let Some(record) = record else {
        text.push_str("There is no report: the task ended before one was written.\n");
        return text;
    };
    let section = |text: &mut String, name: &str, body: &str| {
        if !body.is_empty() {
            let _ = write!(text, "\n{name}:\n{}\n", body.trim_end());
        }
    };
    section(&mut text, "Errors", &shorten(&errors(&ended.end, record), MAX_ERRORS_BYTES, Keep::Beginning));
    section(&mut text, "Files changed", &shorten(&files(record), MAX_FILES_BYTES, Keep::Beginning));
    if let Some(check) = record.check.as_ref() {
        section(&mut text, "Verification", &check.describe());
        if check.outcome != Verification::Verified {
            let output = shorten(&check.last_output, MAX_CHECK_BYTES, Keep::End);
            section(&mut text, "The last output of the verify command", &output);
        }
    }
    let message =
        record.report.final_message.as_ref().map(|message| message.text.as_str()).unwrap_or_default();
    section(&mut text, "Final message", &shorten(message, MAX_MESSAGE_BYTES, Keep::Beginning));
    shorten(&text, MAX_REPORT_BYTES, Keep::Beginning)
}

fn errors(end: &TaskEnd, record: &Record) -> String {
    let mut text = match end {
        TaskEnd::Failed { kind, message, .. } => format!("{}: {message}\n", kind.name()),
        TaskEnd::Timeout(limit) => format!("the {} limit was exceeded\n", limit.name()),
        TaskEnd::Completed | TaskEnd::Cancelled { .. } => String::new(),
    };
    for failure in record.report.failures.iter().rev().filter(|failure| !failure.command.is_empty()) {
        let _ = writeln!(text, "`{}` failed: {}", failure.command, failure.message);
    }
    text
}

/// The files that were observed to change; without an observation, those that the agent reported.
fn files(record: &Record) -> String {
    let mut text = String::new();
    let mut list = |sign: &str, files: &[String]| {
        files.iter().for_each(|file| {
            let _ = writeln!(text, "{sign} {file}");
        });
    };
    match &record.evidence {
        Some(evidence) => {
            // Nothing that the agent did explains these changes.
            let is_own = |file: &&String| !evidence.unattributed.files.contains(file);
            let own = |files: &[String]| files.iter().filter(is_own).cloned().collect::<Vec<_>>();
            list("M", &own(&evidence.files.modified));
            list("A", &own(&evidence.files.added));
            list("D", &own(&evidence.files.deleted));
        }
        None => {
            list("M", &record.report.files.modified);
            list("A", &record.report.files.added);
            list("D", &record.report.files.deleted);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::FailureKind;
    use delegator_supervisor::run::StreamSummary;
    use delegator_transcript::{FinalMessage, Report};

    use super::*;
    use crate::supervise::check_record::CheckRecord;

    const LONG: usize = 100_000;

    fn failed_check() -> CheckRecord {
        CheckRecord {
            outcome: Verification::Refuted,
            detail: None,
            command: "c".repeat(LONG),
            is_sandboxed: true,
            exit_code: Some(1),
            signal: None,
            duration_ms: 1,
            output: StreamSummary::default(),
            last_output: format!("{}the last line", "o".repeat(LONG)),
            tests: None,
        }
    }

    #[test]
    fn a_report_is_bounded_and_has_all_its_parts() {
        let end =
            TaskEnd::Failed { kind: FailureKind::Internal, message: "e".repeat(LONG), retry_at_ms: None };
        let ended = EndRecord {
            at_ms: 0,
            order: 0,
            end,
            exit: None,
            ran_ms: None,
            summary: Some("s".repeat(LONG)),
            survivors: Vec::new(),
            read_at_ms: None,
            has_apply_conflict: false,
            verification: None,
            lines: None,
            cost_microdollars: None,
        };
        let final_message = FinalMessage { text: "ä".repeat(LONG), bytes: 1, truncated: false };
        let mut report = Report { final_message: Some(final_message), ..Report::default() };
        report.files.modified = vec!["a".repeat(100); 1000];
        let record = Record { report, check: Some(failed_check()), ..Record::default() };
        let text = describe(&"t".repeat(LONG), State::Failed, Some(&ended), Some(&record));
        assert!(text.len() <= MAX_REPORT_BYTES, "{}", text.len());
        let parts = ["Summary", "Errors", "Files changed", "Verification", "the last line", "Final message"];
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.matches('ä').count() > 4000, "the final message has its own space: {text}");
    }
}
