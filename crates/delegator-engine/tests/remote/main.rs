//! Tasks of a provider, with a provider that answers as the test says.

#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]

mod events;
mod provider;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use delegator_domain::task::{FailureKind, State, TaskEnd, TaskId, TaskLocation};
use delegator_engine::wait_thread::WaitGoal;
use delegator_engine::{
    CloudCounts, Engine, EngineError, OverviewRequest, ProviderError, RemoteStatus, RemoteSubmission,
    ServiceError,
};
use delegator_registry::{Filter, Idempotency, LockAttempt, NewTask, RemoteEnvironment, RemoteRef, TaskFile};

use provider::{ScriptedProvider, World, completed, environment, submission, submit, unreachable_provider};

#[test]
fn a_task_is_queued_works_and_ends_as_its_provider_reports() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[
        Ok(RemoteStatus::Queued),
        Ok(RemoteStatus::Working { started_at_ms: None }),
        Ok(completed()),
    ]));
    let id = submit(&engine);
    assert!(id.as_str().starts_with("T-cloud-"), "{id}");
    let states: Vec<State> = (0..4).map(|_| engine.results().task(&id).unwrap().state).collect();
    assert_eq!(states, [State::Queued, State::Working, State::Completed, State::Completed]);
    let files = engine.results().files(&id).unwrap();
    assert!(files.record.is_some());
    assert_eq!(files.diff, b"diff --git a/f b/f\n");
    assert_eq!(engine.results().read_stored(&id, TaskFile::Setup).unwrap(), b"installed\n");
}

#[test]
fn a_provider_is_not_queried_again_before_its_interval_is_over() {
    let world = World::new();
    let provider = ScriptedProvider::answering(&[Ok(RemoteStatus::Working { started_at_ms: None })]);
    let (engine, provider) =
        world.engine(ScriptedProvider { interval: Duration::from_secs(3600), ..provider });
    let id = submit(&engine);
    for _ in 0..5 {
        assert_eq!(engine.results().task(&id).unwrap().state, State::Working);
        engine
            .results()
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
    let error = engine.remote().submit(&submission()).unwrap_err();
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
    let error = engine.remote().submit(&submission()).unwrap_err();
    let EngineError::Provider { task: Some(id), .. } = error else { panic!("{error:?}") };
    assert_unconfirmed(&engine, &id);
}

#[test]
fn an_interrupted_submission_is_not_repeated() {
    let world = World::new();
    let provider = ScriptedProvider::answering(&[Ok(completed())]);
    let (engine, provider) = world.engine(ScriptedProvider { dies_at_submission: true, ..provider });
    // Like a kill between the row and the answer of the provider: nothing is recorded, and the lock is released.
    let died =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.remote().submit(&submission())));
    died.unwrap_err();
    let id = world.registry().unfinished_remote().unwrap()[0].id.clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !engine.results().task(&id).unwrap().state.is_terminal() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_unconfirmed(&engine, &id);
    assert_eq!(*provider.queries.lock().unwrap(), 0);
}

fn assert_unconfirmed(engine: &Engine, id: &TaskId) {
    assert_failed(engine, id, FailureKind::SubmissionUnconfirmed);
}

fn assert_failed(engine: &Engine, id: &TaskId, kind: FailureKind) {
    let task = engine.results().task(id).unwrap();
    let end = task.ended.unwrap().end;
    assert!(matches!(&end, TaskEnd::Failed { kind: found, .. } if *found == kind), "{end:?}");
}

/// A provider that lets the engine choose the id `chosen`.
fn with_chosen_id(provider: ScriptedProvider) -> ScriptedProvider {
    let submission = provider.submission.map(|_| reference("chosen"));
    ScriptedProvider { chosen_id: Some("chosen"), submission, ..provider }
}

fn reference(id: &str) -> RemoteRef {
    RemoteRef { id: id.to_owned(), url: None }
}

fn unknown_task() -> ProviderError {
    ProviderError::UnknownTask { provider: environment().provider, id: "chosen".to_owned() }
}

fn lost_replies(count: usize) -> Mutex<Vec<ProviderError>> {
    Mutex::new(vec![unreachable_provider(); count])
}

