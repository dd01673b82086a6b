//! For a process that stays: one thread that watches tasks for everybody in it, and makes the rounds.
//!
//! However many wait, there is one thread, one connection and one sleep. Whoever waits leaves a function that is called
//! once, from that thread, with how the wait ended; it should hand the answer on and return. Letting go of a [`Ticket`]
//! ends the wait, never the task.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::Task;
use rustix::event::{EventfdFlags, eventfd};

use crate::Engine;
use crate::error::EngineError;
use crate::rescue::Rounds;
use crate::watch::Watch;

/// What is awaited of several tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The first end.
    Any,
    /// The last one.
    All,
}

/// How a wait ended: every task as it stands, in the order they were given.
#[derive(Debug)]
pub struct Watched {
    pub tasks: Vec<Task>,
    pub expired: bool,
}

pub type WhenOver = Box<dyn FnOnce(Result<Watched, EngineError>) + Send>;

/// How soon a state directory that cannot be read is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The pause when nothing is awaited and nothing is due.
const LONG: Duration = Duration::from_secs(3600);

/// The watching thread of a process.
#[derive(Debug)]
pub struct Resident {
    wishes: Sender<Wish>,
    waker: Arc<OwnedFd>,
    next_ticket: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

/// One wait; dropped, it is over and its function is not called.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    wishes: Sender<Wish>,
    waker: Arc<OwnedFd>,
}

enum Wish {
    Wait { number: u64, waiter: Waiter },
    LetGo { number: u64 },
    Leave,
}

struct Waiter {
    ids: Vec<TaskId>,
    goal: Goal,
    deadline: Option<Instant>,
    when_over: WhenOver,
}

impl Resident {
    /// Starts the thread. The state directory need not be there yet.
    pub fn start(engine: Engine) -> Result<Resident, EngineError> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| EngineError::Io { doing: "make a waker", source: error.into() })?;
        let waker = Arc::new(waker);
        let (wishes, heard) = channel();
        let inner = Arc::clone(&waker);
        let thread = std::thread::Builder::new()
            .name("resident".to_owned())
            .spawn(move || Watcher { engine, heard, waker: inner, waiters: HashMap::new() }.stay())
            .map_err(EngineError::io("start a thread"))?;
        Ok(Resident { wishes, waker, next_ticket: AtomicU64::new(0), thread: Some(thread) })
    }

    /// Calls `when_over` when the goal is reached, the deadline has passed, or there is no such task.
    #[must_use = "the wait ends with its ticket"]
    pub fn wait(
        &self,
        ids: Vec<TaskId>,
        goal: Goal,
        deadline: Option<Instant>,
        when_over: WhenOver,
    ) -> Ticket {
        let number = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter { ids, goal, deadline, when_over };
        let ticket = Ticket { number, wishes: self.wishes.clone(), waker: Arc::clone(&self.waker) };
        ticket.wish(Wish::Wait { number, waiter });
        ticket
    }
}

impl Ticket {
    fn wish(&self, wish: Wish) {
        send(&self.wishes, &self.waker, wish);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.wish(Wish::LetGo { number: self.number });
    }
}

impl Drop for Resident {
    /// Tasks go on; whoever waits is not called any more.
    fn drop(&mut self) {
        send(&self.wishes, &self.waker, Wish::Leave);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A thread that is gone has nothing left to be told.
fn send(wishes: &Sender<Wish>, waker: &OwnedFd, wish: Wish) {
    let _ = wishes.send(wish);
    let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
}

struct Watcher {
    engine: Engine,
    heard: Receiver<Wish>,
    waker: Arc<OwnedFd>,
    waiters: HashMap<u64, Waiter>,
}

impl Watcher {
    fn stay(mut self) {
        let mut watch = None;
        let mut rounds = Rounds::starting_now();
        while self.listen() {
            if let Err(error) = self.round(&mut watch, &mut rounds) {
                // Nobody shall wait for something that cannot be seen; the next to ask tries anew.
                watch = None;
                self.fail_all(&error);
                self.pause(Instant::now() + TRY_AGAIN);
            }
        }
    }

    /// Takes in what was wished meanwhile; false when it is time to leave.
    fn listen(&mut self) -> bool {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        while let Ok(wish) = self.heard.try_recv() {
            match wish {
                Wish::Wait { number, waiter } => drop(self.waiters.insert(number, waiter)),
                Wish::LetGo { number } => drop(self.waiters.remove(&number)),
                Wish::Leave => return false,
            }
        }
        true
    }

    fn round(&mut self, watch: &mut Option<Watch>, rounds: &mut Rounds) -> Result<(), EngineError> {
        if watch.is_none() {
            *watch = self.engine.find()?.map(Watch::new).transpose()?;
        }
        let Some(watch) = watch else {
            // No state directory yet: no task anybody could wait for.
            self.tell(|waiter| Some(Err(unknown(waiter))));
            self.pause(Instant::now() + TRY_AGAIN);
            return Ok(());
        };
        watch.refresh()?;
        if rounds.make_if_due(&self.engine, watch)? {
            watch.refresh()?;
        }
        let now = Instant::now();
        self.tell(|waiter| waiter.judge(watch, now));
        let wanted = |id: &TaskId| self.waiters.values().any(|waiter| waiter.ids.contains(id));
        watch.keep(wanted);
        let deadlines = self.waiters.values().filter_map(|waiter| waiter.deadline);
        let until = deadlines.chain([rounds.next(watch), now + LONG]).min().unwrap_or(now);
        watch.sleep(until, Some(self.waker.as_fd()))
    }

    /// Calls those whose wait is over.
    fn tell(&mut self, mut judge: impl FnMut(&Waiter) -> Option<Result<Watched, EngineError>>) {
        let over: Vec<_> =
            self.waiters.iter().filter_map(|(number, waiter)| Some((*number, judge(waiter)?))).collect();
        for (number, told) in over {
            if let Some(waiter) = self.waiters.remove(&number) {
                (waiter.when_over)(told);
            }
        }
    }

    fn fail_all(&mut self, error: &EngineError) {
        self.tell(|_| {
            Some(Err(EngineError::Watching { detail: error.to_string(), os_error: error.os_error() }))
        });
    }

    fn pause(&self, until: Instant) {
        let pause = until.saturating_duration_since(Instant::now());
        let _ = crate::watch::nap_unless(pause, self.waker.as_fd());
    }
}

impl Waiter {
    /// How the wait ended, if it has.
    fn judge(&self, watch: &mut Watch, now: Instant) -> Option<Result<Watched, EngineError>> {
        let mut tasks = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            match watch.task(id) {
                Ok(task) => tasks.push(task.clone()),
                Err(error) => return Some(Err(error)),
            }
        }
        let mut ends = tasks.iter().map(|task| task.state.is_terminal());
        let reached = match self.goal {
            Goal::Any => ends.any(|ended| ended),
            Goal::All => ends.all(|ended| ended),
        };
        let expired = !reached && self.deadline.is_some_and(|deadline| now >= deadline);
        (reached || expired).then_some(Ok(Watched { tasks, expired }))
    }
}

fn unknown(waiter: &Waiter) -> EngineError {
    let given = waiter.ids.first().map(ToString::to_string).unwrap_or_default();
    EngineError::UnknownTask { given }
}
