//! One thread that serves all waits of a long-running process and makes its upkeep passes.
//!
//! However many waits there are, there is one thread, one connection and one sleep. Each wait has a callback,
//! which the thread calls once with the outcome; a callback must only pass the outcome on and never block.
//! Dropping a [`Ticket`] ends the wait, never the task. A wait can also follow the questions that the agents
//! of its tasks ask meanwhile.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::StoredQuestion;
use rustix::event::{EventfdFlags, eventfd};

use super::task_watch::sleep_unless_woken;
pub use super::wait_loop::{GroupWaitOutcome, WaitGoal};
use super::wait_loop::{RETRY_INTERVAL, Wait, WaitLoop};
use crate::Engine;
use crate::error::{EngineError, Result};

pub type WaitCallback = Box<dyn FnOnce(Result<GroupWaitOutcome>) + Send>;
/// Called with the open questions of the awaited tasks whenever they have changed.
pub type QuestionsCallback = Box<dyn Fn(OpenQuestions) + Send>;
pub type OpenQuestions = Vec<(TaskId, StoredQuestion)>;

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
    wait: Wait,
    callback: WaitCallback,
    questions: Option<QuestionsCallback>,
    /// What `questions` was last called with.
    known_questions: OpenQuestions,
}

impl Waiter {
    fn report_questions(&mut self, open: &[(TaskId, StoredQuestion)]) {
        let Some(callback) = &self.questions else { return };
        let own = open.iter().filter(|(task, _)| self.wait.ids.contains(task));
        if !own.clone().eq(&self.known_questions) {
            self.known_questions = own.cloned().collect();
            callback(self.known_questions.clone());
        }
    }
}

impl WaitThread {
    /// Starts the thread. The state directory need not exist yet.
    pub fn start(engine: Engine) -> Result<WaitThread> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| EngineError::Io { doing: "create an eventfd", source: error.into() })?;
        let waker = Arc::new(waker);
        let (commands, receiver) = channel();
        let inner = Arc::clone(&waker);
        let thread = std::thread::Builder::new()
            .name("wait".to_owned())
            .spawn(move || WaitService { engine, receiver, waker: inner, waiters: HashMap::new() }.run())
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
        questions: Option<QuestionsCallback>,
    ) -> Ticket {
        let number = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let wait = Wait { ids, goal, deadline };
        let waiter = Waiter { wait, callback, questions, known_questions: Vec::new() };
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

struct WaitService {
    engine: Engine,
    receiver: Receiver<Command>,
    waker: Arc<OwnedFd>,
    waiters: HashMap<u64, Waiter>,
}

impl WaitService {
    fn run(mut self) {
        let mut wait_loop = WaitLoop::new();
        while self.receive_commands() {
            if let Err(error) = self.run_once(&mut wait_loop) {
                // Fail all waits instead of leaving them without a watch; new waits try again.
                wait_loop = WaitLoop::new();
                self.fail_all(&error);
                let _ = sleep_unless_woken(RETRY_INTERVAL, Some(self.waker.as_fd()));
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

    fn run_once(&mut self, wait_loop: &mut WaitLoop) -> Result<()> {
        wait_loop.refresh(&self.engine)?;
        let now = Instant::now();
        self.finish_waits(|wait| wait_loop.outcome(wait, now));
        wait_loop.retain(|id| self.waiters.values().any(|waiter| waiter.wait.ids.contains(id)));
        let follows_questions = self.waiters.values().any(|waiter| waiter.questions.is_some());
        if follows_questions {
            let open = wait_loop.open_questions()?;
            self.waiters.values_mut().for_each(|waiter| waiter.report_questions(open));
        }
        let deadlines = self.waiters.values().filter_map(|waiter| waiter.wait.deadline);
        let until = deadlines.min().unwrap_or(now + IDLE_PAUSE);
        wait_loop.pause(&self.engine, until, Some(self.waker.as_fd()), follows_questions)
    }

    fn finish_waits(&mut self, mut outcome_of: impl FnMut(&Wait) -> Option<Result<GroupWaitOutcome>>) {
        let outcomes = self.waiters.iter().map(|(number, waiter)| (*number, outcome_of(&waiter.wait)));
        let finished: Vec<_> = outcomes.filter_map(|(number, outcome)| Some((number, outcome?))).collect();
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
}
