//! Deterministic simulation for tests: runs engine code in several actors, exactly one at a time.
//!
//! Every actor has a thread, but only the actor whose turn it is runs; the others wait at a crash point. So
//! the same seed always gives the same run. A killed actor unwinds from its crash point: its locks are
//! released, as the kernel would do, and nothing else happens.
//!
//! [`SimulatedMachine`] is the [`System`] of the engines in it: the clock moves only when a step or the model
//! moves it, an agent is a counter, a supervisor is an actor, and background work runs at once.

mod rng;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use delegator_domain::crash::{CrashPoint, set_crash_hook};
use delegator_domain::message::MessageNumber;
use delegator_domain::task::{FailureKind, LimitKind, TaskEnd, TaskId};
use delegator_registry::{Finish, Nonce, Registry};
use delegator_supervisor::process::OwnerLookup;
use delegator_supervisor::run::{MessageOutcome, Ports, RunResult, RunSpec};

pub(crate) use self::rng::Rng;
use crate::Engine;
use crate::error::EngineError;
use crate::prune;
use crate::supervise::lost_run::finish_lost_run;
use crate::supervise::received_signals::EndSignals;
use crate::supervise::supervisor_process::{Inherited, supervise_task};
use crate::system_port::{BackgroundJob, BootTime, System};

/// Long before the modification time of any real file, so that no file looks old.
const BEGINNING_MS: i64 = 1_000_000_000_000;

#[derive(Debug)]
pub(crate) struct Simulator {
    state: Mutex<SimulatorState>,
    turn_changed: Condvar,
}

/// The state of the simulated machine.
#[derive(Debug)]
pub(crate) struct SimulatorState {
    /// The actor that runs; `None`: the model.
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
    /// Successful submissions, with their idempotency keys.
    pub(super) acknowledged: Vec<(TaskId, Option<String>)>,
    /// Messages that were confirmed to their senders.
    pub(super) sent: Vec<(TaskId, MessageNumber)>,
    /// Messages that were written to agents, in order.
    pub(super) delivered: Vec<(TaskId, MessageNumber)>,
    /// Threads that agents have announced.
    pub(super) announced: Vec<String>,
    pub(super) problems: Vec<String>,
    pub(super) trace: Vec<String>,
}

#[derive(Debug)]
struct Actor {
    name: String,
    is_over: bool,
    is_killed: bool,
    /// A slow actor rarely gets a turn, so much has changed when it continues.
    is_slow: bool,
}

/// The panic payload that unwinds a killed actor.
struct Killed;

thread_local! {
    static CURRENT_ACTOR: RefCell<Option<(Arc<Simulator>, usize)>> = const { RefCell::new(None) };
}

/// Ends the turn of the current actor; does nothing if this thread is not an actor.
fn pause_at_crash_point(point: CrashPoint) {
    let simulator = CURRENT_ACTOR.with_borrow(|actor| Some(Arc::clone(&actor.as_ref()?.0)));
    if let Some(simulator) = simulator {
        simulator.pause(point.name());
    }
}

