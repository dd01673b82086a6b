//! Imports a session that Codex stored on disk, so that it can be queried and resumed like a task: converts
//! it to redacted events and a report. Importing the same session again returns the same task.

use std::io::Read;
use std::path::Path;

use delegator_domain::agents::{DEFAULT_AGENT, DEFAULT_PROTOCOL};
use delegator_domain::redact::Redactor;
use delegator_domain::task::{FailureKind, Mode, TaskEnd, TaskId, TaskLocation};
use delegator_domain::text::first_line;
use delegator_registry::{Finish, Idempotency, ImportedSession, NewTask, Submission, TaskFile};
use delegator_supervisor::agent::{StoredSession, Variables};
use delegator_supervisor::run::{StreamSummary, redacted_report};
use delegator_supervisor::verdict::{local_time, reported_end};
use delegator_transcript::{
    FoldOptions, LineLimits, NormalizeOptions, Normalizer, Report, RolloutHead, RolloutReader, StreamOutcome,
    Summarizer,
};

use jiff::Zoned;

use crate::Results;
use crate::error::{EngineError, Result};
use crate::supervise::summary::one_sentence_summary;
use crate::supervise::task_report::{Record, tokens};

const NO_SESSION: &str = "it is not a Codex session";

/// How much of the file is searched for thread id, times and prompt.
const HEAD_BYTES: usize = 4 << 20;

/// How much of the file is read to say what a session is about. The first message follows the instructions.
const LISTED_BYTES: u64 = 256 << 10;

const MAX_TITLE_CHARS: usize = 120;

/// What the beginning of a session file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSession {
    pub started_at_ms: Option<i64>,
    pub working_dir: Option<String>,
    /// The first line of the first message, redacted.
    pub title: Option<String>,
    /// The last task of the thread.
    pub task: Option<TaskId>,
}

impl Results<'_> {
    /// Says what a session is about; `session` names its file.
    pub fn past_session(
        &self,
        file: impl Read,
        session: &StoredSession,
        redactor: &Redactor,
        to_ms: impl Fn(&str) -> Option<i64>,
    ) -> Result<PastSession> {
        let refuse = |problem: String| EngineError::NotImportable { path: session.file.clone(), problem };
        let mut bytes = Vec::new();
        file.take(LISTED_BYTES).read_to_end(&mut bytes).map_err(|error| refuse(error.to_string()))?;
        let head = RolloutReader::read(&bytes).ok_or_else(|| refuse(NO_SESSION.to_owned()))?;
        Ok(PastSession {
            started_at_ms: head.started_at.as_deref().and_then(to_ms),
            title: head.prompt.map(|prompt| title(&redactor.redact_str(prompt.trim()))),
            working_dir: head.cwd,
            task: self.last_task_of_thread(&session.thread_id)?.map(|task| task.id),
        })
    }

    /// Imports one session file; `path` is only for error messages.
    pub fn import(
        &self,
        file: impl Read,
        path: &Path,
        redactor: &Redactor,
        to_ms: impl Fn(&str) -> Option<i64>,
    ) -> Result<Submission> {
        let refuse =
            |problem: &str| EngineError::NotImportable { path: path.to_owned(), problem: problem.to_owned() };
        let (head, report, events) =
            read_session(file, redactor).map_err(|error| refuse(&error.to_string()))?;
        let head = head.ok_or_else(|| refuse(NO_SESSION))?;
        let imported_at_ms = self.engine.now_ms();
        let started_at_ms = head.started_at.as_deref().and_then(&to_ms).unwrap_or(imported_at_ms);
        let ended_at_ms =
            head.last_at.as_deref().and_then(&to_ms).unwrap_or(started_at_ms).max(started_at_ms);
        let record = build_record(&report, redactor, events.len() as u64);
        let end = end_of(&report, &local_time(ended_at_ms, &Variables::new()));
        let finish = Finish {
            summary: Some(redactor.redact_str(&one_sentence_summary(&end, None, &record)).into_owned()),
            ran_ms: u64::try_from(ended_at_ms - started_at_ms).ok(),
            tokens: tokens(&report),
            ..Finish::bare(end)
        };
        let past =
            ImportedSession { thread_id: head.thread_id.clone(), started_at_ms, ended_at_ms, imported_at_ms };
        let report = serde_json::to_vec(&record).unwrap_or_default();
        let files = [(TaskFile::Events, &*events), (TaskFile::Stderr, b""), (TaskFile::Report, &report)];
        self.engine.system.with_fresh_id(TaskLocation::Local, |id| {
            let mut registry = self.engine.open_registry()?;
            registry.also_redact(redactor.clone());
            Ok(registry.import(&new_task(id, &head, redactor), &past, &finish, &files)?)
        })
    }
}

