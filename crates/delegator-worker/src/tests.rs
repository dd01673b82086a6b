//! Attempts with a real registry, without agents, and with a database that is never reached.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{State, TaskEnd, TaskId, TaskLocation};
use delegator_engine::{CONTACT_LOST, Engine, Submission};
use delegator_fleet::{Database, DatabaseUrl, FleetClaim, FleetError, Retention, SessionId, TaskSpec};
use delegator_registry::{Idempotency, NewTask, OpenOptions, Registry, StateDir, TaskFile};
use serde_json::json;
use tempfile::TempDir;

use crate::attempt_control::AttemptControl;
use crate::following::{EventsUpload, Followed, follow, lost_contact};
use crate::local_tasks::remove_leftover;
use crate::port::{LocalRequest, StopSignals, WorkerError, WorkerEvent, WorkerPort, WorkerSettings};
use crate::run_attempt::{NotSubmitted, Work, find_or_submit, run_attempt};
use crate::run_worker::{run_sessions, with_cutoff_watch};
use crate::session::{SessionEnd, run_session};
use crate::worker_state::WorkerState;
use crate::workspace::Workspace;

/// A machine on which no task can be submitted.
#[derive(Default)]
struct Log {
    events: Mutex<Vec<WorkerEvent>>,
    added: Condvar,
}

impl WorkerPort for Log {
    fn build_submission(&self, _: &LocalRequest) -> Result<Submission, String> {
        Err("the configuration is wrong".to_owned())
    }

    fn report(&self, event: &WorkerEvent) {
        self.events.lock().unwrap().push(event.clone());
        self.added.notify_all();
    }
}

impl Log {
    fn wait_for(&self, is_meant: impl Fn(&WorkerEvent) -> bool) {
        let events = self.events.lock().unwrap();
        drop(self.added.wait_while(events, |events| !events.iter().any(&is_meant)).unwrap());
    }
}

struct World {
    folder: TempDir,
    engine: Engine,
    database: Database,
    log: Log,
    settings: WorkerSettings,
    workspace: Workspace,
    signals: StopSignals,
}

impl World {
    fn new() -> World {
        World::with_database("postgres:///fleet?host=/nowhere")
    }

    fn with_database(url: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let url = DatabaseUrl::parse(url).unwrap();
        let second = Duration::from_secs(1);
        World {
            // No task is started.
            engine: Engine::new(folder.path().join("state"), "/nowhere").with_max_concurrent(0),
            database: Database::new(&url),
            log: Log::default(),
            settings: WorkerSettings {
                name: "one".to_owned(),
                slots: 1,
                labels: [].into(),
                version: String::new(),
                lease: 180 * second,
                heartbeat_interval: 15 * second,
                cutoff: 150 * second,
                retention: Retention::default(),
                exit_when_idle: false,
                variables: Vec::new(),
                redactor: Redactor::builder().build(),
            },
            workspace: Workspace::open(&folder.path().join("workspace")).unwrap(),
            signals: StopSignals::default(),
            folder,
        }
    }

    fn shared(&self) -> WorkerState<'_> {
        let (engine, database) = (&self.engine, &self.database);
        WorkerState::new(engine, database, &self.log, &self.settings, &self.workspace, &self.signals)
    }

    /// A queued task of this machine, as the worker submits it for an attempt.
    fn submit(&self, control: &AttemptControl) -> TaskId {
        let dir = StateDir::open(&self.engine.state_dir, &OpenOptions::default()).unwrap();
        let id = TaskId::from_random(TaskLocation::Local, [7; 16]);
        let request = self.request(control);
        let task = NewTask {
            idempotency: Some(Idempotency::new(&request.idempotency_key, &request.idempotency_key)),
            ..NewTask::reading(id.clone(), request.working_dir.display().to_string(), "do it")
        };
        Registry::open(&dir).unwrap().submit(&task, b"{}", 1).unwrap();
        id
    }

    fn request(&self, control: &AttemptControl) -> LocalRequest {
        LocalRequest::new(control, &spec(), self.workspace.attempt(&control.claim).join("work"))
    }

    fn run_session(&self) -> Result<SessionEnd, FleetError> {
        let shared = self.shared();
        let is_over = AtomicBool::new(false);
        with_cutoff_watch(&shared, &is_over, |scope| run_session(&shared, scope, SessionId::random()))
    }

    /// Everything from the first contact with the database.
    fn run_sessions(&self) -> Result<(), WorkerError> {
        let shared = self.shared();
        with_cutoff_watch(&shared, &AtomicBool::new(false), |scope| run_sessions(&shared, scope))
    }

    fn problems(&self) -> usize {
        self.log.events.lock().unwrap().iter().filter(|event| is_problem(event)).count()
    }

    fn state(&self, id: &TaskId) -> State {
        self.engine.results().recorded_task(id).unwrap().state
    }
}

