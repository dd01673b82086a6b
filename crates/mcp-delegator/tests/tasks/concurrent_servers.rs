//! Three servers on one state directory with real supervisors and agents. Each submits, cancels, waits, queries, cleans,
//! pauses the queue, restarts, and kills supervisors in a seeded random order; every observed state is checked.
//!
//! A history is linearizable per task if every observation fits some moment between its request and its response. The
//! registry stores every transition, so the check is simple: ordered by time, the observed states follow the path of the
//! task and never go back. `PLAN_SEED` selects another plan.

#![expect(clippy::disallowed_methods, reason = "a variable selects the plan")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use delegator_domain::task::{FailureKind, Mode, RunSettings, State, TaskEnd, TaskId};
use delegator_engine::wait_thread::{WaitGoal, WaitThread};
use delegator_engine::{Agent, CleanRequest, Ending, Engine, EngineError, Settings, Submission, clean};
use delegator_registry::{OpenOptions, Registry, StateDir, Task};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::PROGRAM;
use crate::scripted::{self, agent_starts, processes_with_environment, supervisors, wait_until};

const SERVERS: u64 = 3;
const ACTIONS: usize = 24;

/// A small deterministic random number generator.
struct Rng(u64);

impl Rng {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % max
    }
}

/// A state that a caller observed, and the interval in which it was true.
#[derive(Debug)]
struct Observation {
    requested_at: u64,
    responded_at: u64,
    state: State,
}

/// State shared by all servers: the tasks, and every observation of them.
struct SharedWorld {
    engine: Engine,
    root: PathBuf,
    clock: AtomicU64,
    tasks: Mutex<Vec<TaskId>>,
    observations: Mutex<BTreeMap<TaskId, Vec<Observation>>>,
}

