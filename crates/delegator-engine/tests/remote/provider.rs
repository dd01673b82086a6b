//! A provider that answers as the test says, and engines that use it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use delegator_domain::environment::{Environment, OnLost};
use delegator_domain::task::{Mode, Provider, TaskEnd, TaskId};
use delegator_engine::{
    CancelProgress, Engine, EventPage, EventPosition, ProviderError, Providers, Record, RemoteEnd,
    RemoteProvider, RemoteRequest, RemoteStatus, RemoteSubmission, TaskAnswer,
};
use delegator_registry::{OpenOptions, Registry, RemoteRef, StateDir};

/// Answers every query with the next answer of its script, and then with the last one again.
#[derive(Debug)]
pub(crate) struct ScriptedProvider {
    pub(crate) submission: Result<RemoteRef, ProviderError>,
    pub(crate) answers: Mutex<Vec<TaskAnswer>>,
    pub(crate) queries: Mutex<u32>,
    pub(crate) interval: Duration,
    pub(crate) dies_at_submission: bool,
    /// The id that the provider lets the engine choose.
    pub(crate) chosen_id: Option<&'static str>,
    /// The errors of the first submissions.
    pub(crate) failed_submissions: Mutex<Vec<ProviderError>>,
    /// What a refusal is answered with.
    pub(crate) refusal: Result<bool, ProviderError>,
    /// The ids of the submissions.
    pub(crate) submitted_ids: Mutex<Vec<Option<String>>>,
    /// The events of each attempt.
    pub(crate) attempts: Mutex<Vec<Vec<u8>>>,
}

impl ScriptedProvider {
    pub(crate) fn answering(answers: &[TaskAnswer]) -> ScriptedProvider {
        ScriptedProvider {
            submission: Ok(RemoteRef { id: "task_1".to_owned(), url: None }),
            answers: Mutex::new(answers.iter().rev().cloned().collect()),
            queries: Mutex::new(0),
            interval: Duration::ZERO,
            dies_at_submission: false,
            chosen_id: None,
            failed_submissions: Mutex::default(),
            refusal: Ok(true),
            submitted_ids: Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    pub(crate) fn failing(error: ProviderError) -> ScriptedProvider {
        ScriptedProvider { submission: Err(error), ..ScriptedProvider::answering(&[]) }
    }
}

impl RemoteProvider for ScriptedProvider {
    fn choose_id(&self) -> Option<String> {
        self.chosen_id.map(str::to_owned)
    }

    fn submit(&self, request: &RemoteRequest<'_>) -> Result<RemoteRef, ProviderError> {
        assert!(!self.dies_at_submission, "killed");
        self.submitted_ids.lock().unwrap().push(request.id.map(str::to_owned));
        let mut failed = self.failed_submissions.lock().unwrap();
        match failed.is_empty() {
            true => self.submission.clone(),
            false => Err(failed.remove(0)),
        }
    }

    fn refuse(&self, _task: &RemoteRef) -> Result<bool, ProviderError> {
        self.refusal.clone()
    }

    fn query(&self, tasks: &[RemoteRef]) -> Result<Vec<TaskAnswer>, ProviderError> {
        *self.queries.lock().unwrap() += 1;
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        match answer.unwrap() {
            Err(error @ ProviderError::UnknownTask { .. }) => Ok(vec![Err(error); tasks.len()]),
            answer => answer.map(|status| vec![Ok(status); tasks.len()]),
        }
    }

    fn diff(&self, _task: &RemoteRef, attempt: u8) -> Result<Option<Vec<u8>>, ProviderError> {
        Ok(Some(format!("diff of attempt {attempt}").into_bytes()))
    }

    /// The agent runs, and has ended at the next query.
    fn cancel(&self, _task: &RemoteRef, _reason: Option<&str>) -> Result<CancelProgress, ProviderError> {
        let RemoteStatus::Ended(end) = ended(TaskEnd::Cancelled { reason: None }) else { unreachable!() };
        let end = RemoteEnd { started_at_ms: Some(1), ..*end };
        self.answers.lock().unwrap().splice(.., [Ok(RemoteStatus::Ended(Box::new(end)))]);
        Ok(CancelProgress::Ending)
    }

    fn has_events(&self) -> bool {
        true
    }

    /// At most 4 bytes at a time, so that pages end within lines.
    fn events(
        &self,
        _task: &RemoteRef,
        from: EventPosition,
        _max_bytes: usize,
    ) -> Result<EventPage, ProviderError> {
        let attempts = self.attempts.lock().unwrap();
        let Some(latest) = attempts.last() else { return Ok(EventPage::default()) };
        let attempt = i32::try_from(attempts.len()).unwrap();
        let start = if from.attempt == attempt { usize::try_from(from.offset).unwrap() } else { 0 };
        let bytes: Vec<u8> = latest[start..].iter().copied().take(4).collect();
        let next = EventPosition { attempt, offset: (start + bytes.len()) as u64 };
        let is_restarted = from.attempt != 0 && from.attempt != attempt;
        Ok(EventPage { bytes, next, is_restarted })
    }

    fn query_interval(&self, _queries: u32) -> Duration {
        self.interval
    }
}

pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn engine(&self, provider: ScriptedProvider) -> (Engine, Arc<ScriptedProvider>) {
        let provider = Arc::new(provider);
        let providers = Providers::default().with(Provider::CodexCloud, provider.clone());
        (Engine::new(self.state_dir(), "/bin/false").with_providers(providers), provider)
    }

    pub(crate) fn registry(&self) -> Registry {
        Registry::open(&StateDir::open(&self.state_dir(), &OpenOptions::default()).unwrap()).unwrap()
    }
}

pub(crate) fn environment() -> Environment {
    Environment {
        id: "env_x".to_owned(),
        name: "X".to_owned(),
        repo_url: "https://example.invalid/x".to_owned(),
        stack: "rust".to_owned(),
        description: None,
        provider: Provider::CodexCloud,
        branch: None,
        setup: None,
        mode: Mode::WorkspaceWrite,
        labels: BTreeMap::new(),
        priority: 0,
        on_lost: OnLost::Fail,
        max_claims: 2,
        push: false,
        created_at: None,
    }
}

pub(crate) fn submission() -> RemoteSubmission {
    RemoteSubmission {
        environment: environment(),
        text: "fix it".to_owned(),
        attempts: 1,
        branch: None,
        working_dir: "/p".to_owned(),
        title: "fix it".to_owned(),
        agent: "codex".to_owned(),
        labels: BTreeMap::new(),
        input: serde_json::json!({}),
        idempotency: None,
    }
}

pub(crate) fn ended(end: TaskEnd) -> RemoteStatus {
    let diff = Some(b"diff --git a/f b/f\n".to_vec());
    RemoteStatus::Ended(Box::new(RemoteEnd {
        end,
        record: Record::default(),
        diff,
        setup_output: Some(b"installed\n".to_vec()),
        facts: None,
        started_at_ms: None,
        at_ms: None,
        tokens: None,
    }))
}

pub(crate) fn unreachable_provider() -> ProviderError {
    ProviderError::Unreachable { provider: Provider::CodexCloud, output: "no route".to_owned() }
}

pub(crate) fn submit(engine: &Engine) -> TaskId {
    engine.remote().submit(&submission()).unwrap().task.id
}

pub(crate) fn completed() -> RemoteStatus {
    ended(TaskEnd::Completed)
}