fn spec() -> TaskSpec {
    let spec = json!({
        "environment": "e", "repo_url": "/nowhere", "branch": null, "setup": null, "mode": "read-only", "push": false,
        "text": "do it", "title": "do it", "labels": {},
    });
    serde_json::from_value(spec).unwrap()
}

fn control() -> Arc<AttemptControl> {
    let claim = FleetClaim { task: "t".to_owned(), attempt: 1, session: SessionId::random() };
    Arc::new(AttemptControl::new(claim, "t".to_owned(), true))
}

fn is_problem(event: &WorkerEvent) -> bool {
    matches!(event, WorkerEvent::Problem { .. })
}

#[test]
fn a_task_that_was_submitted_is_found_even_if_it_has_ended_and_could_not_be_submitted_now() {
    let world = World::new();
    let (shared, control) = (world.shared(), control());
    let request = world.request(&control);
    let refused = find_or_submit(&shared, &control, &request);
    let message = "the worker one did not start the task: the configuration is wrong";
    assert!(matches!(refused, Err(NotSubmitted::Refused(refusal)) if refusal == message));
    let local = world.submit(&control);
    assert_eq!(find_or_submit(&shared, &control, &request).unwrap(), local);
    world.engine.cancellations().request(&local, Some("by a user")).unwrap();
    assert_eq!(find_or_submit(&shared, &control, &request).unwrap(), local);
    let reason = Some("by a user".to_owned());
    match follow(&shared, &control, &local) {
        Followed::Ended { end, .. } => assert_eq!(end, TaskEnd::Cancelled { reason }),
        _ => panic!("a task that ended is reported"),
    }
}

#[test]
fn a_task_is_not_given_up_because_the_registry_cannot_be_read() {
    let world = World::new();
    let (shared, control) = (world.shared(), control());
    let local = world.submit(&control);
    let (state, away) = (world.engine.state_dir.clone(), world.folder.path().join("away"));
    fs::rename(&state, &away).unwrap();
    fs::write(&state, "").unwrap();
    std::thread::scope(|scope| {
        let followed = scope.spawn(|| follow(&shared, &control, &local));
        world.log.wait_for(is_problem);
        fs::remove_file(&state).unwrap();
        fs::rename(&away, &state).unwrap();
        world.engine.cancellations().request(&local, None).unwrap();
        assert!(matches!(followed.join().unwrap(), Followed::Ended { .. }));
    });
}

#[test]
fn the_task_of_an_attempt_that_is_given_up_ends_before_the_fleet_knows() {
    let world = World::new();
    let (shared, control) = (world.shared(), control());
    let local = world.submit(&control);
    std::thread::scope(|scope| {
        scope.spawn(|| run_attempt(&shared, &control, &spec(), Work::GiveUp));
        while world.state(&local) != State::Cancelled {
            shared.engine.sleep(Duration::from_millis(10));
        }
        world.signals.abandon();
        shared.abandon_attempts();
        control.abandon();
    });
}

#[test]
fn the_third_signal_leaves_the_tasks_to_the_next_process() {
    let world = World::new();
    let (shared, control) = (world.shared(), control());
    let local = world.submit(&control);
    world.signals.abandon();
    for work in [Work::GiveUp, Work::Resume] {
        run_attempt(&shared, &control, &spec(), work);
    }
    assert_eq!(world.state(&local), State::Queued);
}

#[test]
fn events_that_cannot_be_read_are_a_warning() {
    let world = World::new();
    let (shared, control) = (world.shared(), control());
    let local = world.submit(&control);
    let dir = world.engine.results().task_dir(&local).unwrap().unwrap();
    let events: PathBuf = dir.file(TaskFile::Events);
    fs::create_dir(events).unwrap();
    // No pauses.
    control.abandon();
    let warnings = EventsUpload::new(&shared, &control, &dir).send_rest().unwrap();
    assert!(matches!(&warnings[..], [warning] if warning.contains("could not be read")), "{warnings:?}");
}