impl Simulator {
    pub(super) fn new(seed: u64) -> Arc<Simulator> {
        // The hook is global: it serves the actors of all simulators.
        set_crash_hook(Box::new(pause_at_crash_point));
        let state = SimulatorState {
            turn: None,
            actors: Vec::new(),
            threads: Vec::new(),
            now_ms: BEGINNING_MS,
            rng: Rng::new(seed),
            agents: BTreeMap::new(),
            starts: BTreeMap::new(),
            supervisors: BTreeMap::new(),
            acknowledged: Vec::new(),
            sent: Vec::new(),
            delivered: Vec::new(),
            announced: Vec::new(),
            problems: Vec::new(),
            trace: Vec::new(),
        };
        Arc::new(Simulator { state: Mutex::new(state), turn_changed: Condvar::new() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SimulatorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an actor. It waits for its turn.
    pub(super) fn spawn(self: &Arc<Self>, name: String, body: impl FnOnce(&Arc<Simulator>) + Send + 'static) {
        let mut state = self.state();
        let index = state.actors.len();
        let is_slow = state.rng.one_in(4);
        state.actors.push(Actor { name, is_over: false, is_killed: false, is_slow });
        let simulator = Arc::clone(self);
        state.threads.push(std::thread::spawn(move || {
            CURRENT_ACTOR.set(Some((Arc::clone(&simulator), index)));
            let ended = catch_unwind(AssertUnwindSafe(|| {
                simulator.await_turn(index);
                body(&simulator);
            }));
            let mut state = simulator.state();
            if ended.is_err_and(|payload| !payload.is::<Killed>()) {
                let name = state.actors[index].name.clone();
                state.problems.push(format!("{name} panicked"));
            }
            state.actors[index].is_over = true;
            state.turn = None;
            simulator.turn_changed.notify_all();
        }));
    }

    fn await_turn(&self, index: usize) {
        let mut state = self.state();
        while state.turn != Some(index) {
            state = self.turn_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_killed = state.actors[index].is_killed;
        drop(state);
        if is_killed {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Ends the turn of the current actor; returns, or unwinds, at its next turn.
    pub(super) fn pause(&self, location: &str) {
        let Some(index) = CURRENT_ACTOR.with_borrow(|actor| actor.as_ref().map(|(_, index)| *index)) else {
            return;
        };
        if std::thread::panicking() {
            return;
        }
        {
            let mut state = self.state();
            let line = format!("  {} reached {location}", state.actors[index].name);
            state.trace.push(line);
            let changes = if state.actors[index].is_slow { 2 } else { 8 };
            state.actors[index].is_slow ^= state.rng.one_in(changes);
            state.turn = None;
            self.turn_changed.notify_all();
        }
        self.await_turn(index);
    }

    /// The actors that have not ended.
    pub(super) fn actors(&self) -> Vec<usize> {
        let state = self.state();
        (0..state.actors.len()).filter(|actor| !state.actors[*actor].is_over).collect()
    }

    /// Picks the actor for the next step.
    pub(super) fn next(&self) -> Option<usize> {
        let actors = self.actors();
        let mut state = self.state();
        let quick: Vec<usize> =
            actors.iter().copied().filter(|actor| !state.actors[*actor].is_slow).collect();
        let candidates = if quick.is_empty() || state.rng.one_in(12) { actors } else { quick };
        (!candidates.is_empty()).then(|| *state.rng.pick(&candidates))
    }

    /// Runs one actor to its next crash point.
    pub(super) fn step(&self, actor: usize) {
        let mut state = self.state();
        let max_ms = if state.rng.one_in(16) { 4_000 } else { 250 };
        state.now_ms += state.rng.below(max_ms).cast_signed();
        state.turn = Some(actor);
        self.turn_changed.notify_all();
        while state.turn.is_some() {
            state = self.turn_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Kills one actor at its crash point.
    pub(super) fn kill(&self, actor: usize) {
        let mut state = self.state();
        state.actors[actor].is_killed = true;
        let line = format!("kill {}", state.actors[actor].name);
        state.trace.push(line);
        drop(state);
        self.step(actor);
    }

    /// Kills all actors and agents.
    pub(super) fn reboot(&self) {
        self.state().trace.push("reboot".to_owned());
        self.actors().into_iter().for_each(|actor| self.kill(actor));
        self.state().agents.clear();
    }

    pub(super) fn pass_time(&self, length_ms: i64) {
        self.state().now_ms += length_ms;
    }

    /// Kills the remaining actors and joins all threads.
    pub(super) fn close(&self) {
        self.actors().into_iter().for_each(|actor| self.kill(actor));
        let threads = std::mem::take(&mut self.state().threads);
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl SimulatorState {
    /// Whether the supervisor of this attempt is alive.
    pub(super) fn is_supervised(&self, nonce: &Nonce) -> bool {
        self.supervisors.get(nonce.as_str()).is_some_and(|actor| !self.actors[*actor].is_over)
    }
}

/// What the [`System`] of the simulation does.
impl Simulator {
    fn start_supervisor(
        self: &Arc<Self>,
        engine: &Engine,
        id: &TaskId,
        nonce: &Nonce,
        lock: OwnedFd,
    ) -> Result<(), EngineError> {
        {
            let mut state = self.state();
            if state.rng.one_in(12) {
                state.trace.push("  could not start a supervisor".to_owned());
                let source = std::io::ErrorKind::WouldBlock.into();
                return Err(EngineError::Io { doing: "start a supervisor", source });
            }
            let actor = state.actors.len();
            state.supervisors.insert(nonce.as_str().to_owned(), actor);
        }
        let (engine, id, nonce) = (engine.clone(), id.clone(), nonce.clone());
        let name = format!("supervisor {}:{}", short(&id), &nonce.as_str()[..4]);
        self.spawn(name, move |simulator| {
            let inherited = Inherited { lock, signals: EndSignals::default() };
            if let Err(error) = supervise_task(&engine, &id, &nonce, inherited) {
                simulator.state().problems.push(format!("the supervisor of {} failed: {error}", short(&id)));
            }
        });
        Ok(())
    }

    /// Writes a message to the agent, which may end before it confirms it.
    fn deliver(&self, id: &TaskId, message: MessageNumber, ports: &dyn Ports) {
        self.state().delivered.push((id.clone(), message));
        self.pause("message written");
        let is_confirmed = self.state().rng.one_in(2);
        if is_confirmed {
            ports.on_message_settled(message, MessageOutcome::Accepted);
        }
    }

    /// An agent: reads its input, announces its thread, works for some steps, and ends at random.
    fn run_agent(&self, id: &TaskId, ports: &dyn Ports) -> RunResult {
        {
            let mut state = self.state();
            *state.starts.entry(id.clone()).or_default() += 1;
            *state.agents.entry(id.clone()).or_default() += 1;
        }
        self.pause("agent started");
        ports.on_stdin_delivered();
        // A later task may get the id of a deleted one, but never its thread.
        let thread = format!("thread {} of {}", self.state().announced.len(), short(id));
        ports.on_thread(&thread);
        // Only announced threads can be resumed.
        self.state().announced.push(thread);
        let end = loop {
            if let Some(request) = ports.cancel_requested() {
                break TaskEnd::Cancelled { reason: request.reason };
            }
            self.pause("agent working");
            if let Some(message) = ports.next_message(false) {
                self.deliver(id, message.number, ports);
            }
            let mut state = self.state();
            if state.rng.one_in(4) {
                let kind = FailureKind::AgentExit;
                let failed = TaskEnd::Failed { kind, message: "it broke".to_owned(), retry_at_ms: None };
                let ends =
                    [TaskEnd::Completed, TaskEnd::Completed, failed, TaskEnd::Timeout(LimitKind::Idle)];
                break state.rng.pick(&ends).clone();
            }
        };
        self.state().agents.remove(id);
        self.pause("agent gone");
        RunResult::without_output(end)
    }
}

/// The machine on which all actors of a simulator run.
#[derive(Debug)]
pub(crate) struct SimulatedMachine(pub(crate) Arc<Simulator>);

impl System for SimulatedMachine {
    fn now_ms(&self) -> i64 {
        self.0.state().now_ms
    }

    /// One boot that lasts as long as the simulation, however often its actors are killed.
    fn boot_time(&self) -> Result<BootTime, EngineError> {
        let since_boot_ms = self.0.state().now_ms - BEGINNING_MS;
        Ok(BootTime { boot_id: "simulated".to_owned(), since_boot_ms })
    }

    fn random_bytes(&self) -> Result<[u8; 16], EngineError> {
        let mut state = self.0.state();
        // Task ids are made of the first ten bytes. Few of those differ, so that ids collide; nonces use all
        // bytes.
        let (id_bytes, unique) = (state.rng.next_u64() % 1024, state.rng.next_u64());
        Ok(((u128::from(id_bytes) << 112) | u128::from(unique & 0xffff_ffff_ffff)).to_be_bytes())
    }

    fn sleep(&self, length: Duration) {
        self.0.pass_time(i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
        self.0.pause("sleep");
    }

    fn start_supervisor(
        &self,
        engine: &Engine,
        id: &TaskId,
        nonce: &Nonce,
        lock: OwnedFd,
    ) -> Result<Option<Child>, EngineError> {
        self.0.start_supervisor(engine, id, nonce, lock).map(|()| None)
    }

    fn run_agent(&self, spec: RunSpec, ports: &dyn Ports) -> RunResult {
        self.0.run_agent(&spec.task, ports)
    }

    /// Kills an agent that outlived its supervisor.
    fn sweep_lost(&self, id: &TaskId, _owner: OwnerLookup<'_>) -> Vec<i32> {
        self.0.state().agents.remove(id);
        Vec::new()
    }

    fn finish_lost_run(&self, registry: &Registry, id: &TaskId, survivors: Vec<i32>) -> Finish {
        finish_lost_run(registry, id, survivors)
    }

    fn start_pruning(
        &self,
        engine: &Engine,
        tasks_before_ms: i64,
        points_before_ms: Option<i64>,
    ) -> Result<(), EngineError> {
        prune(engine, tasks_before_ms, points_before_ms)
    }

    /// No actor of the model delivers: the outbox shows what the ends of tasks enqueued.
    fn start_delivery(&self, _engine: &Engine) -> Result<(), EngineError> {
        Ok(())
    }

    fn run_in_background(&self, _name: &'static str, job: BackgroundJob) -> Result<(), EngineError> {
        job()
    }
}

/// The part of an id that differs within a plan.
pub(super) fn short(id: &TaskId) -> &str {
    &id.as_str()[8..12]
}
