//! The state of a handle according to the registry: its progress while it works, its result when it has
//! ended.

use delegator_domain::task::State;
use delegator_engine::wait_thread::GroupWaitOutcome;
use rmcp::model::{DetailedTask, Task as TaskHandle, TaskPayload, TaskStatus};

use crate::commands;
use crate::commands::AfterWait;
use crate::commands::context::Context;
use crate::commands::local::attempts::group_of;
use crate::commands::local::tasks::engine;
use crate::error::AppError;
use crate::mcp::tasks_extension::handles::{Handle, WaitKind, is_wait_cancelled, stored_format};
use crate::mcp::tools::server_state::{ServerState, ToolCall};
use crate::output::values::UtcTime;

const POLL_INTERVAL_MS: u64 = 2_000;

pub fn handle_status(
    state: &ServerState,
    context: &Context<'_>,
    handle: &Handle,
) -> Result<DetailedTask, AppError> {
    let engine = engine(context)?;
    let ids = match handle {
        Handle::Run(id) => vec![id.clone()],
        Handle::Wait(wait) => wait.ids.clone(),
    };
    let mut tasks = ids.iter().map(|id| engine.task(id)).collect::<Result<Vec<_>, _>>()?;
    if let (Handle::Run(_), Some(group)) = (handle, tasks.first().and_then(group_of).cloned()) {
        tasks = engine.group(&group)?;
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
        Handle::Wait(_) => is_wait_cancelled(&engine, handle)?,
    };
    if is_cancelled {
        return Ok(DetailedTask::new(task_handle, TaskPayload::Cancelled));
    }
    let (reached, expired) = match handle {
        Handle::Run(_) => (ended == tasks.len(), false),
        Handle::Wait(wait) => {
            let reached = if wait.kind == WaitKind::Any { ended > 0 } else { ended == tasks.len() };
            (reached, !reached && wait.is_expired())
        }
    };
    if !reached && !expired {
        return Ok(DetailedTask::new(task_handle, TaskPayload::Working));
    }
    let (call, after) = match handle {
        Handle::Run(id) => {
            let format = stored_format(&engine, handle)?.unwrap_or(state.toolbox.settings.default_format);
            (
                ToolCall::new(&commands::local::run::SPEC, format),
                AfterWait::Run { id: id.clone(), replayed: false },
            )
        }
        Handle::Wait(wait) => {
            let call = ToolCall::new(&commands::local::wait::SPEC, wait.options.format);
            let wait = wait.resolved(&engine);
            (call.with_output(wait.input.max_output_bytes.map(u64::from)), AfterWait::Wait(wait))
        }
    };
    let output = after.output(context, GroupWaitOutcome { tasks, expired });
    let result = serde_json::to_value(state.render(&call, output)).unwrap_or_default();
    let result = result.as_object().cloned().unwrap_or_default();
    Ok(DetailedTask::new(task_handle, TaskPayload::Completed { result }))
}