#[test]
fn a_lost_reply_is_repeated_with_the_same_id() {
    let world = World::new();
    let provider = with_chosen_id(ScriptedProvider::answering(&[Ok(RemoteStatus::Queued)]));
    let (engine, provider) =
        world.engine(ScriptedProvider { failed_submissions: lost_replies(2), ..provider });
    let submitted = engine.remote().submit(&submission()).unwrap();
    assert_eq!((submitted.task.state, submitted.replayed), (State::Queued, false));
    assert_eq!(*provider.submitted_ids.lock().unwrap(), vec![Some("chosen".to_owned()); 3]);
}

#[test]
fn a_submission_with_a_chosen_id_is_decided_by_the_provider() {
    let world = World::new();
    let answers =
        [Err(unreachable_provider()), Ok(RemoteStatus::Working { started_at_ms: None }), Ok(completed())];
    let provider = with_chosen_id(ScriptedProvider::answering(&answers));
    let (engine, _) = world.engine(ScriptedProvider { failed_submissions: lost_replies(3), ..provider });
    let error = engine.remote().submit(&submission()).unwrap_err();
    let EngineError::Provider { task: Some(id), .. } = error else { panic!("{error:?}") };
    engine.results().task(&id).unwrap_err();
    let states: Vec<State> = (0..2).map(|_| engine.results().task(&id).unwrap().state).collect();
    assert_eq!(states, [State::Working, State::Completed]);
}

/// A task with a chosen id whose submission was interrupted long ago.
fn interrupted(world: &World) -> TaskId {
    let (mut registry, id) = (world.registry(), "T-cloud-k3m9x2a7b4".parse::<TaskId>().unwrap());
    let environment = environment();
    let environment = RemoteEnvironment { provider: environment.provider, id: environment.id };
    let task = NewTask { environment: Some(environment), ..NewTask::reading(id.clone(), "/p", "fix it") };
    registry.submit(&task, b"", 1_000).unwrap();
    registry.accept_remote(&id, &reference("chosen"), 1_000).unwrap();
    id
}

#[test]
fn a_task_that_its_provider_does_not_have_was_not_accepted() {
    let world = World::new();
    let (engine, _) = world.engine(with_chosen_id(ScriptedProvider::answering(&[Err(unknown_task())])));
    let id = interrupted(&world);
    let registry = world.registry();
    let lock = registry.dir().task(&id).try_lock().unwrap();
    assert!(matches!(lock, LockAttempt::Locked(_)));
    assert_eq!(engine.results().task(&id).unwrap().state, State::Queued, "its submission is in flight");
    drop(lock);
    engine.results().task(&id).unwrap();
    assert_failed(&engine, &id, FailureKind::NotAccepted);
}

#[test]
fn a_task_is_not_accepted_only_if_its_provider_confirms_it() {
    for (refusal, is_error) in [(Err(unreachable_provider()), true), (Ok(false), false)] {
        let world = World::new();
        let provider = with_chosen_id(ScriptedProvider::answering(&[Err(unknown_task())]));
        let (engine, _) = world.engine(ScriptedProvider { refusal, ..provider });
        let id = interrupted(&world);
        assert_eq!(engine.results().task(&id).is_err(), is_error);
        assert_eq!(engine.results().recorded_task(&id).unwrap().state, State::Queued);
    }
}

#[test]
fn a_refused_repetition_does_not_withdraw_a_submission_without_an_answer() {
    let world = World::new();
    let refused = ProviderError::KeyConflict { provider: environment().provider };
    let unavailable = ProviderError::Service(ServiceError {
        error: Arc::new(std::io::Error::other("disk full")),
        is_transient: true,
        may_have_accepted: false,
    });
    let provider = with_chosen_id(ScriptedProvider::failing(refused));
    let failed_submissions = Mutex::new(vec![unavailable, unreachable_provider()]);
    let (engine, _) = world.engine(ScriptedProvider { failed_submissions, ..provider });
    let error = engine.remote().submit(&submission()).unwrap_err();
    let EngineError::Provider { task: Some(id), .. } = error else { panic!("{error:?}") };
    assert_eq!(engine.results().recorded_task(&id).unwrap().state, State::Queued);
}

