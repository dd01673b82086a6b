//! Executes a call of `codex` or `codex-reply`: start a task, wait for its end, return its final message.

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::commands::context::Context;
use crate::commands::local::run::task_error;
use crate::commands::local::tasks::{engine, first_ended, refresh};
use crate::commands::{Started, TaskWait};
use crate::error::{AppError, ErrorCode};
use crate::mcp::codex_compat::CompatTool;
use crate::mcp::codex_compat::translation::{rename_to_codex_input, translate};
use crate::mcp::server::Server;
use crate::mcp::tools::call_handler::{CallScope, catch_panic};
use crate::mcp::tools::server_state::{AdmittedCall, ToolCall};
use crate::output::command_data::Data;
use crate::output::data::stored_task::final_text;
use crate::spec::formats::Format;

struct CodexResult {
    thread: Option<String>,
    message: Result<String, AppError>,
}

impl Server {
    /// Waits until the task has ended, without a time limit, as Codex's own server did.
    pub(in crate::mcp) async fn call_codex_tool(
        &self,
        tool: CompatTool,
        given: Map<String, Value>,
        scope: CallScope<'_>,
    ) -> CallToolResponse {
        let admitted = match self.translate_and_admit(tool, given).await {
            Ok(admitted) => admitted,
            Err(result) => return (*result).into(),
        };
        let call = admitted.call;
        let ended = catch_panic(self.run_to_end(admitted, scope)).await.flatten();
        let failed = |error| CodexResult { thread: None, message: Err(error) };
        let CodexResult { thread, message } = ended.unwrap_or_else(failed);
        let result = match message {
            Ok(message) => tool_result(CallToolResult::success, thread, &self.state.redact_text(&message)),
            Err(error) => self.failure_result(&call, thread, error),
        };
        result.into()
    }

    /// Translates the inputs and validates the call. Problems are reported with Codex's input names.
    async fn translate_and_admit(
        &self,
        tool: CompatTool,
        given: Map<String, Value>,
    ) -> Result<AdmittedCall, Box<CallToolResult>> {
        let translated = translate(tool, given, &self.state.process.current_dir);
        let mut object = translated.object;
        if let (CompatTool::Reply, Some(thread)) = (tool, object.get("thread_id").and_then(Value::as_str)) {
            let thread = thread.to_owned();
            let settings = self.with_context(move |context| thread_settings(context, &thread)).await;
            object.extend(settings.unwrap_or_default());
        }
        let (mut call, admitted) = match self.admit(tool.spec(), object).await {
            Ok(admitted) => (admitted.call, Ok(admitted)),
            Err(refused) => (refused.call, Err(*refused.error)),
        };
        call.format = Format::Markdown;
        let error = match admitted {
            Ok(admitted) if translated.problems.is_empty() => return Ok(AdmittedCall { call, ..admitted }),
            Err(error) if error.problems.is_empty() => error,
            found => {
                let own_problems = found.err().map(|error| error.problems).unwrap_or_default();
                let mut problems = translated.problems;
                for problem in own_problems.into_iter().map(rename_to_codex_input) {
                    if !problems.iter().any(|known| known.field == problem.field) {
                        problems.push(problem);
                    }
                }
                AppError::from_problems(problems)
            }
        };
        Err(Box::new(self.failure_result(&call, None, error)))
    }

    async fn run_to_end(
        &self,
        admitted: AdmittedCall,
        scope: CallScope<'_>,
    ) -> Result<CodexResult, AppError> {
        let id = task_id_of(&self.start(admitted, scope).await?)?;
        let wait = TaskWait { ids: vec![id], goal: WaitGoal::All, timeout: None };
        let outcome = self.wait_for_tasks(&wait, scope).await?;
        self.with_context(move |context| codex_result(context, outcome)).await
    }

    fn failure_result(&self, call: &ToolCall, thread: Option<String>, error: AppError) -> CallToolResult {
        let content = self.state.render(call, Err(error)).content;
        let text = content.iter().find_map(|block| block.as_text());
        let text = text.map(|text| text.text.as_str()).unwrap_or_default();
        tool_result(CallToolResult::error, thread, text)
    }
}

fn tool_result(
    to_result: fn(Vec<ContentBlock>) -> CallToolResult,
    thread: Option<String>,
    content: &str,
) -> CallToolResult {
    let mut result = to_result(vec![ContentBlock::text(content)]);
    result.structured_content = thread.map(|thread| json!({"threadId": thread, "content": content}));
    result
}

/// The sandbox mode and the model of a thread; a reply uses the same.
fn thread_settings(context: &Context<'_>, thread: &str) -> Result<Map<String, Value>, AppError> {
    let Some(task) = engine(context)?.results().last_task_of_thread(thread)? else { return Ok(Map::new()) };
    let mode = ("mode".to_owned(), task.mode.name().into());
    Ok([mode].into_iter().chain(task.model.map(|model| ("model".to_owned(), model.into()))).collect())
}

fn task_id_of(started: &Started) -> Result<TaskId, AppError> {
    let task = match started {
        Started::Finished(output) => output.data.as_ref().and_then(Data::task),
        Started::Waiting(..) => None,
    };
    let id = task.and_then(|task| task.task_id.parse().ok());
    id.ok_or_else(|| AppError::new(ErrorCode::Internal, "The task was accepted without an id."))
}

fn codex_result(context: &Context<'_>, outcome: GroupWaitOutcome) -> Result<CodexResult, AppError> {
    let engine = engine(context)?;
    let task = first_ended(&refresh(&engine, outcome)?)?.task;
    let files = engine.results().files(&task.id)?;
    engine.results().mark_read(&task.id)?;
    let final_message = || final_text(files.record.as_ref()).unwrap_or_default().to_owned();
    let message = task_error(&task, &files).map_or_else(|| Ok(final_message()), Err);
    Ok(CodexResult { thread: task.thread_id, message })
}
