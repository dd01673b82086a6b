//! One call of them: a task, the wait for its end, and its last message.

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use super::CompatTool;
use super::translation::{rename_to_codex_input, translate};
use crate::cli::globals::Format;
use crate::commands::local::run::task_error;
use crate::commands::local::tasks::{engine, first_ended, refresh};
use crate::error::{AppError, ErrorCode};
use crate::mcp::call_handler::catch_panic;
use crate::mcp::server::Server;
use crate::mcp::server_state::AdmittedCall;
use crate::mcp::waiting::ProgressReporter;
use crate::outcome::CommandOutput;
use crate::run::Context;
use crate::spec::waiting::TaskWait;
use crate::views::task as view;

/// How a task ended.
struct CodexResult {
    thread: Option<String>,
    message: Result<String, AppError>,
}

impl Server {
    /// Stays until the task has ended, however long that takes: that is what callers of these tools expect.
    pub async fn call_codex_tool(
        &self,
        tool: CompatTool,
        given: Map<String, Value>,
        listener: Option<&ProgressReporter>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let call = match self.translate_and_admit(tool, given).await {
            Ok(call) => call,
            Err(result) => return (*result).into(),
        };
        let ended = catch_panic(self.run_to_end(&call, listener, context)).await.flatten();
        let result = match ended {
            Ok(CodexResult { thread, message: Ok(message) }) => {
                let message = self.state.redact_text(&message);
                with_structured_content(
                    CallToolResult::success(vec![ContentBlock::text(&message)]),
                    thread,
                    &message,
                )
            }
            Ok(CodexResult { thread, message: Err(error) }) => self.failure_result(&call, thread, error),
            Err(error) => self.failure_result(&call, None, error),
        };
        result.into()
    }

    /// The call in our words, if there is nothing wrong with it.
    async fn translate_and_admit(
        &self,
        tool: CompatTool,
        given: Map<String, Value>,
    ) -> Result<AdmittedCall, Box<CallToolResult>> {
        let said = translate(tool, given, &self.state.process.current_dir);
        let mut object = said.object;
        if let (CompatTool::Reply, Some(thread)) = (tool, object.get("thread_id").and_then(Value::as_str)) {
            let thread = thread.to_owned();
            let had = self.with_context(move |context| thread_settings(context, &thread)).await;
            object.extend(had.unwrap_or_default());
        }
        let (mut call, error) = match self.admit(tool.spec(), object).await {
            Ok(call) => (call, None),
            Err(refused) => (*refused.call, Some(*refused.error)),
        };
        call.format = Format::Markdown;
        let error = match error {
            None if said.problems.is_empty() => return Ok(call),
            Some(error) if error.problems.is_empty() => error,
            found => {
                let ours = found.map(|error| error.problems).unwrap_or_default();
                let mut problems = said.problems;
                for problem in ours.into_iter().map(rename_to_codex_input) {
                    if !problems.iter().any(|told| told.field == problem.field) {
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
        call: &AdmittedCall,
        listener: Option<&ProgressReporter>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CodexResult, AppError> {
        let id = task_id_of(&self.run_command(call, listener).await?)?;
        let staying = TaskWait { ids: vec![id], goal: WaitGoal::All, timeout: None, facts: Map::new() };
        let watched = self.wait_for_tasks(&staying, listener, context).await?;
        self.with_context(move |context| codex_result(context, watched)).await
    }

    fn failure_result(&self, call: &AdmittedCall, thread: Option<String>, error: AppError) -> CallToolResult {
        let told = self.state.render(call, Err(error)).content;
        let text = told.iter().find_map(|block| block.as_text().map(|text| text.text.clone()));
        let text = text.unwrap_or_default();
        with_structured_content(CallToolResult::error(vec![ContentBlock::text(&text)]), thread, &text)
    }
}

fn with_structured_content(
    mut result: CallToolResult,
    thread: Option<String>,
    content: &str,
) -> CallToolResult {
    result.structured_content = thread.map(|thread| json!({"threadId": thread, "content": content}));
    result
}

/// A reply goes on with what its thread had.
fn thread_settings(context: &Context<'_>, thread: &str) -> Result<Map<String, Value>, AppError> {
    let Some(task) = engine(context)?.last_task_of_thread(thread)? else { return Ok(Map::new()) };
    let mut had = Map::new();
    had.insert("mode".to_owned(), task.mode.name().into());
    had.extend(task.model.map(|model| ("model".to_owned(), model.into())));
    Ok(had)
}

fn task_id_of(answer: &CommandOutput) -> Result<TaskId, AppError> {
    let (data, _) = answer.completion.parts();
    let id = data.and_then(|data| data["task_id"].as_str()).and_then(|id| id.parse().ok());
    id.ok_or_else(|| AppError::new(ErrorCode::Internal, "The task was accepted without an id."))
}

fn codex_result(context: &Context<'_>, watched: GroupWaitOutcome) -> Result<CodexResult, AppError> {
    let engine = engine(context)?;
    let task = first_ended(refresh(&engine, watched)?)?.task;
    let files = engine.files(&task.id)?;
    engine.mark_read(&task.id)?;
    let message = match task_error(&task, &files) {
        None => Ok(view::final_text(files.record.as_ref()).unwrap_or_default().to_owned()),
        Some(error) => Err(error),
    };
    Ok(CodexResult { thread: task.thread_id, message })
}