/// Deleted by the fleet. It may have run, so it was not "not accepted".
#[test]
fn an_old_task_that_its_provider_does_not_have_any_more_ends() {
    let world = World::new();
    let answers = [Ok(RemoteStatus::Working { started_at_ms: None }), Err(unknown_task())];
    let (engine, _) = world.engine(with_chosen_id(ScriptedProvider::answering(&answers)));
    let id = interrupted(&world);
    for _ in &answers {
        engine.results().task(&id).unwrap();
    }
    assert_failed(&engine, &id, FailureKind::RemoteGone);
}

/// The URL of the database may be that of another fleet for a moment.
#[test]
fn a_young_task_that_its_provider_does_not_know_does_not_end() {
    let world = World::new();
    let answers = [Err(unknown_task()), Ok(completed())];
    let (engine, _) = world.engine(with_chosen_id(ScriptedProvider::answering(&answers)));
    let id = submit(&engine);
    engine.results().task(&id).unwrap_err();
    assert_eq!(engine.results().task(&id).unwrap().state, State::Completed);
}

#[test]
fn a_key_whose_submission_got_no_answer_submits_the_same_task_again() {
    let world = World::new();
    let provider = with_chosen_id(ScriptedProvider::answering(&[Ok(completed())]));
    let (engine, provider) =
        world.engine(ScriptedProvider { failed_submissions: lost_replies(6), ..provider });
    let submission = RemoteSubmission {
        idempotency: Some(Idempotency::new("key".to_owned(), "hash".to_owned())),
        ..submission()
    };
    let failed_id = || match engine.remote().submit(&submission).unwrap_err() {
        EngineError::Provider { task: Some(id), .. } => id,
        error => panic!("{error:?}"),
    };
    let id = failed_id();
    assert_eq!(failed_id(), id, "it is not accepted yet");
    let submitted = engine.remote().submit(&submission).unwrap();
    assert_eq!((submitted.task.id, submitted.replayed), (id, true));
    let ids = provider.submitted_ids.lock().unwrap();
    assert!(ids.iter().all(|id| id.as_deref() == Some("chosen")) && ids.len() == 7, "{ids:?}");
}

#[test]
fn a_provider_that_chooses_ids_and_does_not_know_one_is_reported() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Err(unknown_task())]));
    let id = submit(&engine);
    let error = engine.results().task(&id).unwrap_err();
    assert!(
        matches!(error, EngineError::Provider { source: ProviderError::UnknownTask { .. }, .. }),
        "{error:?}"
    );
}

#[test]
fn a_refused_task_with_a_chosen_id_does_not_exist() {
    let world = World::new();
    let refused = ProviderError::KeyConflict { provider: environment().provider };
    let (engine, _) = world.engine(with_chosen_id(ScriptedProvider::failing(refused)));
    engine.remote().submit(&submission()).unwrap_err();
    assert_eq!(world.registry().counts().unwrap().iter().count(), 0);
}

#[test]
fn a_key_that_another_machine_used_returns_the_task_of_that_machine() {
    let world = World::new();
    let provider = with_chosen_id(ScriptedProvider::answering(&[Ok(completed())]));
    let (engine, _) = world.engine(ScriptedProvider { submission: Ok(reference("theirs")), ..provider });
    let submitted = engine.remote().submit(&submission()).unwrap();
    assert_eq!(submitted.task.remote.unwrap().accepted, Some(reference("theirs")));
    assert!(submitted.replayed);
}

#[test]
fn a_wait_ends_with_the_task() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[
        Ok(RemoteStatus::Working { started_at_ms: None }),
        Ok(completed()),
    ]));
    let id = submit(&engine);
    let outcome = engine.waits().for_group(&[id], WaitGoal::All, None, || {}).unwrap();
    assert_eq!((outcome.tasks[0].state, outcome.expired), (State::Completed, false));
}

#[test]
fn a_wait_outlasts_a_provider_that_does_not_answer_until_its_deadline() {
    let world = World::new();
    let (engine, provider) = world.engine(ScriptedProvider::answering(&[Err(unreachable_provider())]));
    let id = submit(&engine);
    let deadline = Instant::now() + Duration::from_millis(300);
    let outcome = engine.waits().for_group(&[id], WaitGoal::All, Some(deadline), || {}).unwrap();
    assert!(outcome.expired);
    assert_eq!(*provider.queries.lock().unwrap(), 1, "the provider is not queried without a pause");
}

