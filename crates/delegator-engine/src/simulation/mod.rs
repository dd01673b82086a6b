//! The stage: real engine code in several actors, of which exactly one moves at a time.
//!
//! Every actor has a thread, but only the one whose turn it is runs; the others wait at the crash point they came to. So
//! a plan is played the same way every time. An actor that is killed unwinds from its crash point: its locks are dropped
//! with it, as the kernel would do, and nothing else of what it meant to do is done.
//!
//! The machine around the engine is a small one: a clock that moves when the director says so, agents that are a number,
//! and supervisors that are actors like all others.

mod rng;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use delegator_domain::task::{FailureKind, LimitKind, TaskEnd, TaskId};
use delegator_registry::Nonce;
use delegator_supervisor::run::{PartialOutput, Ports, RunResult, StreamSummary};
use delegator_supervisor::verdict::RefusedCalls;
use delegator_transcript::{FoldOptions, LineLimits, Summarizer};

pub(crate) use self::rng::Rng;
use crate::Engine;
use crate::error::EngineError;

/// Long before any file of a plan was made, so that none looks old.
const BEGINNING_MS: i64 = 1_000_000_000_000;

/// The code of a supervisor process. The model passes it in, because it lies above this module.
pub(crate) type SuperviseFn = fn(&Engine, &TaskId, &Nonce, OwnedFd) -> Result<(), EngineError>;

#[derive(Debug)]
pub(crate) struct Simulator {
    state: Mutex<SimulatorState>,
    turn_changed: Condvar,
    supervise: SuperviseFn,
}

/// All that is known of the world beside the registry.
#[derive(Debug)]
pub(crate) struct SimulatorState {
    /// The actor that moves; nobody: the director.
    turn: Option<usize>,
    actors: Vec<Actor>,
    threads: Vec<JoinHandle<()>>,
    now_ms: i64,
    pub(super) rng: Rng,
    /// Agents that are alive.
    pub(super) agents: BTreeMap<TaskId, u32>,
    /// How often an agent was started for a task.
    pub(super) starts: BTreeMap<TaskId, u32>,
    /// Which actor supervises which attempt.
    supervisors: BTreeMap<String, usize>,
    /// What was promised to whom.
    pub(super) acknowledged: Vec<(TaskId, Option<String>)>,
    /// Threads agents have told of.
    pub(super) announced: Vec<String>,
    pub(super) problems: Vec<String>,
    pub(super) trace: Vec<String>,
}

#[derive(Debug)]
struct Actor {
    name: String,
    is_over: bool,
    is_killed: bool,
    /// It gets its turn seldom: what takes long in the middle of something finds the world changed.
    is_slow: bool,
}

/// What unwinds a killed actor.
struct Killed;

thread_local! {
    static CURRENT_ACTOR: RefCell<Option<(Arc<Simulator>, usize)>> = const { RefCell::new(None) };
}

/// Asks the stage, if the caller is an actor on one.
pub(crate) fn in_simulation<T>(use_simulator: impl FnOnce(&Arc<Simulator>) -> T) -> Option<T> {
    let simulator = CURRENT_ACTOR.with_borrow(|me| me.as_ref().map(|(stage, _)| Arc::clone(stage)))?;
    Some(use_simulator(&simulator))
}

