//! One thread that serves all waits of a long-running process and makes its upkeep passes.
//!
//! However many waits there are, there is one thread, one connection and one sleep. Each wait has a callback, which the
//! thread calls once with the outcome; a callback must only pass the outcome on and never block. Dropping a [`Ticket`] ends
//! the wait, never the task.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::Task;
use rustix::event::{EventfdFlags, eventfd};
use serde::Deserialize;

use super::task_watch::{TaskWatch, sleep_unless_woken};
use super::upkeep_schedule::UpkeepSchedule;
use crate::Engine;
use crate::error::EngineError;

/// When a wait for several tasks is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitGoal {
    /// When the first task has ended.
    Any,
    /// When all tasks have ended.
    #[default]
    All,
}

/// The current state of every task, in the order of the request.
#[derive(Debug)]
pub struct GroupWaitOutcome {
    pub tasks: Vec<Task>,
    pub expired: bool,
}

pub type WaitCallback = Box<dyn FnOnce(Result<GroupWaitOutcome, EngineError>) + Send>;

/// How soon to retry if the registry cannot be read or does not exist.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const IDLE_PAUSE: Duration = Duration::from_secs(3600);

/// The handle of the thread; dropping it stops the thread.
#[derive(Debug)]
pub struct WaitThread {
    commands: Sender<Command>,
    waker: Arc<OwnedFd>,
    next_ticket: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

/// One wait. Dropping it ends the wait; its callback is then not called.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    commands: Sender<Command>,
    waker: Arc<OwnedFd>,
}

enum Command {
    Wait { number: u64, waiter: Waiter },
    Cancel { number: u64 },
    Stop,
}

struct Waiter {
    ids: Vec<TaskId>,
    goal: WaitGoal,
    deadline: Option<Instant>,
    callback: WaitCallback,
}

impl WaitThread {
    /// Starts the thread. The state directory need not exist yet.
    pub fn start(engine: Engine) -> Result<WaitThread, EngineError> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| EngineError::Io { doing: "create an eventfd", source: error.into() })?;
        let waker = Arc::new(waker);
        let (commands, receiver) = channel();
        let inner = Arc::clone(&waker);
        let thread = std::thread::Builder::new()
            .name("wait".to_owned())
            .spawn(move || WaitLoop { engine, receiver, waker: inner, waiters: HashMap::new() }.run())
            .map_err(EngineError::io("start a thread"))?;
        Ok(WaitThread { commands, waker, next_ticket: AtomicU64::new(0), thread: Some(thread) })
    }

    /// Calls `callback` when the goal is reached, the deadline has passed, or a task does not exist.
    #[must_use = "the wait ends with its ticket"]
    pub fn wait(
        &self,
        ids: Vec<TaskId>,
        goal: WaitGoal,
        deadline: Option<Instant>,
        callback: WaitCallback,
    ) -> Ticket {
        let number = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter { ids, goal, deadline, callback };
        let ticket = Ticket { number, commands: self.commands.clone(), waker: Arc::clone(&self.waker) };
        ticket.send(Command::Wait { number, waiter });
        ticket
    }
}

impl Ticket {
    fn send(&self, command: Command) {
        send(&self.commands, &self.waker, command);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.send(Command::Cancel { number: self.number });
    }
}