#[test]
fn a_wait_ends_with_an_error_that_waiting_does_not_help_against() {
    let world = World::new();
    let refused = ProviderError::NotSignedIn { output: "y".to_owned() };
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Err(refused.clone())]));
    let id = submit(&engine);
    let error = engine.waits().for_group(std::slice::from_ref(&id), WaitGoal::All, None, || {}).unwrap_err();
    let expected = |task: &TaskId, source: &ProviderError| *task == id && *source == refused;
    assert!(
        matches!(&error, EngineError::Provider { task: Some(task), source, .. } if expected(task, source)),
        "{error:?}"
    );
}

#[test]
fn a_cancelled_task_ends_when_its_provider_reports_it() {
    let world = World::new();
    let (engine, _) =
        world.engine(ScriptedProvider::answering(&[Ok(RemoteStatus::Working { started_at_ms: None })]));
    let id = submit(&engine);
    assert_eq!(engine.results().recorded_task(&id).unwrap().state, State::Queued);
    let report = engine.cancellations().cancel(&id, Some("enough"), Duration::from_secs(30)).unwrap();
    let reason = TaskEnd::Cancelled { reason: Some("enough".to_owned()) };
    assert_eq!((report.task.state, report.task.ended.unwrap().end), (State::Cancelled, reason));
    assert_eq!(report.previous, State::Working, "the provider knows better than the registry");
    let again = engine.cancellations().cancel(&id, None, Duration::from_secs(30)).unwrap();
    assert_eq!((again.previous, again.was_cancelled), (State::Working, true));
}

#[test]
fn an_overview_names_a_provider_that_does_not_answer() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Err(unreachable_provider())]));
    let id = submit(&engine);
    let request = OverviewRequest { only: vec![id.clone()], ..OverviewRequest::default() };
    let overview = engine.results().overview(&request).unwrap().unwrap();
    assert_eq!(overview.provider_problems[0].error, unreachable_provider());
    let error = engine.results().task(&id).unwrap_err();
    assert!(matches!(error, EngineError::Provider { .. }), "{error:?}");
    assert_eq!(engine.results().recorded_task(&id).unwrap().state, State::Queued);
}

#[test]
fn an_overview_of_this_machine_counts_cloud_tasks_and_lists_none() {
    let world = World::new();
    let answers = [Ok(RemoteStatus::Working { started_at_ms: None }), Ok(completed())];
    let (engine, provider) = world.engine(ScriptedProvider::answering(&answers));
    let (ended, _) = (submit(&engine), submit(&engine));
    let overview = |location| {
        let filter = Filter { location: Some(location), ..Filter::default() };
        let request = OverviewRequest { filter, under: "/p".to_owned(), ..OverviewRequest::default() };
        engine.results().overview(&request).unwrap().unwrap()
    };
    let here = overview(TaskLocation::Local);
    assert_eq!((here.unread.count, here.cloud), (0, CloudCounts { unfinished: 2, unread: 0 }));
    assert_eq!(*provider.queries.lock().unwrap(), 0, "only the overview of cloud tasks queries providers");
    for _ in &answers {
        engine.results().task(&ended).unwrap();
    }
    let here = overview(TaskLocation::Local);
    assert_eq!((here.unread.count, here.cloud), (0, CloudCounts { unfinished: 1, unread: 1 }));
    let cloud = overview(TaskLocation::Cloud);
    assert_eq!((cloud.unread.ids.contains(&ended), cloud.cloud), (true, CloudCounts::default()));
}

#[test]
fn a_task_of_a_provider_that_is_not_configured_is_reported() {
    let world = World::new();
    let (engine, _) = world.engine(ScriptedProvider::answering(&[Ok(completed())]));
    let id = submit(&engine);
    let without = Engine::new(world.state_dir(), "/bin/false");
    let error = without.results().task(&id).unwrap_err();
    let source = |error: &EngineError| {
        matches!(error, EngineError::Provider { source: ProviderError::NotAvailable { .. }, .. })
    };
    assert!(source(&error), "{error:?}");
    assert!(source(&without.remote().submit(&submission()).unwrap_err()));
}
