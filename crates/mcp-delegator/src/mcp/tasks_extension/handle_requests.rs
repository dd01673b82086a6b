//! The requests of the tasks extension: create a handle instead of a response, get its state, cancel it.

use std::sync::Arc;

use delegator_domain::task::{State, TaskId};
use delegator_engine::Engine;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CreateTaskResult, DetailedTask, Task as TaskHandle, TaskPayload, TaskStatus,
};

use crate::commands::context::Context;
use crate::commands::local::attempts::group_of;
use crate::commands::local::tasks::engine;
use crate::commands::{self, AfterWait, TaskWait};
use crate::error::{AppError, ErrorCode};
use crate::mcp::server::{Server, invalid_params, to_rpc_error};
use crate::mcp::tasks_extension::handles::{self, Handle};
use crate::mcp::tools::server_state::{ServerState, ToolCall};
use crate::output::values::UtcTime;

const POLL_INTERVAL_MS: u64 = 2_000;

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
    let task = engine.results().task(id)?;
    let Some(group) = group_of(&task) else { return Ok(engine.cancellations().request(id, None)?) };
    for attempt in engine.results().group(group)?.iter().filter(|task| !task.state.is_terminal()) {
        engine.cancellations().request(&attempt.id, None)?;
    }
    Ok(())
}

/// The state of a handle according to the registry: its progress while it works, its result when it has
/// ended.
fn handle_status(
    state: &ServerState,
    context: &Context<'_>,
    handle: &Handle,
) -> Result<DetailedTask, AppError> {
    let engine = engine(context)?;
    let ids = match handle {
        Handle::Run(id) => std::slice::from_ref(id),
        Handle::Wait(wait) => &wait.ids,
    };
    let mut tasks = ids.iter().map(|id| engine.results().task(id)).collect::<Result<Vec<_>, _>>()?;
    if let (Handle::Run(_), Some(group)) = (handle, tasks.first().and_then(group_of).cloned()) {
        tasks = engine.results().group(&group)?;
    }
    let ended = tasks.iter().filter(|task| task.state.is_terminal()).count();
    let latest = tasks.iter().map(|task| task.updated_at_ms).max().unwrap_or_default();
    let first = tasks.iter().map(|task| task.created_at_ms).min().unwrap_or_default();
    let mut task_handle = TaskHandle::new(
        handle.to_text(),
        TaskStatus::Working,
        UtcTime::from_ms(first).0,
        UtcTime::from_ms(latest).0,
    )
    .with_poll_interval_ms(POLL_INTERVAL_MS);
    task_handle.ttl_ms = engine.retention_ms.and_then(|retention| u64::try_from(retention).ok());
    let is_cancelled = match handle {
        Handle::Run(_) => tasks.iter().all(|task| task.state == State::Cancelled),
        Handle::Wait(_) => handles::is_wait_cancelled(&engine, handle)?,
    };
    if is_cancelled {
        return Ok(DetailedTask::new(task_handle, TaskPayload::Cancelled));
    }
    let all_ended = ended == tasks.len();
    let (reached, expired) = match handle {
        Handle::Run(_) => (all_ended, false),
        Handle::Wait(wait) => {
            let reached = if wait.input.until == WaitGoal::Any { ended > 0 } else { all_ended };
            (reached, !reached && wait.is_expired())
        }
    };
    if !reached && !expired {
        return Ok(DetailedTask::new(task_handle, TaskPayload::Working));
    }
    let (call, after) = match handle {
        Handle::Run(id) => {
            let format =
                handles::stored_format(&engine, handle)?.unwrap_or(state.toolbox.settings.default_format);
            let call = ToolCall::new(&commands::local::run::SPEC, format);
            (call, AfterWait::Run { id: id.clone(), replayed: false, origin: None })
        }
        Handle::Wait(wait) => {
            let call = ToolCall::new(&commands::local::wait::SPEC, wait.format);
            let call = call.with_output(wait.input.max_output_bytes.map(u64::from));
            (call, AfterWait::Wait(wait.resolved(&engine)))
        }
    };
    let output = after.output(context, GroupWaitOutcome { tasks, expired });
    let result = serde_json::to_value(state.render(&call, output)).unwrap_or_default();
    let result = result.as_object().cloned().unwrap_or_default();
    Ok(DetailedTask::new(task_handle, TaskPayload::Completed { result }))
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
