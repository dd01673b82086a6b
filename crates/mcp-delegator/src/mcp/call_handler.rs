//! A tool call on its way to its answer: let in, confirmed, run or stayed with, and told of meanwhile.

use std::sync::Arc;
use std::task::Poll;

use delegator_engine::wait_thread::GroupWaitOutcome;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};

use super::backlog::{acquire_long_response, outside_backlog};
use super::confirmation::{self, UserDecision};
use super::listeners::wait_for_listener;
use super::server::{Server, invalid_params, run_blocking};
use super::server_state::{AdmittedCall, RefusedCall};
use super::waiting::{ProgressReporter, report_while, wait_for_tasks};
use crate::commands::local::tasks::engine;
use crate::error::{AppError, ErrorCode};
use crate::outcome::CommandOutput;
use crate::run::catch_panics;
use crate::spec::CommandSpec;
use crate::spec::waiting::{BlockingCommand, Started, TaskWait};

impl Server {
    /// The answer to a call of whatever tool is meant.
    pub(super) async fn handle_call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let toolbox = &self.state.toolbox;
        if let Some(tool) = toolbox.find_compat(&request.name) {
            let listener = ProgressReporter::start(context, tool.about()).await;
            let given = request.arguments.unwrap_or_default();
            let answer = self.call_codex_tool(tool, given, listener.as_ref(), context);
            return unless_cancelled(context, answer).await;
        }
        let Some(spec) = toolbox.find(&request.name) else {
            let nearest = toolbox.nearest(&request.name);
            let hint = nearest.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
            return Err(invalid_params(format!("Unknown tool: {}.{hint}", request.name)));
        };
        let listener = ProgressReporter::start(context, spec.about).await;
        let listener = listener.as_ref();
        let object = request.arguments.clone().unwrap_or_default();
        let call = match self.admit(spec, object.clone()).await {
            Ok(call) => call,
            Err(refused) => match self.ask_confirmation(refused, object, &request, listener, context).await {
                Ok(call) => call,
                Err(response) => return Ok(response),
            },
        };
        unless_cancelled(context, self.respond(&call, listener, context)).await
    }

    /// Lets a call in or not. Of one that may change something files are looked at first, so that is done on a thread that
    /// may block.
    pub(super) async fn admit(
        &self,
        spec: &'static CommandSpec,
        object: Map<String, Value>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let surroundings = Arc::clone(&self.state);
        let judge = move || catch_panics(|| Ok(surroundings.admit(spec, object)));
        let judged = if spec.is_safe() { judge() } else { run_blocking(judge).await };
        judged.unwrap_or_else(|error| Err(self.state.refuse_unvalidated(spec, error)))
    }

    /// The answer; a panic on the way to it is one, too.
    async fn respond(
        &self,
        call: &AdmittedCall,
        listener: Option<&ProgressReporter>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        match catch_panic(self.execute(call, listener, context)).await {
            Ok(response) => response,
            Err(error) => self.state.render(call, Err(error)).into(),
        }
    }

    /// What a command is called here.
    #[cfg(feature = "conformance-fixtures")]
    pub fn name_of(&self, spec: &CommandSpec) -> String {
        spec.tool_name(self.state.toolbox.prefix())
    }

    /// A call whose handler breaks down: for the proof that the server does not.
    #[cfg(feature = "conformance-fixtures")]
    pub async fn panicking_call(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        static BREAKS: CommandSpec = CommandSpec {
            run: Some(|_, _| std::panic::panic_any("the handler broke down")),
            ..crate::commands::local::status::SPEC
        };
        let call = self.state.admit(&BREAKS, Map::new());
        let call = call.map_err(|refused| invalid_params(refused.error.message.clone()))?;
        Ok(self.respond(&call, None, context).await)
    }

    async fn execute(
        &self,
        call: &AdmittedCall,
        listener: Option<&ProgressReporter>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let input = call.input.clone();
        let mut long = if call.may_be_long() { acquire_long_response(context).await } else { None };
        let answered = match call.spec.blocking {
            Some(blocking) => {
                let begun = self.with_context(move |context| (blocking.begin)(context, &input));
                match report_while(listener, call.spec.about, begun).await {
                    Ok(Started::Finished(answer)) => Ok(*answer),
                    Ok(Started::Waiting(waiting)) if declares_tasks(context) => {
                        return self.create_handle(call, &waiting).await;
                    }
                    Ok(Started::Waiting(waiting)) => {
                        drop(long.take());
                        let watched = self.wait_for_tasks(&waiting, listener, context).await;
                        long = if call.may_be_long() { acquire_long_response(context).await } else { None };
                        self.finish_wait(call, blocking, &waiting, watched).await
                    }
                    Err(error) => Err(error),
                }
            }
            None => self.run_command(call, listener).await,
        };
        let response = self.state.render(call, answered).into();
        drop(long);
        response
    }

    /// What a command does that does not stay.
    pub(super) async fn run_command(
        &self,
        call: &AdmittedCall,
        listener: Option<&ProgressReporter>,
    ) -> Result<CommandOutput, AppError> {
        let Some(run) = call.spec.run else {
            return Err(AppError::new(ErrorCode::Internal, "A command without a handler was accepted."));
        };
        let input = call.input.clone();
        report_while(listener, call.spec.about, self.with_context(move |context| run(context, input))).await
    }

    async fn finish_wait(
        &self,
        call: &AdmittedCall,
        how: BlockingCommand,
        waiting: &TaskWait,
        watched: Result<GroupWaitOutcome, AppError>,
    ) -> Result<CommandOutput, AppError> {
        let watched = watched?;
        let input = call.input.clone();
        let mut answer = self.with_context(move |context| (how.end)(context, &input, watched)).await?;
        answer.facts.extend(waiting.facts.clone());
        Ok(answer)
    }

    /// Until what is awaited has happened, and somebody listens to hear it.
    pub(super) async fn wait_for_tasks(
        &self,
        waiting: &TaskWait,
        listener: Option<&ProgressReporter>,
        context: &RequestContext<RoleServer>,
    ) -> Result<GroupWaitOutcome, AppError> {
        let engine = self.with_context(engine).await?;
        outside_backlog(context, async {
            let watched = wait_for_tasks(&self.resident, engine, waiting, listener).await?;
            wait_for_listener(context).await;
            Ok(watched)
        })
        .await
    }

    /// The user's word, where it is missing and the host can ask for it.
    async fn ask_confirmation(
        &self,
        refused: RefusedCall,
        mut object: Map<String, Value>,
        request: &CallToolRequestParams,
        listener: Option<&ProgressReporter>,
        context: &RequestContext<RoleServer>,
    ) -> Result<AdmittedCall, CallToolResponse> {
        let (spec, current_dir) = (refused.call.spec, &self.state.process.current_dir);
        let refuse = |refused: RefusedCall| -> CallToolResponse {
            self.state.render(&refused.call, Err(*refused.error)).into()
        };
        if !refused.lacks_only_confirmation() || !confirmation::can_ask(context) {
            return Err(refuse(refused));
        }
        let said = if confirmation::uses_input_required(context) {
            match confirmation::decision_from_responses(request.input_responses.as_ref()) {
                Some(said) => Some(said),
                None => {
                    return Err(match confirmation::input_required(&object, current_dir) {
                        Some(question) => question.into(),
                        None => refuse(refused),
                    });
                }
            }
        } else {
            let asking = report_while(
                listener,
                "Waiting for the user",
                confirmation::ask(context, &object, current_dir),
            );
            outside_backlog(context, asking).await
        };
        match said {
            Some(UserDecision::Yes) => confirmation::set_confirmed(&mut object),
            Some(said) => {
                return Err(refuse(RefusedCall { error: confirmation::refusal(said).into(), ..refused }));
            }
            None => return Err(refuse(refused)),
        }
        self.admit(spec, object).await.map_err(refuse)
    }
}

/// A panic on the way is an error like any other.
pub(super) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, AppError> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|waker| match catch_panics(|| Ok(work.as_mut().poll(waker))) {
        Ok(poll) => poll.map(Ok),
        Err(error) => Poll::Ready(Err(error)),
    })
    .await
}

/// A cancelled request ends the call; what the call has begun goes on, and what it has not begun is not.
async fn unless_cancelled(
    context: &RequestContext<RoleServer>,
    answer: impl Future<Output = CallToolResponse>,
) -> Result<CallToolResponse, ErrorData> {
    tokio::select! {
        biased;
        () = context.ct.cancelled() => Err(ErrorData::internal_error("The request was cancelled.", None)),
        response = answer => Ok(response),
    }
}

/// Only a request that says so itself can be given a handle.
fn declares_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.meta.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}
