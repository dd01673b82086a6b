//! The server's side: one thread for each request, as many as there are.

#![expect(clippy::disallowed_methods, reason = "here stdout is a pipe to whoever drives the server")]

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delegator_domain::task::TaskId;

use super::{Act, Answer, Request, Said, Setting};
use crate::engine_calls::Door;
use crate::error::LoadError;

/// The word by which a program becomes a server.
pub const SERVE: &str = "serve-engine";

/// A request is small work; hundreds may be open.
const STACK_BYTES: usize = 512 << 10;

/// Serves until nobody asks any more.
pub fn serve() -> ExitCode {
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let setting = lines.next().and_then(|line| serde_json::from_str::<Setting>(&line).ok());
    let Some(setting) = setting else { return ExitCode::FAILURE };
    let door = Arc::new(Door::new(setting));
    let out = Arc::new(Mutex::new(std::io::stdout()));
    for line in lines {
        let Ok(request) = serde_json::from_str::<Request>(&line) else { return ExitCode::FAILURE };
        let (door, out) = (Arc::clone(&door), Arc::clone(&out));
        let answer = move || {
            let said = act(&door, request.act).unwrap_or_else(|error| Said::Failed(error.to_string()));
            let mut text = serde_json::to_vec(&Answer { n: request.n, said }).unwrap_or_default();
            text.push(b'\n');
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody listens any more: the loop ends by itself.
            let _ = out.write_all(&text).and_then(|()| out.flush());
        };
        if std::thread::Builder::new().stack_size(STACK_BYTES).spawn(answer).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn act(door: &Door, act: Act) -> Result<Said, LoadError> {
    Ok(match act {
        Act::Submit { agent, text, key } => {
            let (id, queue_position) = door.submit(&agent, &text, key.as_deref())?;
            Said::Submitted { task: id.to_string(), queue_position }
        }
        Act::Wait { task, at_most_ms } => {
            Said::State(door.wait(&id(&task)?, Duration::from_millis(at_most_ms))?.name().to_owned())
        }
        Act::Cancel { task, at_most_ms } => {
            Said::State(door.cancel(&id(&task)?, Duration::from_millis(at_most_ms))?.name().to_owned())
        }
        Act::Status => {
            let (running, queued) = door.status()?;
            Said::Status { running, queued }
        }
    })
}

fn id(text: &str) -> Result<TaskId, LoadError> {
    text.parse().map_err(|_| LoadError::Refused { answer: format!("{text} is no task") })
}