impl Drop for WaitThread {
    /// Tasks continue; pending callbacks are not called.
    fn drop(&mut self) {
        send(&self.commands, &self.waker, Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Errors are ignored: they mean that the thread has stopped.
fn send(commands: &Sender<Command>, waker: &OwnedFd, command: Command) {
    let _ = commands.send(command);
    let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
}

struct WaitLoop {
    engine: Engine,
    receiver: Receiver<Command>,
    waker: Arc<OwnedFd>,
    waiters: HashMap<u64, Waiter>,
}

impl WaitLoop {
    fn run(mut self) {
        let mut watch = None;
        let mut upkeep = UpkeepSchedule::starting_now();
        while self.receive_commands() {
            if let Err(error) = self.run_once(&mut watch, &mut upkeep) {
                // Fail all waits instead of leaving them without a watch; new waits try again.
                watch = None;
                self.fail_all(&error);
                self.pause(Instant::now() + RETRY_INTERVAL);
            }
        }
    }

    /// Handles the queued commands; false on [`Command::Stop`].
    fn receive_commands(&mut self) -> bool {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        while let Ok(command) = self.receiver.try_recv() {
            match command {
                Command::Wait { number, waiter } => drop(self.waiters.insert(number, waiter)),
                Command::Cancel { number } => drop(self.waiters.remove(&number)),
                Command::Stop => return false,
            }
        }
        true
    }

    fn run_once(
        &mut self,
        watch: &mut Option<TaskWatch>,
        upkeep: &mut UpkeepSchedule,
    ) -> Result<(), EngineError> {
        if watch.is_none() {
            *watch = self.engine.find_registry()?.map(TaskWatch::new).transpose()?;
        }
        let Some(watch) = watch else {
            // Without a registry there is no task to wait for.
            self.finish_waits(|waiter| Some(Err(unknown(waiter))));
            self.pause(Instant::now() + RETRY_INTERVAL);
            return Ok(());
        };
        watch.refresh()?;
        if upkeep.run_if_due(&self.engine, watch)? {
            watch.refresh()?;
        }
        let now = Instant::now();
        self.finish_waits(|waiter| waiter.outcome(watch, now));
        let is_awaited = |id: &TaskId| self.waiters.values().any(|waiter| waiter.ids.contains(id));
        watch.retain(is_awaited);
        let deadlines = self.waiters.values().filter_map(|waiter| waiter.deadline);
        let until = deadlines.chain([upkeep.next(watch), now + IDLE_PAUSE]).min().unwrap_or(now);
        watch.sleep(until, Some(self.waker.as_fd()))
    }

    /// Calls back the waits for which `outcome_of` returns an outcome.
    fn finish_waits(
        &mut self,
        mut outcome_of: impl FnMut(&Waiter) -> Option<Result<GroupWaitOutcome, EngineError>>,
    ) {
        let finished: Vec<_> =
            self.waiters.iter().filter_map(|(number, waiter)| Some((*number, outcome_of(waiter)?))).collect();
        for (number, outcome) in finished {
            if let Some(waiter) = self.waiters.remove(&number) {
                (waiter.callback)(outcome);
            }
        }
    }

    fn fail_all(&mut self, error: &EngineError) {
        self.finish_waits(|_| {
            Some(Err(EngineError::WatchFailed { detail: error.to_string(), os_error: error.os_error() }))
        });
    }

    fn pause(&self, until: Instant) {
        let pause = until.saturating_duration_since(Instant::now());
        let _ = sleep_unless_woken(pause, self.waker.as_fd());
    }
}

impl Waiter {
    /// The outcome, if the wait is over.
    fn outcome(&self, watch: &mut TaskWatch, now: Instant) -> Option<Result<GroupWaitOutcome, EngineError>> {
        let mut tasks = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            match watch.task(id) {
                Ok(task) => tasks.push(task.clone()),
                Err(error) => return Some(Err(error)),
            }
        }
        let mut ends = tasks.iter().map(|task| task.state.is_terminal());
        let reached = match self.goal {
            WaitGoal::Any => ends.any(|ended| ended),
            WaitGoal::All => ends.all(|ended| ended),
        };
        let expired = !reached && self.deadline.is_some_and(|deadline| now >= deadline);
        (reached || expired).then_some(Ok(GroupWaitOutcome { tasks, expired }))
    }
}

fn unknown(waiter: &Waiter) -> EngineError {
    let given = waiter.ids.first().map(ToString::to_string).unwrap_or_default();
    EngineError::UnknownTask { given }
}
