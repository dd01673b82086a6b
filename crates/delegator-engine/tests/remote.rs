//! Tasks of a provider, with a provider that answers as the test says.

#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use delegator_domain::task::{FailureKind, Mode, Provider, State, TaskEnd, TaskId};
use delegator_engine::wait_thread::WaitGoal;
use delegator_engine::{
    Engine, EngineError, OverviewRequest, ProviderError, Providers, Record, RemoteEnd, RemoteProvider,
    RemoteRequest, RemoteStatus, RemoteSubmission, TaskAnswer,
};
use delegator_registry::{OpenOptions, Registry, RemoteEnvironment, RemoteRef, StateDir};

/// Answers every query with the next answer of its script, and then with the last one again.
#[derive(Debug)]
struct ScriptedProvider {
    submission: Result<RemoteRef, ProviderError>,
    answers: Mutex<Vec<TaskAnswer>>,
    queries: Mutex<u32>,
    interval: Duration,
    dies_at_submission: bool,
}

impl ScriptedProvider {
    fn answering(answers: &[TaskAnswer]) -> ScriptedProvider {
        ScriptedProvider {
            submission: Ok(RemoteRef { id: "task_1".to_owned(), url: None }),
            answers: Mutex::new(answers.iter().rev().cloned().collect()),
            queries: Mutex::new(0),
            interval: Duration::ZERO,
            dies_at_submission: false,
        }
    }

    fn failing(error: ProviderError) -> ScriptedProvider {
        ScriptedProvider { submission: Err(error), ..ScriptedProvider::answering(&[]) }
    }
}

impl RemoteProvider for ScriptedProvider {
    fn submit(&self, _request: &RemoteRequest<'_>) -> Result<RemoteRef, ProviderError> {
        assert!(!self.dies_at_submission, "killed");
        self.submission.clone()
    }

    fn query(&self, tasks: &[RemoteRef]) -> Result<Vec<TaskAnswer>, ProviderError> {
        *self.queries.lock().unwrap() += 1;
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        answer.unwrap().map(|status| vec![Ok(status); tasks.len()])
    }

    fn diff(&self, _task: &RemoteRef, attempt: u8) -> Result<Option<String>, ProviderError> {
        Ok(Some(format!("diff of attempt {attempt}")))
    }

    fn cancel(&self, _task: &RemoteRef, _reason: Option<&str>) -> Result<(), ProviderError> {
        self.answers.lock().unwrap().splice(.., [Ok(ended(TaskEnd::Cancelled { reason: None }))]);
        Ok(())
    }

    fn has_events(&self) -> bool {
        true
    }

    fn query_interval(&self, _queries: u32) -> Duration {
        self.interval
    }
}

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        World { folder: tempfile::tempdir().unwrap() }
    }

    fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn engine(&self, provider: ScriptedProvider) -> (Engine, Arc<ScriptedProvider>) {
        let provider = Arc::new(provider);
        let providers = Providers::default().with(Provider::CodexCloud, provider.clone());
        (Engine::new(self.state_dir(), "/bin/false").with_providers(providers), provider)
    }

    fn registry(&self) -> Registry {
        Registry::open(&StateDir::open(&self.state_dir(), &OpenOptions::default()).unwrap()).unwrap()
    }
}

fn submission() -> RemoteSubmission {
    RemoteSubmission {
        environment: RemoteEnvironment { provider: Provider::CodexCloud, id: "env_x".to_owned() },
        text: "fix it".to_owned(),
        attempts: 1,
        branch: None,
        mode: Mode::WorkspaceWrite,
        working_dir: "/p".to_owned(),
        title: "fix it".to_owned(),
        agent: "codex".to_owned(),
        labels: BTreeMap::new(),
        input: serde_json::json!({}),
        idempotency: None,
    }
}

fn ended(end: TaskEnd) -> RemoteStatus {
    let diff = Some("diff --git a/f b/f\n".to_owned());
    RemoteStatus::Ended(Box::new(RemoteEnd {
        end,
        record: Record::default(),
        diff,
        at_ms: None,
        tokens: None,
    }))
}

fn completed() -> RemoteStatus {
    ended(TaskEnd::Completed)
}

fn unreachable_provider() -> ProviderError {
    ProviderError::Unreachable { provider: Provider::CodexCloud, output: "no route".to_owned() }
}

fn submit(engine: &Engine) -> TaskId {
    engine.submit_remote(&submission()).unwrap().task.id
}

#[test]
fn a_task_is_queued_works_and_ends_as_its_provider_reports() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[
        Ok(RemoteStatus::Queued),
        Ok(RemoteStatus::Working),
        Ok(completed()),
    ]));
    let id = submit(&engine);
    assert!(id.as_str().starts_with("T-cloud-"), "{id}");
    let states: Vec<State> = (0..4).map(|_| engine.task(&id).unwrap().state).collect();
    assert_eq!(states, [State::Queued, State::Working, State::Completed, State::Completed]);
    let files = engine.files(&id).unwrap();
    assert!(files.record.is_some());
    assert_eq!(files.diff, b"diff --git a/f b/f\n");
}

