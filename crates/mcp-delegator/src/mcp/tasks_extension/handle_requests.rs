//! The requests of the tasks extension: create a handle instead of a response, get its state, cancel it.

use std::sync::Arc;

use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CreateTaskResult, DetailedTask};

use crate::commands;
use crate::commands::AfterWait;
use crate::commands::blocking::TaskWait;
use crate::commands::local::attempts::group_of;
use crate::commands::local::tasks::engine;
use crate::error::{AppError, ErrorCode};
use crate::mcp::server::{Server, invalid_params, to_rpc_error};
use crate::mcp::tasks_extension::handle_status::handle_status;
use crate::mcp::tasks_extension::handles::{self, Handle};
use crate::mcp::tools::server_state::ToolCall;

impl Server {
    pub(in crate::mcp) async fn create_handle(
        &self,
        call: &ToolCall,
        wait: TaskWait,
        after: AfterWait,
    ) -> CallToolResponse {
        let handle = Handle::new(wait, after, call.format);
        let (state, format) = (Arc::clone(&self.state), call.format);
        let status = self.with_context(move |context| {
            if let Handle::Run(_) = handle {
                handles::store_format(&engine(context)?, &handle, format)?;
            }
            handle_status(&state, context, &handle)
        });
        match status.await {
            Ok(detailed) => CallToolResponse::Task(CreateTaskResult::new(detailed.task)),
            Err(error) => self.state.render(call, Err(error)).into(),
        }
    }

    pub(in crate::mcp) async fn get_handle(&self, text: &str) -> Result<DetailedTask, ErrorData> {
        let handle = Handle::from_text(text).ok_or_else(|| unknown(text))?;
        let state = Arc::clone(&self.state);
        let status = self.with_context(move |context| handle_status(&state, context, &handle)).await;
        status.map_err(|error| handle_error(text, error))
    }

    /// Cancels the task of a run. A wait only ends.
    pub(in crate::mcp) async fn cancel_handle(&self, text: &str) -> Result<(), ErrorData> {
        let handle = Handle::from_text(text).ok_or_else(|| unknown(text))?;
        let cancelled = match handle {
            // A server that does not serve the cancel tool must not cancel tasks through handles either.
            Handle::Run(_) if !self.state.toolbox.serves(&commands::local::cancel::SPEC.snake_name()) => {
                return Err(invalid_params(
                    "This server cannot cancel tasks: it does not serve the cancel tool.".to_owned(),
                ));
            }
            Handle::Run(id) => self.with_context(move |context| cancel_run(&engine(context)?, &id)).await,
            handle @ Handle::Wait(_) => {
                self.with_context(move |context| handles::cancel_wait(&engine(context)?, &handle)).await
            }
        };
        match cancelled {
            // A task that has ended is left as it is; its handle shows the result.
            Err(error) if error.code == ErrorCode::WrongState => Ok(()),
            other => other.map_err(|error| handle_error(text, error)),
        }
    }
}

/// Cancels the task of a run, or all attempts of its group that have not ended.
fn cancel_run(engine: &Engine, id: &TaskId) -> Result<(), AppError> {
    let task = engine.task(id)?;
    let Some(group) = group_of(&task) else { return Ok(engine.request_cancel(id, None)?) };
    for attempt in engine.group(group)?.iter().filter(|task| !task.state.is_terminal()) {
        engine.request_cancel(&attempt.id, None)?;
    }
    Ok(())
}

fn unknown(handle: &str) -> ErrorData {
    invalid_params(format!("Unknown task: {handle}."))
}

fn handle_error(handle: &str, error: AppError) -> ErrorData {
    match error.code {
        ErrorCode::TaskNotFound => unknown(handle),
        _ => to_rpc_error(error),
    }
}
