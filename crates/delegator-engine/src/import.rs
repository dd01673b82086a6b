//! Taking a session in that Codex left on disk, so that it can be read, resumed and reported on like a task of ours.

use std::io::Read;
use std::path::Path;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{End, FailureKind, Mode, Place, TaskId};
use delegator_registry::{Finish, Idempotency, NewTask, Past, Submitted, TaskFile};
use delegator_supervisor::verdict::RefusedCalls;
use delegator_transcript::{
    FoldOptions, LineLimits, NormalizeOptions, Normalizer, Outcome, Report, RolloutHead, RolloutReader,
    Summarizer,
};

use crate::Engine;
use crate::clock::fresh_id;
use crate::error::EngineError;
use crate::look::summary;
use crate::record::{Record, StreamRecord, Swept};

/// Who, when and what, out of the beginning of the file.
const HEAD_BYTES: usize = 4 << 20;

impl Engine {
    /// Imports one session file, which was opened by its path. The same session gives the same task.
    pub fn import(
        &self,
        file: std::fs::File,
        path: &Path,
        redactor: &Redactor,
        to_ms: impl Fn(&str) -> Option<i64>,
    ) -> Result<Submitted, EngineError> {
        let refuse =
            |problem: &str| EngineError::NoSession { path: path.to_owned(), problem: problem.to_owned() };
        let (head, report, events) = read(file, redactor).map_err(|error| refuse(&error.to_string()))?;
        let head = head.ok_or_else(|| refuse("it is not a session of Codex's"))?;
        let imported_at_ms = crate::clock::now_ms();
        let started_at_ms = head.started_at.as_deref().and_then(&to_ms).unwrap_or(imported_at_ms);
        let ended_at_ms =
            head.last_at.as_deref().and_then(&to_ms).unwrap_or(started_at_ms).max(started_at_ms);
        let record = record(&report, redactor, events.len() as u64);
        let end = end_of(&report);
        let finish = Finish {
            summary: Some(redactor.redact_str(&summary(&end, &record)).into_owned()),
            ran_ms: u64::try_from(ended_at_ms - started_at_ms).ok(),
            tokens: crate::record::tokens(&report),
            ..Finish::bare(end)
        };
        let mut registry = self.open()?;
        registry.also_redact(redactor.clone());
        let task = task_of(fresh_id()?, &head, redactor);
        let past = Past { thread_id: head.thread_id.clone(), started_at_ms, ended_at_ms, imported_at_ms };
        let report = serde_json::to_vec(&record).unwrap_or_default();
        let files = [(TaskFile::Events, &*events), (TaskFile::Stderr, b""), (TaskFile::Report, &report)];
        Ok(registry.import(&task, &past, &finish, &files)?)
    }
}

type Session = (Option<RolloutHead>, Report, Vec<u8>);

fn read(mut file: std::fs::File, redactor: &Redactor) -> std::io::Result<Session> {
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
        let room = HEAD_BYTES.saturating_sub(head.len()).min(count);
        head.extend_from_slice(&chunk[..room]);
    }
    normalizer.finish(&mut out);
    redact.push(&out, &mut clean);
    redact.finish(&mut clean);
    Ok((RolloutReader::read(&head), summarizer.finish(), clean))
}

fn task_of(id: TaskId, head: &RolloutHead, redactor: &Redactor) -> NewTask {
    debug_assert_eq!(id.place(), Place::Local);
    // Redacted as a whole: a secret that is cut in two is not recognised.
    let prompt = redactor.redact_str(head.prompt.as_deref().unwrap_or("Imported session").trim());
    let title: String = prompt.lines().next().unwrap_or_default().chars().take(120).collect();
    NewTask {
        id,
        working_dir: head.cwd.clone().unwrap_or_else(|| "/".to_owned()),
        work_trees: Vec::new(),
        allow_parallel_writes: false,
        mode: Mode::ReadOnly,
        agent: "codex".to_owned(),
        model: head.model.clone(),
        title,
        text: redactor.redact_str(head.prompt.as_deref().unwrap_or_default()).into_owned(),
        labels: [("imported".to_owned(), "true".to_owned())].into(),
        input: serde_json::json!({}),
        resumed_thread: None,
        idempotency: Some(Idempotency::new(format!("import:{}", head.thread_id), &head.thread_id)),
    }
}

fn end_of(report: &Report) -> End {
    let failed = |kind, message: &str| End::Failed { kind, message: message.to_owned(), retry_at: None };
    match &report.outcome {
        // Old sessions never tell of an end; that they were left is all there is to know.
        Outcome::Completed | Outcome::NotAnnounced => End::Completed,
        Outcome::Failed { message } => failed(FailureKind::AgentError, message),
        Outcome::Interrupted => {
            failed(FailureKind::NoTerminalEvent, "the session stopped in the middle of a turn")
        }
    }
}

fn record(report: &Report, redactor: &Redactor, stored: u64) -> Record {
    let text = serde_json::to_string(report).unwrap_or_default();
    Record {
        refused: RefusedCalls::default(),
        report: serde_json::from_str(&redactor.redact_str(&text)).unwrap_or_default(),
        last_events: serde_json::json!([]),
        last_output: String::new(),
        last_stderr: String::new(),
        stdout: StreamRecord { received: stored, stored, truncated: false },
        stderr: StreamRecord::default(),
        warnings: Vec::new(),
        signals: Vec::new(),
        survivors: Vec::new(),
        swept: Swept::default(),
        elapsed_ms: 0,
        quiet_ms: 0,
        limits: None,
        check: None,
        evidence: None,
        findings: Vec::new(),
    }
}