#[test]
fn a_provider_is_not_queried_again_before_its_interval_is_over() {
    let world = World::new();
    let provider = ScriptedProvider::answering(&[Ok(RemoteStatus::Working)]);
    let (engine, provider) =
        world.engine(ScriptedProvider { interval: Duration::from_secs(3600), ..provider });
    let id = submit(&engine);
    for _ in 0..5 {
        assert_eq!(engine.task(&id).unwrap().state, State::Working);
        engine
            .overview(&OverviewRequest { unfinished_limit: 9, ended_limit: 9, ..OverviewRequest::default() })
            .unwrap();
    }
    assert_eq!(*provider.queries.lock().unwrap(), 1);
}

#[test]
fn a_refused_task_does_not_exist() {
    let world = World::new();
    let refused = ProviderError::NotSignedIn { output: "y".to_owned() };
    let (engine, _) = world.engine(ScriptedProvider::failing(refused.clone()));
    let error = engine.submit_remote(&submission()).unwrap_err();
    assert!(
        matches!(&error, EngineError::Provider { task: None, source, .. } if *source == refused),
        "{error:?}"
    );
    assert_eq!(world.registry().counts().unwrap().iter().count(), 0);
}

#[test]
fn a_submission_without_an_answer_fails_with_the_task_that_may_exist() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::failing(unreachable_provider()));
    let error = engine.submit_remote(&submission()).unwrap_err();
    let EngineError::Provider { task: Some(id), .. } = error else { panic!("{error:?}") };
    assert_unconfirmed(&engine, &id);
}

#[test]
fn an_interrupted_submission_is_not_repeated() {
    let world = World::new();
    let provider = ScriptedProvider::answering(&[Ok(completed())]);
    let (engine, provider) = world.engine(ScriptedProvider { dies_at_submission: true, ..provider });
    // Like a kill between the row and the answer of the provider: nothing is recorded, and the lock is released.
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.submit_remote(&submission())));
    died.unwrap_err();
    let id = world.registry().unfinished_remote().unwrap()[0].id.clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !engine.task(&id).unwrap().state.is_terminal() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_unconfirmed(&engine, &id);
    assert_eq!(*provider.queries.lock().unwrap(), 0);
}

fn assert_unconfirmed(engine: &Engine, id: &TaskId) {
    let task = engine.task(id).unwrap();
    let end = task.ended.unwrap().end;
    let kind = FailureKind::SubmissionUnconfirmed;
    assert!(matches!(&end, TaskEnd::Failed { kind: found, .. } if *found == kind), "{end:?}");
}

#[test]
fn a_wait_ends_with_the_task() {
    let world = World::new();
    let (engine, _) =
        world.engine(ScriptedProvider::answering(&[Ok(RemoteStatus::Working), Ok(completed())]));
    let id = submit(&engine);
    let outcome = engine.wait_for_group(&[id], WaitGoal::All, None).unwrap();
    assert_eq!((outcome.tasks[0].state, outcome.expired), (State::Completed, false));
}

#[test]
fn a_wait_outlasts_a_provider_that_does_not_answer_until_its_deadline() {
    let world = World::new();
    let (engine, provider) = world.engine(ScriptedProvider::answering(&[Err(unreachable_provider())]));
    let id = submit(&engine);
    let deadline = Instant::now() + Duration::from_millis(300);
    let outcome = engine.wait_for_group(&[id], WaitGoal::All, Some(deadline)).unwrap();
    assert!(outcome.expired);
    assert_eq!(*provider.queries.lock().unwrap(), 1, "the provider is not queried without a pause");
}

#[test]
fn a_wait_ends_with_an_error_that_waiting_does_not_help_against() {
    let world = World::new();
    let refused = ProviderError::NotSignedIn { output: "y".to_owned() };
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Err(refused.clone())]));
    let id = submit(&engine);
    let error = engine.wait_for_group(std::slice::from_ref(&id), WaitGoal::All, None).unwrap_err();
    let expected = |task: &TaskId, source: &ProviderError| *task == id && *source == refused;
    assert!(
        matches!(&error, EngineError::Provider { task: Some(task), source, .. } if expected(task, source)),
        "{error:?}"
    );
}

#[test]
fn a_cancelled_task_ends_when_its_provider_reports_it() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Ok(RemoteStatus::Working)]));
    let id = submit(&engine);
    let report = engine.cancel(&id, Some("enough"), Duration::from_secs(30)).unwrap();
    let reason = TaskEnd::Cancelled { reason: Some("enough".to_owned()) };
    assert_eq!((report.task.state, report.task.ended.unwrap().end), (State::Cancelled, reason));
}

#[test]
fn an_overview_names_a_provider_that_does_not_answer() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Err(unreachable_provider())]));
    let id = submit(&engine);
    let request = OverviewRequest { only: Some(id.clone()), ..OverviewRequest::default() };
    let overview = engine.overview(&request).unwrap().unwrap();
    assert_eq!(overview.provider_problems[0].error, unreachable_provider());
    let error = engine.task(&id).unwrap_err();
    assert!(matches!(error, EngineError::Provider { .. }), "{error:?}");
    assert_eq!(engine.recorded_task(&id).unwrap().state, State::Queued);
}

#[test]
fn a_task_of_a_provider_that_is_not_configured_is_reported() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Ok(completed())]));
    let id = submit(&engine);
    let without = Engine::new(world.state_dir(), "/bin/false");
    let error = without.task(&id).unwrap_err();
    let source = |error: &EngineError| {
        matches!(error, EngineError::Provider { source: ProviderError::NotAvailable { .. }, .. })
    };
    assert!(source(&error), "{error:?}");
    assert!(source(&without.submit_remote(&submission()).unwrap_err()));
}
