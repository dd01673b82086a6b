//! Handles: given instead of an answer, looked at, and cancelled.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CreateTaskResult, DetailedTask};

use super::handle_status::handle_status;
use super::handles::{self, Handle, WaitHandle};
use super::server::{Server, invalid_params, to_rpc_error};
use super::server_state::AdmittedCall;
use crate::commands;
use crate::commands::local::tasks::engine;
use crate::error::{AppError, ErrorCode};
use crate::spec::waiting::TaskWait;

impl Server {
    /// A handle instead of an answer.
    pub(super) async fn create_handle(&self, call: &AdmittedCall, staying: &TaskWait) -> CallToolResponse {
        let is_run = call.spec.path == commands::local::run::SPEC.path;
        let handle = match staying.ids.as_slice() {
            [id] if is_run => Handle::Run(id.clone()),
            _ => Handle::Wait(WaitHandle::new(staying, call)),
        };
        let (surroundings, format) = (Arc::clone(&self.state), call.format);
        let given = self.with_context(move |context| {
            if is_run {
                handles::store_format(&engine(context)?, &handle, format)?;
            }
            handle_status(&surroundings, context, &handle)
        });
        match given.await {
            Ok(detailed) => CallToolResponse::Task(CreateTaskResult::new(detailed.task)),
            Err(error) => self.state.render(call, Err(error)).into(),
        }
    }

    /// A handle as the registry has it now.
    pub(super) async fn get_handle(&self, text: &str) -> Result<DetailedTask, ErrorData> {
        let handle = Handle::from_text(text).ok_or_else(|| unknown(text))?;
        let surroundings = Arc::clone(&self.state);
        let looked_at =
            self.with_context(move |context| handle_status(&surroundings, context, &handle)).await;
        looked_at.map_err(|error| handle_error(text, &error))
    }

    /// Ends the task of a run, and of a wait only the wait.
    pub(super) async fn cancel_handle(&self, text: &str) -> Result<(), ErrorData> {
        let handle = Handle::from_text(text).ok_or_else(|| unknown(text))?;
        let cancelled = match handle {
            // A server without the tool has no other way to do what it does.
            Handle::Run(_) if !self.state.toolbox.serves(&commands::local::cancel::SPEC.snake_name()) => {
                return Err(invalid_params("This server cancels no tasks.".to_owned()));
            }
            Handle::Run(id) => {
                self.with_context(move |context| Ok(engine(context)?.request_cancel(&id, None)?)).await
            }
            wait @ Handle::Wait(_) => {
                self.with_context(move |context| handles::cancel_wait(&engine(context)?, &wait)).await
            }
        };
        match cancelled {
            // One that has ended stays as it is; the handle says how.
            Err(error) if error.code == ErrorCode::WrongState => Ok(()),
            other => other.map_err(|error| handle_error(text, &error)),
        }
    }
}

fn unknown(handle: &str) -> ErrorData {
    invalid_params(format!("Unknown task: {handle}."))
}

fn handle_error(handle: &str, error: &AppError) -> ErrorData {
    match error.code {
        ErrorCode::TaskNotFound => unknown(handle),
        _ => to_rpc_error(error),
    }
}