impl SharedWorld {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, requested_at: u64, task: &Task) {
        let observation = Observation { requested_at, responded_at: self.tick(), state: task.state };
        self.observations.lock().unwrap().entry(task.id.clone()).or_default().push(observation);
    }

    fn random_task(&self, rng: &mut Rng) -> Option<TaskId> {
        let tasks = self.tasks.lock().unwrap();
        (!tasks.is_empty()).then(|| tasks[rng.below(tasks.len())].clone())
    }

    /// One server: runs random actions.
    fn run_server(&self, seed: u64) {
        let mut rng = Rng(seed);
        let mut wait_thread = WaitThread::start(self.engine.clone()).unwrap();
        for _ in 0..ACTIONS {
            let requested_at = self.tick();
            match (rng.below(12), self.random_task(&mut rng)) {
                (0..=3, _) | (_, None) => {
                    let submitted = self.engine.submissions().submit(self.submission(&mut rng)).unwrap();
                    self.record(requested_at, &submitted.task);
                    self.tasks.lock().unwrap().push(submitted.task.id);
                }
                (4..=5, Some(id)) => self.cancel(requested_at, &id, &mut rng),
                (6..=7, Some(id)) => self.record(requested_at, &self.engine.results().task(&id).unwrap()),
                (8..=9, Some(id)) => self.wait(&wait_thread, requested_at, id, &mut rng),
                (10, Some(_)) if rng.below(2) == 0 => {
                    drop(wait_thread);
                    wait_thread = WaitThread::start(self.engine.clone()).unwrap();
                }
                (10, Some(_)) if rng.below(3) == 0 => self.kill_a_supervisor(),
                (10, Some(_)) => {
                    let stuck_only = CleanRequest {
                        stuck_after_ms: 0,
                        old_after_ms: 1 << 40,
                        dry_run: false,
                        include_restore_points: false,
                        trust_clock: false,
                        environment: Vec::new(),
                    };
                    clean(&self.engine, &stuck_only).unwrap();
                }
                (_, Some(_)) => drop(self.engine.queue().set_paused(rng.below(3) == 0).unwrap()),
            }
        }
    }

    fn kill_a_supervisor(&self) {
        if let Some(pid) = supervisors(&self.root).pop() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }

    fn cancel(&self, requested_at: u64, id: &TaskId, rng: &mut Rng) {
        let timeout = Duration::from_millis(rng.below(3_000) as u64);
        match self.engine.cancellations().cancel(id, Some("not wanted"), timeout) {
            Ok(cancelled) => {
                assert_eq!(cancelled.still_ending, !cancelled.task.state.is_terminal());
                self.record(requested_at, &cancelled.task);
            }
            Err(EngineError::AlreadyEnded { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn wait(&self, wait_thread: &WaitThread, requested_at: u64, id: TaskId, rng: &mut Rng) {
        let (sender, receiver) = channel();
        let deadline = Instant::now() + Duration::from_millis(rng.below(700) as u64);
        let on_end = Box::new(move |watched| drop(sender.send(watched)));
        let ticket = wait_thread.wait(vec![id], WaitGoal::All, Some(deadline), on_end, None);
        if rng.below(5) == 0 {
            // A caller that drops its ticket ends the wait, never the task.
            return drop(ticket);
        }
        let watched = receiver.recv().unwrap().unwrap();
        assert_eq!(watched.expired, !watched.tasks[0].state.is_terminal());
        self.record(requested_at, &watched.tasks[0]);
    }

    fn submission(&self, rng: &mut Rng) -> Submission {
        let mode = if rng.below(2) == 0 { Mode::ReadOnly } else { Mode::WorkspaceWrite };
        let program = self.root.join("bin/codex");
        Submission {
            text: "do it".to_owned(),
            settings: settings(mode, &self.root.join("project")),
            agent: Agent::built_in(program, None),
            fallbacks: Vec::new(),
            skipped: Vec::new(),
            max_mode: Mode::WorkspaceWrite,
            environment: [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into(),
            passed_variables: Vec::new(),
            secret_names: Vec::new(),
            umask: 0o022,
            title: "do it".to_owned(),
            labels: BTreeMap::new(),
            input: json!({}),
            allow_parallel_writes: false,
            nesting: delegator_engine::Nesting { parent: None, max_depth: 0, max_children: 0 },
            idempotency: None,
            reviews: None,
            report_of: None,
            isolation: delegator_engine::Isolation::None,
            followers: Vec::new(),
        }
    }
}

fn settings(mode: Mode, project: &Path) -> Settings {
    let plain = Settings::plain(mode, project.to_owned());
    Settings {
        run: RunSettings { skip_git_repo_check: true, ..plain.run },
        ending: Ending { interrupt_grace_sec: 1, terminate_grace_sec: 1 },
        max_stream_bytes: 1 << 20,
        max_processes: 64,
        ..plain
    }
}

/// Whether all observations are possible: a request after another one's response never observes an earlier state.
fn is_linearizable(path: &[State], observations: &mut [Observation]) -> bool {
    observations.sort_by_key(|observation| observation.requested_at);
    let mut placed: Vec<(u64, usize)> = Vec::new();
    observations.iter().all(|observation| {
        let before = placed.iter().filter(|(responded_at, _)| *responded_at < observation.requested_at);
        let from = before.map(|(_, index)| *index).max().unwrap_or(0);
        let index = (from..path.len()).find(|index| path[*index] == observation.state);
        placed.extend(index.map(|index| (observation.responded_at, index)));
        index.is_some()
    })
}

fn check_history(world: &SharedWorld, seed: u64) {
    let dir = StateDir::open(&world.engine.state_dir, &OpenOptions::default()).unwrap();
    let registry = Registry::open(&dir).unwrap();
    registry.check().unwrap();
    let (starts, mut all_observations) = (agent_starts(&world.root), world.observations.lock().unwrap());
    for id in world.tasks.lock().unwrap().iter() {
        let task = registry.get(id).unwrap().unwrap();
        let path: Vec<State> = registry.history_of(id).unwrap().iter().map(|entry| entry.to).collect();
        let observed = all_observations.get_mut(id).unwrap();
        assert!(is_linearizable(&path, observed), "PLAN_SEED={seed}: path {path:?}, observed {observed:?}");
        assert_eq!(path.iter().filter(|state| state.is_terminal()).count(), 1, "PLAN_SEED={seed}: {path:?}");
        let mut ends = observed.iter().filter(|observation| observation.state.is_terminal());
        assert!(
            ends.all(|observation| observation.state == task.state),
            "PLAN_SEED={seed}: a terminal state was reported differently: {observed:?}"
        );
        let started = starts.get(id.as_str()).copied().unwrap_or(0);
        assert!(started <= 1, "PLAN_SEED={seed}: {id} was started {started} times");
        assert!(started == 0 || path.contains(&State::Working), "PLAN_SEED={seed}: {path:?}");
        assert!(task.state != State::Completed || started == 1, "PLAN_SEED={seed}: {path:?}");
        assert_eq!(processes_with_environment(&format!("DELEGATOR_TASK={id}:")), Vec::<i32>::new());
    }
}

#[test]
fn three_servers_produce_a_linearizable_history() {
    match std::env::var("PLAN_SEED").ok().and_then(|text| text.parse().ok()) {
        Some(seed) => eprintln!("{}", run_plan(seed)),
        None => (1..=3).for_each(|seed| eprintln!("{}", run_plan(seed))),
    }
}

/// Runs one plan and returns a summary.
fn run_plan(seed: u64) -> String {
    let (world, root) = scripted::world(&json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"delay_between_ms": [0, 150]},
        {"message": "done"}, {"turn_completed": {}}
    ]));
    let engine = Engine::new(world.home().join("state"), PROGRAM).with_max_concurrent(3);
    let (tasks, observations) = (Mutex::default(), Mutex::default());
    let shared = SharedWorld { engine, root, clock: AtomicU64::new(0), tasks, observations };
    std::thread::scope(|scope| {
        let servers = (0..SERVERS).map(|server| seed * SERVERS + server);
        let servers: Vec<_> = servers
            .map(|seed| {
                scope.spawn({
                    let shared = &shared;
                    move || shared.run_server(seed)
                })
            })
            .collect();
        for server in servers {
            server.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked));
        }
    });
    shared.engine.queue().set_paused(false).unwrap();
    let wait_thread = WaitThread::start(shared.engine.clone()).unwrap();
    let (sender, receiver) = channel();
    let ids = shared.tasks.lock().unwrap().clone();
    let requested_at = shared.tick();
    let deadline = Some(Instant::now() + Duration::from_secs(60));
    let ticket = wait_thread.wait(
        ids.clone(),
        WaitGoal::All,
        deadline,
        Box::new(move |watched| drop(sender.send(watched))),
        None,
    );
    let watched = receiver.recv().unwrap().unwrap();
    drop(ticket);
    assert!(
        !watched.expired,
        "PLAN_SEED={seed}: {:?}",
        watched.tasks.iter().map(|task| task.state).collect::<Vec<_>>()
    );
    watched.tasks.iter().for_each(|task| shared.record(requested_at, task));
    wait_until("every supervisor has exited", || supervisors(&shared.root).is_empty());
    check_history(&shared, seed);
    let observed: usize = shared.observations.lock().unwrap().values().map(Vec::len).sum();
    let count_in = |state| watched.tasks.iter().filter(|task| task.state == state).count();
    let (completed, cancelled) = (count_in(State::Completed), count_in(State::Cancelled));
    let lost = watched.tasks.iter().filter(|task| is_lost(task)).count();
    let is_expected =
        |task: &&Task| is_lost(task) || matches!(task.state, State::Completed | State::Cancelled);
    let unexpected: Vec<_> = watched.tasks.iter().filter(|task| !is_expected(task)).collect();
    assert!(unexpected.is_empty(), "PLAN_SEED={seed}: {unexpected:#?}");
    assert!(completed > 0, "PLAN_SEED={seed}: no task completed");
    format!("seed {seed}: {completed} completed, {cancelled} cancelled, {lost} lost, {observed} observations")
}

fn is_lost(task: &Task) -> bool {
    let end = task.ended.as_ref().map(|ended| &ended.end);
    matches!(end, Some(TaskEnd::Failed { kind: FailureKind::SupervisorLost, .. }))
}

#[test]
fn a_state_that_goes_back_is_not_linearizable() {
    use State::{Queued, Starting, Working};
    let observations = |all: &[(u64, u64, State)]| {
        all.iter()
            .map(|(requested_at, responded_at, state)| Observation {
                requested_at: *requested_at,
                responded_at: *responded_at,
                state: *state,
            })
            .collect::<Vec<_>>()
    };
    let path = [Queued, Starting, Queued, Starting, Working, State::Completed];
    assert!(is_linearizable(&path, &mut observations(&[(0, 1, Starting), (2, 3, Queued), (4, 5, Working)])));
    assert!(!is_linearizable(&path, &mut observations(&[(0, 1, Working), (2, 3, Queued)])), "goes back");
    assert!(is_linearizable(&path, &mut observations(&[(0, 5, Working), (2, 3, Queued)])), "concurrent");
    assert!(!is_linearizable(&path, &mut observations(&[(0, 1, State::Failed)])), "never in that state");
}