impl Simulator {
    pub(super) fn new(seed: u64, supervise: SuperviseFn) -> Arc<Simulator> {
        // Once for the process; actors of all plans come through here.
        delegator_domain::crash::set_crash_hook(Box::new(|point| {
            let _ = in_simulation(|stage| stage.pause(point.name()));
        }));
        let scene = SimulatorState {
            turn: None,
            actors: Vec::new(),
            threads: Vec::new(),
            now_ms: BEGINNING_MS,
            rng: Rng::new(seed),
            agents: BTreeMap::new(),
            starts: BTreeMap::new(),
            supervisors: BTreeMap::new(),
            acknowledged: Vec::new(),
            announced: Vec::new(),
            problems: Vec::new(),
            trace: Vec::new(),
        };
        Arc::new(Simulator { state: Mutex::new(scene), turn_changed: Condvar::new(), supervise })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SimulatorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets somebody come on. It waits for its turn.
    pub(super) fn spawn(self: &Arc<Self>, name: String, body: impl FnOnce(&Arc<Simulator>) + Send + 'static) {
        let mut scene = self.state();
        let me = scene.actors.len();
        let is_slow = scene.rng.one_in(4);
        scene.actors.push(Actor { name, is_over: false, is_killed: false, is_slow });
        let simulator = Arc::clone(self);
        scene.threads.push(std::thread::spawn(move || {
            CURRENT_ACTOR.set(Some((Arc::clone(&simulator), me)));
            let ended = catch_unwind(AssertUnwindSafe(|| {
                simulator.await_turn(me);
                body(&simulator);
            }));
            let mut scene = simulator.state();
            if ended.is_err_and(|why| !why.is::<Killed>()) {
                let name = scene.actors[me].name.clone();
                scene.problems.push(format!("{name} panicked"));
            }
            scene.actors[me].is_over = true;
            scene.turn = None;
            simulator.turn_changed.notify_all();
        }));
    }

    fn await_turn(&self, me: usize) {
        let mut scene = self.state();
        while scene.turn != Some(me) {
            scene = self.turn_changed.wait(scene).unwrap_or_else(PoisonError::into_inner);
        }
        let is_killed = scene.actors[me].is_killed;
        drop(scene);
        if is_killed {
            resume_unwind(Box::new(Killed));
        }
    }

    /// An actor gives its turn away, and goes on, or ends, when it comes back.
    pub(super) fn pause(&self, location: &str) {
        let Some(me) = CURRENT_ACTOR.with_borrow(|me| me.as_ref().map(|(_, me)| *me)) else { return };
        if std::thread::panicking() {
            return;
        }
        {
            let mut scene = self.state();
            let line = format!("  {} came to {location}", scene.actors[me].name);
            scene.trace.push(line);
            let changes = if scene.actors[me].is_slow { 2 } else { 8 };
            scene.actors[me].is_slow ^= scene.rng.one_in(changes);
            scene.turn = None;
            self.turn_changed.notify_all();
        }
        self.await_turn(me);
    }

    /// Those that can move.
    pub(super) fn actors(&self) -> Vec<usize> {
        let scene = self.state();
        (0..scene.actors.len()).filter(|one| !scene.actors[*one].is_over).collect()
    }

    /// The one that moves next, if somebody can.
    pub(super) fn next(&self) -> Option<usize> {
        let actors = self.actors();
        let mut scene = self.state();
        let quick: Vec<usize> = actors.iter().copied().filter(|one| !scene.actors[*one].is_slow).collect();
        let some = if quick.is_empty() || scene.rng.one_in(12) { actors } else { quick };
        (!some.is_empty()).then(|| *scene.rng.pick(&some))
    }

    /// One actor moves to its next crash point.
    pub(super) fn step(&self, actor: usize) {
        let mut scene = self.state();
        let max_ms = if scene.rng.one_in(16) { 4_000 } else { 250 };
        scene.now_ms += scene.rng.below(max_ms).cast_signed();
        scene.turn = Some(actor);
        self.turn_changed.notify_all();
        while scene.turn.is_some() {
            scene = self.turn_changed.wait(scene).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One actor dies where it stands.
    pub(super) fn kill(&self, actor: usize) {
        let mut scene = self.state();
        scene.actors[actor].is_killed = true;
        let line = format!("kill {}", scene.actors[actor].name);
        scene.trace.push(line);
        drop(scene);
        self.step(actor);
    }

    /// Everybody dies, agents too.
    pub(super) fn reboot(&self) {
        self.state().trace.push("reboot".to_owned());
        self.actors().into_iter().for_each(|actor| self.kill(actor));
        self.state().agents.clear();
    }

    pub(super) fn pass_time(&self, length_ms: i64) {
        self.state().now_ms += length_ms;
    }

    /// Waits for threads that have nothing left to do.
    pub(super) fn close(&self) {
        self.actors().into_iter().for_each(|actor| self.kill(actor));
        let threads = std::mem::take(&mut self.state().threads);
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl SimulatorState {
    /// Whether somebody lives who was started for this attempt.
    pub(super) fn is_supervised(&self, nonce: &Nonce) -> bool {
        self.supervisors.get(nonce.as_str()).is_some_and(|actor| !self.actors[*actor].is_over)
    }
}

/// What the engine finds in place of the machine.
impl Simulator {
    pub(crate) fn now_ms(&self) -> i64 {
        self.state().now_ms
    }

    pub(crate) fn random_bits(&self) -> [u8; 16] {
        let mut scene = self.state();
        let (one, other) = (scene.rng.next_u64(), scene.rng.next_u64());
        ((u128::from(one) << 64) | u128::from(other)).to_be_bytes()
    }

    pub(crate) fn sleep(&self, length: Duration) {
        self.pass_time(i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
        self.pause("a nap");
    }

    pub(crate) fn start_supervisor(
        self: &Arc<Self>,
        engine: &Engine,
        id: &TaskId,
        nonce: &Nonce,
        lock: OwnedFd,
    ) -> Result<(), EngineError> {
        {
            let mut scene = self.state();
            if scene.rng.one_in(12) {
                scene.trace.push("  no supervisor could be started".to_owned());
                let source = std::io::ErrorKind::WouldBlock.into();
                return Err(EngineError::Io { doing: "start a supervisor", source });
            }
            let actor = scene.actors.len();
            scene.supervisors.insert(nonce.as_str().to_owned(), actor);
        }
        let (engine, id, nonce) = (engine.clone(), id.clone(), nonce.clone());
        let name = format!("supervisor {}:{}", short(&id), &nonce.as_str()[..4]);
        self.spawn(name, move |stage| {
            if let Err(error) = (stage.supervise)(&engine, &id, &nonce, lock) {
                stage.state().problems.push(format!("the supervisor of {} failed: {error}", short(&id)));
            }
        });
        Ok(())
    }

    /// What a rescuer does about an agent that outlived its supervisor.
    pub(crate) fn sweep(&self, id: &TaskId) {
        self.state().agents.remove(id);
    }

    /// An agent: takes its input, tells of its thread, works for some steps, and ends somehow.
    pub(crate) fn run_agent(&self, id: &TaskId, ports: &dyn Ports) -> RunResult {
        {
            let mut scene = self.state();
            *scene.starts.entry(id.clone()).or_default() += 1;
            *scene.agents.entry(id.clone()).or_default() += 1;
        }
        self.pause("the agent lives");
        ports.on_stdin_delivered();
        let thread = format!("thread of {}", short(id));
        ports.on_thread(&thread);
        // Nobody can ask for a thread that was not told of.
        self.state().announced.push(thread);
        let end = loop {
            if let Some(request) = ports.cancel_requested() {
                break TaskEnd::Cancelled { reason: request.reason };
            }
            self.pause("the agent works");
            let mut scene = self.state();
            if scene.rng.one_in(4) {
                let kind = FailureKind::AgentExit;
                let failed = TaskEnd::Failed { kind, message: "it broke".to_owned(), retry_at: None };
                let ends =
                    [TaskEnd::Completed, TaskEnd::Completed, failed, TaskEnd::Timeout(LimitKind::Idle)];
                break scene.rng.pick(&ends).clone();
            }
        };
        self.state().agents.remove(id);
        self.pause("the agent is gone");
        ended(end)
    }
}

fn ended(end: TaskEnd) -> RunResult {
    RunResult {
        refused: RefusedCalls::default(),
        end,
        exit: None,
        thread_id: None,
        report: Summarizer::new(FoldOptions::default(), LineLimits::STANDARD).finish(),
        report_json: "{}".to_owned(),
        warnings: Vec::new(),
        partial: PartialOutput::default(),
        stdout: StreamSummary::default(),
        stderr: StreamSummary::default(),
        signals: Vec::new(),
        sweep: delegator_supervisor::process::SweepReport::default(),
        elapsed: Duration::ZERO,
        quiet: Duration::ZERO,
        stdin_delivered: true,
        verification: None,
    }
}

/// Enough of an id to tell it from others in a plan.
pub(super) fn short(id: &TaskId) -> &str {
    &id.as_str()[8..12]
}
