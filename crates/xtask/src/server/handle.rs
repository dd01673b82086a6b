//! The driver's side: asks from any number of threads, hears the answers on one.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Act, Answer, Request, Said, Setting};
use crate::error::LoadError;

/// Beyond what was asked for, until an answer counts as lost.
const ANSWER_MAY_TAKE: Duration = Duration::from_secs(60);

/// Who waits for which answer; nothing once nobody will answer any more.
type Waiting = Arc<Mutex<Option<HashMap<u64, Sender<Said>>>>>;

#[derive(Debug)]
pub(crate) struct Server {
    child: Mutex<Child>,
    pid: u32,
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
}

impl Server {
    pub(crate) fn start(mut command: Command, setting: &Setting) -> Result<Server, LoadError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LoadError::io("start a server"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(LoadError::ServerGone);
        };
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let hearing = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(Answer { n, said }) = serde_json::from_str(&line) else { break };
                let asked = locked(&hearing).as_mut().and_then(|waiting| waiting.remove(&n));
                // Who asked may have given up.
                let _ = asked.map(|asked| asked.send(said));
            }
            // Whoever still waits is told by the end of its channel.
            locked(&hearing).take();
        });
        let pid = child.id();
        let server = Server {
            child: Mutex::new(child),
            pid,
            input: Mutex::new(input),
            waiting,
            next: AtomicU64::new(0),
        };
        server.say(setting)?;
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn say(&self, what: &impl serde::Serialize) -> Result<(), LoadError> {
        let mut line = serde_json::to_vec(what).map_err(|_| LoadError::ServerGone)?;
        line.push(b'\n');
        locked(&self.input).write_all(&line).map_err(|_| LoadError::ServerGone)
    }

    fn ask(&self, act: Act, at_most: Duration) -> Result<Said, LoadError> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = channel();
        locked(&self.waiting).as_mut().ok_or(LoadError::ServerGone)?.insert(n, sender);
        self.say(&Request { n, act })?;
        match answer.recv_timeout(at_most + ANSWER_MAY_TAKE) {
            Ok(Said::Failed(answer)) => Err(LoadError::Refused { answer }),
            Ok(said) => Ok(said),
            Err(RecvTimeoutError::Disconnected) => Err(LoadError::ServerGone),
            Err(RecvTimeoutError::Timeout) => {
                Err(LoadError::OutOfTime { doing: "waiting for a server's answer".to_owned() })
            }
        }
    }

    pub(crate) fn submit(&self, agent: &Path, text: &str, key: Option<&str>) -> Result<String, LoadError> {
        let act = Act::Submit { agent: agent.to_owned(), text: text.to_owned(), key: key.map(str::to_owned) };
        match self.ask(act, Duration::ZERO)? {
            Said::Submitted { task, .. } => Ok(task),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits for the end of a task, or so long; gives its state.
    pub(crate) fn wait(&self, task: &str, at_most: Duration) -> Result<String, LoadError> {
        let at_most_ms = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
        state_of(self.ask(Act::Wait { task: task.to_owned(), at_most_ms }, at_most)?)
    }

    pub(crate) fn cancel(&self, task: &str, at_most: Duration) -> Result<String, LoadError> {
        let at_most_ms = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
        state_of(self.ask(Act::Cancel { task: task.to_owned(), at_most_ms }, at_most)?)
    }

    pub(crate) fn status(&self) -> Result<(u64, u64), LoadError> {
        match self.ask(Act::Status, Duration::ZERO)? {
            Said::Status { running, queued } => Ok((running, queued)),
            other => Err(unexpected(&other)),
        }
    }

    /// SIGKILL, and the child is reaped.
    pub(crate) fn kill(&self) {
        let mut child = locked(&self.child);
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

fn state_of(said: Said) -> Result<String, LoadError> {
    match said {
        Said::State(state) => Ok(state),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(said: &Said) -> LoadError {
    LoadError::Refused { answer: format!("{said:?}") }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
