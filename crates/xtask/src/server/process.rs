//! The server's side: one thread per request, without a limit.

#![expect(clippy::disallowed_methods, reason = "stdout is a pipe to the driver of the server")]

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delegator_domain::task::TaskId;

use super::{Action, Reply, Request, Response, ServerConfig};
use crate::engine_calls::EngineClient;
use crate::error::LoadError;

/// The first argument that makes a program a server.
pub const SERVE: &str = "serve-engine";

/// A request needs little stack, and hundreds may be open.
const STACK_BYTES: usize = 512 << 10;

/// Serves until stdin is closed.
pub fn serve() -> ExitCode {
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let config = lines.next().and_then(|line| serde_json::from_str::<ServerConfig>(&line).ok());
    let Some(config) = config else { return ExitCode::FAILURE };
    let engine = Arc::new(EngineClient::new(config));
    let out = Arc::new(Mutex::new(std::io::stdout()));
    for line in lines {
        let Ok(request) = serde_json::from_str::<Request>(&line) else { return ExitCode::FAILURE };
        let (engine, out) = (Arc::clone(&engine), Arc::clone(&out));
        let handle = move || {
            let reply =
                perform(&engine, request.action).unwrap_or_else(|error| Reply::Failed(error.to_string()));
            let mut text = serde_json::to_vec(&Response { id: request.id, reply }).unwrap_or_default();
            text.push(b'\n');
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            // The driver may be gone; then stdin ends as well.
            let _ = out.write_all(&text).and_then(|()| out.flush());
        };
        if std::thread::Builder::new().stack_size(STACK_BYTES).spawn(handle).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn perform(engine: &EngineClient, action: Action) -> Result<Reply, LoadError> {
    Ok(match action {
        Action::Submit { agent, text, key } => {
            let (id, queue_position) = engine.submit(&agent, &text, key.as_deref())?;
            Reply::Submitted { task: id.to_string(), queue_position }
        }
        Action::Wait { task, limit_ms } => {
            Reply::State(engine.wait(&parse_id(&task)?, Duration::from_millis(limit_ms))?.name().to_owned())
        }
        Action::Cancel { task, limit_ms } => {
            Reply::State(engine.cancel(&parse_id(&task)?, Duration::from_millis(limit_ms))?.name().to_owned())
        }
        Action::Status => {
            let (running, queued) = engine.status()?;
            Reply::Status { running, queued }
        }
    })
}

fn parse_id(text: &str) -> Result<TaskId, LoadError> {
    text.parse().map_err(|_| LoadError::Refused { response: format!("{text} is not a task id") })
}
