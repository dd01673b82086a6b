//! The driver's side of a server: sends requests from any number of threads, reads responses on one.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Action, Reply, Request, Response, ServerConfig};
use crate::error::LoadError;

/// Beyond the requested wait, until a response counts as lost.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Senders of the open requests; `None` once the server is gone.
type PendingReplies = Arc<Mutex<Option<HashMap<u64, Sender<Reply>>>>>;

#[derive(Debug)]
pub(crate) struct Server {
    child: Mutex<Child>,
    pid: u32,
    input: Mutex<ChildStdin>,
    pending: PendingReplies,
    next: AtomicU64,
}

impl Server {
    pub(crate) fn start(mut command: Command, config: &ServerConfig) -> Result<Server, LoadError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LoadError::io("start a server"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(LoadError::ServerGone);
        };
        let pending: PendingReplies = Arc::new(Mutex::new(Some(HashMap::new())));
        let pending_in_reader = Arc::clone(&pending);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(Response { id, reply }) = serde_json::from_str(&line) else { break };
                let sender = lock(&pending_in_reader).as_mut().and_then(|pending| pending.remove(&id));
                // The caller may have given up.
                let _ = sender.map(|sender| sender.send(reply));
            }
            // Dropping the senders ends every open request.
            lock(&pending_in_reader).take();
        });
        let pid = child.id();
        let server = Server {
            child: Mutex::new(child),
            pid,
            input: Mutex::new(input),
            pending,
            next: AtomicU64::new(0),
        };
        server.send(config)?;
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn send(&self, message: &impl serde::Serialize) -> Result<(), LoadError> {
        let mut line = serde_json::to_vec(message).map_err(|_| LoadError::ServerGone)?;
        line.push(b'\n');
        lock(&self.input).write_all(&line).map_err(|_| LoadError::ServerGone)
    }

    fn request(&self, action: Action, wait_time: Duration) -> Result<Reply, LoadError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        lock(&self.pending).as_mut().ok_or(LoadError::ServerGone)?.insert(id, sender);
        self.send(&Request { id, action })?;
        match receiver.recv_timeout(wait_time + RESPONSE_TIMEOUT) {
            Ok(Reply::Failed(response)) => Err(LoadError::Refused { response }),
            Ok(reply) => Ok(reply),
            Err(RecvTimeoutError::Disconnected) => Err(LoadError::ServerGone),
            Err(RecvTimeoutError::Timeout) => {
                Err(LoadError::OutOfTime { doing: "waiting for a server's response".to_owned() })
            }
        }
    }

    pub(crate) fn submit(&self, agent: &Path, text: &str, key: Option<&str>) -> Result<String, LoadError> {
        let action =
            Action::Submit { agent: agent.to_owned(), text: text.to_owned(), key: key.map(str::to_owned) };
        match self.request(action, Duration::ZERO)? {
            Reply::Submitted { task, .. } => Ok(task),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits for the end of a task, at most that long. Returns its state.
    pub(crate) fn wait(&self, task: &str, limit: Duration) -> Result<String, LoadError> {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        state_of(self.request(Action::Wait { task: task.to_owned(), limit_ms }, limit)?)
    }

    pub(crate) fn cancel(&self, task: &str, limit: Duration) -> Result<String, LoadError> {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        state_of(self.request(Action::Cancel { task: task.to_owned(), limit_ms }, limit)?)
    }

    pub(crate) fn status(&self) -> Result<(u64, u64), LoadError> {
        match self.request(Action::Status, Duration::ZERO)? {
            Reply::Status { running, queued } => Ok((running, queued)),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends SIGKILL and reaps the child.
    pub(crate) fn kill(&self) {
        let mut child = lock(&self.child);
        // It may be dead already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn state_of(reply: Reply) -> Result<String, LoadError> {
    match reply {
        Reply::State(state) => Ok(state),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(reply: &Reply) -> LoadError {
    LoadError::Refused { response: format!("{reply:?}") }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