type Session = (Option<RolloutHead>, Report, Vec<u8>);

fn read_session(mut file: impl Read, redactor: &Redactor) -> std::io::Result<Session> {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    let mut normalizer = Normalizer::new(NormalizeOptions::default(), LineLimits::STANDARD);
    let (mut clean, mut redact) = (Vec::new(), redactor.stream());
    let (mut chunk, mut head, mut out) = (vec![0; 256 << 10], Vec::new(), Vec::new());
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        summarizer.push(&chunk[..count]);
        normalizer.push(&chunk[..count], &mut out);
        redact.push(&out, &mut clean);
        out.clear();
        let head_space = HEAD_BYTES.saturating_sub(head.len()).min(count);
        head.extend_from_slice(&chunk[..head_space]);
    }
    normalizer.finish(&mut out);
    redact.push(&out, &mut clean);
    redact.finish(&mut clean);
    Ok((RolloutReader::read(&head), summarizer.finish(), clean))
}

fn new_task(id: TaskId, head: &RolloutHead, redactor: &Redactor) -> NewTask {
    debug_assert_eq!(id.location(), TaskLocation::Local);
    // Redacted before it is shortened: half of a secret is not recognised.
    let prompt = redactor.redact_str(head.prompt.as_deref().unwrap_or("Imported session").trim());
    NewTask {
        id,
        working_dir: head.cwd.clone().unwrap_or_else(|| "/".to_owned()),
        work_trees: Vec::new(),
        allow_parallel_writes: false,
        mode: Mode::ReadOnly,
        sandbox: None,
        agent: DEFAULT_AGENT.to_owned(),
        fallbacks: 0,
        model: head.model.clone(),
        title: title(&prompt),
        text: redactor.redact_str(head.prompt.as_deref().unwrap_or_default()).into_owned(),
        labels: [("imported".to_owned(), "true".to_owned())].into(),
        input: serde_json::json!({}),
        resumed_thread: None,
        idempotency: Some(Idempotency::new(format!("import:{}", head.thread_id), &head.thread_id)),
        environment: None,
        worktree: None,
        follows: None,
        group: None,
        // The user knows of sessions that ended in the past.
        notify: None,
    }
}

fn title(prompt: &str) -> String {
    first_line(prompt, MAX_TITLE_CHARS)
}

fn end_of(report: &Report, ended_at: &Zoned) -> TaskEnd {
    match &report.outcome {
        // Sessions of old versions never announce their end.
        StreamOutcome::Completed | StreamOutcome::NotAnnounced => TaskEnd::Completed,
        StreamOutcome::Failed { message, code } => reported_end(DEFAULT_PROTOCOL, message, *code, ended_at),
        StreamOutcome::Interrupted => {
            let message = report.unresolved_error.clone().unwrap_or_default();
            TaskEnd::failed(FailureKind::NoTerminalEvent, message)
        }
    }
}

fn build_record(report: &Report, redactor: &Redactor, stored: u64) -> Record {
    let mut record = Record {
        stdout: StreamSummary { received: stored, stored, ..StreamSummary::default() },
        ..Record::default()
    };
    record.report = redacted_report(redactor, report, &mut record.warnings);
    record
}
