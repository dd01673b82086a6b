//! One thread that keeps the live view of a process up to date while it has readers.
//!
//! However many readers there are, there is one thread, and a change is read once. The thread ends with the last reader; the next reader starts another, which continues the same log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::change_log::{Cursor, Update};
use super::model::{LiveModel, TaskReader};
use super::state::LiveState;
use crate::Engine;
use crate::error::{EngineError, Result};

/// How often the progress of running tasks is read, which the registry does not announce.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// The thread rests at least this long after it has read the tasks, and nine times as long as that took, so that it
/// uses a tenth of a processor at most, unless reading takes longer than a ninth of the longest rest.
const MIN_REST: Duration = Duration::from_millis(50);
const MAX_REST: Duration = Duration::from_secs(1);
const READS_PER_REST: u32 = 9;

/// Called from the thread after every change; it must only wake the reader.
pub type Wake = Box<dyn Fn() + Send>;

/// The live view of a process. Clones share it.
#[derive(Debug, Clone)]
pub struct LiveFeed {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    model: Mutex<LiveModel>,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    next: u64,
    wakes: BTreeMap<u64, Wake>,
    has_thread: bool,
}

impl fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Readers").field("count", &self.wakes.len()).finish_non_exhaustive()
    }
}

/// A reader; dropping it ends the reading.
#[derive(Debug)]
pub struct LiveReader {
    shared: Arc<Shared>,
    number: u64,
    cursor: Option<Cursor>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveFeed {
    pub fn new(engine: Engine) -> Result<LiveFeed> {
        let [a, b, c, d, e, f, g, h, ..] = engine.random_bytes()?;
        let model = Mutex::new(LiveModel::new(u64::from_be_bytes([a, b, c, d, e, f, g, h])));
        Ok(LiveFeed { shared: Arc::new(Shared { engine, model, readers: Mutex::default() }) })
    }

    /// A reader that continues after `cursor`, or begins with a snapshot.
    pub fn reader(&self, cursor: Option<Cursor>, wake: Wake) -> Result<LiveReader> {
        let mut readers = lock(&self.shared.readers);
        let number = readers.next;
        readers.next += 1;
        readers.wakes.insert(number, wake);
        let reader = LiveReader { shared: Arc::clone(&self.shared), number, cursor };
        if !readers.has_thread {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("live".to_owned());
            // A reader takes the lock when it is dropped.
            let spawned = thread.spawn(move || shared.run()).map_err(EngineError::io("start a thread"));
            readers.has_thread = spawned.is_ok();
            drop(readers);
            spawned?;
        }
        Ok(reader)
    }
}

impl LiveFeed {
    /// The tasks as they are now. While there are readers, nothing is read for it.
    pub fn state(&self) -> Result<Arc<LiveState>> {
        let current = lock(&self.shared.model).current();
        current.map_or_else(|| LiveState::now(&self.shared.engine).map(Arc::new), Ok)
    }
}

impl LiveReader {
    /// What has happened since the last call; `None` if nothing has.
    pub fn take_update(&mut self) -> Option<Update> {
        let update = lock(&self.shared.model).update(self.cursor)?;
        let (Update::Snapshot { cursor, .. } | Update::Changes { cursor, .. }) = &update;
        self.cursor = Some(*cursor);
        Some(update)
    }
}

impl Drop for LiveReader {
    fn drop(&mut self) {
        lock(&self.shared.readers).wakes.remove(&self.number);
    }
}

struct ThreadEnd<'a>(&'a Shared);

impl Drop for ThreadEnd<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.readers).has_thread = false;
        }
    }
}

impl Shared {
    fn run(&self) {
        // Also after a panic: the next reader starts another thread.
        let _end = ThreadEnd(self);
        let mut tasks = TaskReader::new(self.engine.clone());
        while let Err(error) = self.engine.waits().for_live_view(PROGRESS_INTERVAL, || self.step(&mut tasks))
        {
            if lock(&self.model).fail(error.to_string()) {
                self.wake_all();
            }
            self.engine.sleep(MAX_REST);
        }
    }

    /// False if there is no reader left.
    fn step(&self, tasks: &mut TaskReader) -> Result<bool> {
        if self.is_unread() {
            return Ok(false);
        }
        let before = Instant::now();
        if let Some(state) = tasks.read()? {
            let took = before.elapsed();
            if lock(&self.model).set(state) {
                self.wake_all();
            }
            self.engine.sleep((took * READS_PER_REST).clamp(MIN_REST, MAX_REST));
        }
        Ok(true)
    }

    /// Whether there is no reader; then the thread ends.
    fn is_unread(&self) -> bool {
        let mut readers = lock(&self.readers);
        let is_unread = readers.wakes.is_empty();
        if is_unread {
            lock(&self.model).rest();
            readers.has_thread = false;
        }
        is_unread
    }

    fn wake_all(&self) {
        lock(&self.readers).wakes.values().for_each(|wake| wake());
    }
}
