//! Handles: given instead of an answer, looked at, and cancelled.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CreateTaskResult, DetailedTask};

use super::call::Admitted;
use super::handles::{self, Awaited, Handle};
use super::projection::projected;
use super::server::{Server, bad, rpc};
use crate::commands;
use crate::commands::local::tasks::engine;
use crate::fault::{AppError, ErrorCode};
use crate::registry::stay::Staying;

impl Server {
    /// A handle instead of an answer.
    pub(super) async fn handle_of(&self, call: &Admitted, staying: &Staying) -> CallToolResponse {
        let is_run = call.spec.path == commands::local::run::SPEC.path;
        let handle = match staying.ids.as_slice() {
            [id] if is_run => Handle::Run(id.clone()),
            _ => Handle::Wait(Awaited::of(staying, call)),
        };
        let (surroundings, format) = (Arc::clone(&self.surroundings), call.format);
        let given = self.work(move |context| {
            if is_run {
                handles::keep_format(&engine(context)?, &handle, format)?;
            }
            projected(&surroundings, context, &handle)
        });
        match given.await {
            Ok(detailed) => CallToolResponse::Task(CreateTaskResult::new(detailed.task)),
            Err(error) => self.surroundings.render(call, Err(error)).into(),
        }
    }

    /// A handle as the registry has it now.
    pub(super) async fn handle(&self, text: &str) -> Result<DetailedTask, ErrorData> {
        let handle = Handle::from_text(text).ok_or_else(|| unknown(text))?;
        let surroundings = Arc::clone(&self.surroundings);
        let looked_at = self.work(move |context| projected(&surroundings, context, &handle)).await;
        looked_at.map_err(|error| refusal(text, &error))
    }

    /// Ends the task of a run, and of a wait only the wait.
    pub(super) async fn cancel_handle(&self, text: &str) -> Result<(), ErrorData> {
        let handle = Handle::from_text(text).ok_or_else(|| unknown(text))?;
        let cancelled = match handle {
            // A server without the tool has no other way to do what it does.
            Handle::Run(_) if !self.surroundings.toolbox.serves(&commands::local::cancel::SPEC.snake()) => {
                return Err(bad("This server cancels no tasks.".to_owned()));
            }
            Handle::Run(id) => {
                self.work(move |context| Ok(engine(context)?.request_cancel(&id, None)?)).await
            }
            wait @ Handle::Wait(_) => {
                self.work(move |context| handles::let_go(&engine(context)?, &wait)).await
            }
        };
        match cancelled {
            // One that has ended stays as it is; the handle says how.
            Err(error) if error.code == ErrorCode::WrongState => Ok(()),
            other => other.map_err(|error| refusal(text, &error)),
        }
    }
}

fn unknown(handle: &str) -> ErrorData {
    bad(format!("Unknown task: {handle}."))
}

fn refusal(handle: &str, error: &AppError) -> ErrorData {
    match error.code {
        ErrorCode::TaskNotFound => unknown(handle),
        _ => rpc(error),
    }
}