#[test]
fn only_a_task_that_ended_for_lack_of_contact_is_given_up() {
    let cancelled = |reason: &str| TaskEnd::Cancelled { reason: Some(reason.to_owned()) };
    let cutoff = Duration::from_secs(150);
    let cause = lost_contact(&cancelled(CONTACT_LOST), cutoff).unwrap();
    assert!(cause.contains("150 s"), "{cause}");
    for end in [TaskEnd::Completed, cancelled("by a user"), TaskEnd::Cancelled { reason: None }] {
        assert_eq!(lost_contact(&end, cutoff), None, "{end:?}");
    }
}

#[test]
fn a_draining_worker_without_tasks_exits_while_the_database_is_away() {
    let world = World::new();
    world.signals.add();
    assert_eq!(world.run_session().unwrap(), SessionEnd::Drained);
    assert_eq!(world.problems(), 1, "the session is not closed");
}

#[test]
fn the_third_signal_leaves_the_session_open() {
    let world = World::new();
    world.signals.abandon();
    assert_eq!(world.run_session().unwrap(), SessionEnd::Drained);
    assert_eq!(world.problems(), 0);
}

/// Answers each connection like a server that does not know the password.
fn refuse_passwords(listener: &TcpListener) {
    let answer = b"SFATAL\0VFATAL\0C28P01\0Mwrong password\0\0";
    let length = u32::try_from(answer.len() + 4).unwrap().to_be_bytes();
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let _ = connection.read(&mut [0; 1024]).unwrap();
        connection.write_all(&[b"E", &length[..], answer].concat()).unwrap();
    }
}

/// A worker whose password is wrong.
fn refused_world() -> World {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || refuse_passwords(&listener));
    World::with_database(&format!("postgres://me@127.0.0.1:{port}/fleet?sslmode=disable"))
}

#[test]
fn a_worker_waits_for_a_database_that_is_away_until_it_is_stopped() {
    let world = World::new();
    std::thread::scope(|scope| {
        let sessions = scope.spawn(|| world.run_sessions());
        world.log.wait_for(|event| matches!(event, WorkerEvent::Waiting { .. }));
        world.signals.add();
        sessions.join().unwrap().unwrap();
    });
    assert_eq!(world.log.events.lock().unwrap().len(), 1, "one line, however often it tried");
}

#[test]
fn a_worker_that_waiting_does_not_help_ends_with_the_error() {
    let outcome = refused_world().run_sessions();
    assert!(matches!(outcome, Err(WorkerError::Fleet(FleetError::NotAdmitted { .. }))), "{outcome:?}");
    // One that ends when there are no tasks does not wait for a database either.
    let mut world = World::new();
    world.settings.exit_when_idle = true;
    let outcome = world.run_sessions();
    assert!(matches!(outcome, Err(WorkerError::Fleet(FleetError::Unreachable { .. }))), "{outcome:?}");
}

#[test]
fn a_worker_that_is_not_admitted_ends_with_the_error_at_its_cutoff() {
    let mut world = refused_world();
    world.settings.cutoff = Duration::from_millis(300);
    let outcome = world.run_session();
    assert!(matches!(outcome, Err(FleetError::NotAdmitted { .. })), "{outcome:?}");
}

#[test]
fn a_panic_of_the_session_ends_the_worker_and_leaves_its_tasks() {
    let world = World::new();
    let (shared, is_over) = (world.shared(), AtomicBool::new(false));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        with_cutoff_watch(&shared, &is_over, |_| panic!("expected"));
    }));
    assert!(panicked.is_err());
    assert!(world.signals.is_abandoning());
}

#[test]
fn a_leftover_is_removed_only_when_its_task_has_ended() {
    let world = World::new();
    let (shared, control) = (world.shared(), control());
    let local = world.submit(&control);
    let dir = world.workspace.attempt(&control.claim);
    fs::create_dir_all(&dir).unwrap();
    remove_leftover(&shared, &dir);
    assert_eq!(world.state(&local), State::Cancelled);
    assert!(!dir.exists());
    fs::create_dir_all(&dir).unwrap();
    fs::remove_dir_all(&world.engine.state_dir).unwrap();
    fs::write(&world.engine.state_dir, "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| remove_leftover(&shared, &dir));
        world.signals.abandon();
    });
    assert!(dir.exists());
}
