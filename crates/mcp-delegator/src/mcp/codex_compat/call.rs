//! One call of them: a task, the wait for its end, and its last message.

use delegator_domain::task::TaskId;
use delegator_engine::resident::{Goal, Watched};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use super::CompatTool;
use super::translation::{in_their_words, translated};
use crate::cli::globals::Format;
use crate::commands::local::run::failure;
use crate::commands::local::tasks::{as_they_stand, engine, first_of};
use crate::fault::{AppError, ErrorCode};
use crate::mcp::answering::surviving;
use crate::mcp::call::Admitted;
use crate::mcp::server::Server;
use crate::mcp::staying::Listener;
use crate::outcome::Answer;
use crate::registry::stay::Staying;
use crate::run::Context;
use crate::views::task as view;

/// How a task ended.
struct Ended {
    thread: Option<String>,
    message: Result<String, AppError>,
}

impl Server {
    /// Stays until the task has ended, however long that takes: that is what callers of these tools expect.
    pub async fn as_codex(
        &self,
        tool: CompatTool,
        given: Map<String, Value>,
        listener: Option<&Listener>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let call = match self.translated(tool, given).await {
            Ok(call) => call,
            Err(result) => return (*result).into(),
        };
        let ended = surviving(self.ended(&call, listener, context)).await.flatten();
        let result = match ended {
            Ok(Ended { thread, message: Ok(message) }) => {
                let message = self.surroundings.quoted(&message);
                answered(CallToolResult::success(vec![ContentBlock::text(&message)]), thread, &message)
            }
            Ok(Ended { thread, message: Err(error) }) => self.failed(&call, thread, error),
            Err(error) => self.failed(&call, None, error),
        };
        result.into()
    }

    /// The call in our words, if there is nothing wrong with it.
    async fn translated(
        &self,
        tool: CompatTool,
        given: Map<String, Value>,
    ) -> Result<Admitted, Box<CallToolResult>> {
        let said = translated(tool, given, &self.surroundings.process.current_dir);
        let mut object = said.object;
        if let (CompatTool::Reply, Some(thread)) = (tool, object.get("thread_id").and_then(Value::as_str)) {
            let thread = thread.to_owned();
            let had = self.work(move |context| had(context, &thread)).await;
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
                for problem in ours.into_iter().map(in_their_words) {
                    if !problems.iter().any(|told| told.field == problem.field) {
                        problems.push(problem);
                    }
                }
                AppError::of_problems(problems)
            }
        };
        Err(Box::new(self.failed(&call, None, error)))
    }

    async fn ended(
        &self,
        call: &Admitted,
        listener: Option<&Listener>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Ended, AppError> {
        let id = task_of(&self.done(call, listener).await?)?;
        let staying = Staying { ids: vec![id], goal: Goal::All, within: None, facts: Map::new() };
        let watched = self.watched(&staying, listener, context).await?;
        self.work(move |context| ended(context, watched)).await
    }

    fn failed(&self, call: &Admitted, thread: Option<String>, error: AppError) -> CallToolResult {
        let told = self.surroundings.render(call, Err(error)).content;
        let text = told.iter().find_map(|block| block.as_text().map(|text| text.text.clone()));
        let text = text.unwrap_or_default();
        answered(CallToolResult::error(vec![ContentBlock::text(&text)]), thread, &text)
    }
}

fn answered(mut result: CallToolResult, thread: Option<String>, content: &str) -> CallToolResult {
    result.structured_content = thread.map(|thread| json!({"threadId": thread, "content": content}));
    result
}

/// A reply goes on with what its thread had.
fn had(context: &Context<'_>, thread: &str) -> Result<Map<String, Value>, AppError> {
    let Some(task) = engine(context)?.last_of_thread(thread)? else { return Ok(Map::new()) };
    let mut had = Map::new();
    had.insert("mode".to_owned(), task.mode.name().into());
    had.extend(task.model.map(|model| ("model".to_owned(), model.into())));
    Ok(had)
}

fn task_of(answer: &Answer) -> Result<TaskId, AppError> {
    let (data, _) = answer.completion.parts();
    let id = data.and_then(|data| data["task_id"].as_str()).and_then(|id| id.parse().ok());
    id.ok_or_else(|| AppError::new(ErrorCode::Internal, "The task was accepted without an id."))
}

fn ended(context: &Context<'_>, watched: Watched) -> Result<Ended, AppError> {
    let engine = engine(context)?;
    let task = first_of(as_they_stand(&engine, watched)?)?.task;
    let files = engine.files(&task.id)?;
    engine.mark_read(&task.id)?;
    let message = match failure(&task, &files) {
        None => Ok(view::final_text(files.record.as_ref()).unwrap_or_default().to_owned()),
        Some(error) => Err(error),
    };
    Ok(Ended { thread: task.thread_id, message })
}
