//! Executes a tool call: validate it, ask the user for a missing confirmation, run it or wait for its tasks,
//! render.
//!
//! Progress notifications are sent meanwhile if the request carries a progress token. A panic anywhere on
//! this path becomes an error response. A cancelled request ends the call, never a task that the call
//! started.

use std::sync::Arc;
use std::task::Poll;

use delegator_engine::wait_thread::GroupWaitOutcome;
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, InputRequiredResult};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::commands::local::tasks::engine;
use crate::commands::{Started, TaskWait};
use crate::error::{AppError, catch_panics};
use crate::mcp::RequestContext;
use crate::mcp::server::{Server, invalid_params, run_blocking};
use crate::mcp::tools::confirmation::{self, Confirmation};
use crate::mcp::tools::progress::{ProgressReporter, report_seconds_while, report_while};
use crate::mcp::tools::questions;
use crate::mcp::tools::server_state::{AdmittedCall, RefusedCall, ToolCall};
use crate::mcp::tools::waiting::wait_for_tasks;
use crate::mcp::transport::backlog::{acquire_long_response, outside_backlog};
use crate::mcp::transport::listeners::wait_for_listener;
use crate::spec::CommandSpec;
use delegator_engine::own_task;

/// A request of a client, and where its progress is reported.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct CallScope<'a> {
    request: &'a CallToolRequestParams,
    progress: Option<&'a ProgressReporter>,
    context: &'a RequestContext,
}

impl Server {
    pub(in crate::mcp) async fn handle_call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let toolbox = &self.state.toolbox;
        if let Some(tool) = toolbox.find_compat(&request.name) {
            let progress = ProgressReporter::start(context, tool.about()).await;
            let scope = CallScope { request: &request, progress: progress.as_ref(), context };
            let given = request.arguments.clone().unwrap_or_default();
            return unless_cancelled(context, self.call_codex_tool(tool, given, scope)).await;
        }
        let Some(spec) = toolbox.find(&request.name) else {
            let nearest = toolbox.nearest(&request.name);
            let hint = nearest.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
            return Err(invalid_params(format!("Unknown tool: {}.{hint}", request.name)));
        };
        let progress = ProgressReporter::start(context, spec.about).await;
        let scope = CallScope { request: &request, progress: progress.as_ref(), context };
        let object = request.arguments.clone().unwrap_or_default();
        let call = match self.admit(spec, object.clone()).await {
            Ok(call) => call,
            Err(refused) => match self.ask_confirmation(refused, object, scope).await {
                Ok(call) => call,
                Err(response) => return Ok(response),
            },
        };
        unless_cancelled(context, self.respond(call, scope)).await
    }

    /// Validates a call. The preflight check of a command that may change something reads files, so it runs
    /// on a blocking thread.
    pub(in crate::mcp) async fn admit(
        &self,
        spec: &'static CommandSpec,
        object: Map<String, Value>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let state = Arc::clone(&self.state);
        let validate = move || catch_panics(|| Ok(state.admit(spec, object)));
        let validated = if spec.is_safe() { validate() } else { run_blocking(validate).await };
        validated.unwrap_or_else(|error| {
            let call = ToolCall::new(spec, self.state.toolbox.settings.default_format);
            Err(RefusedCall { call, error: Box::new(error) })
        })
    }

    async fn respond(&self, admitted: AdmittedCall, scope: CallScope<'_>) -> CallToolResponse {
        let call = admitted.call;
        match catch_panic(self.execute(admitted, scope)).await {
            Ok(response) => response,
            Err(error) => self.state.render(&call, Err(error)).into(),
        }
    }

    async fn execute(&self, admitted: AdmittedCall, scope: CallScope<'_>) -> CallToolResponse {
        let context = scope.context;
        let call = admitted.call;
        let mut long_permit = if call.may_be_long() { acquire_long_response(context).await } else { None };
        let output = match self.start(admitted, scope).await {
            Ok(Started::Finished(output)) => Ok(*output),
            Ok(Started::Waiting(wait, after)) if declares_tasks(context) => {
                return self.create_handle(&call, wait, after).await;
            }
            Ok(Started::Waiting(wait, after)) => {
                drop(long_permit.take());
                let asks = questions::can_respond(call.spec, context) && self.may_ask(&wait).await;
                let end = if asks {
                    Box::pin(self.wait_or_ask(&wait, scope)).await
                } else {
                    self.wait_for_tasks(&wait, scope).await.map(WaitEnd::Over)
                };
                match end {
                    Ok(WaitEnd::Asks(question)) => return question.into(),
                    Ok(WaitEnd::Over(outcome)) => {
                        if call.may_be_long() {
                            long_permit = acquire_long_response(context).await;
                        }
                        self.with_context(move |context| after.output(context, outcome)).await
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
        let response = self.state.render(&call, output).into();
        drop(long_permit);
        response
    }

    /// Runs a command up to its end, or until it has to wait for tasks.
    pub(in crate::mcp) async fn start(
        &self,
        admitted: AdmittedCall,
        scope: CallScope<'_>,
    ) -> Result<Started, AppError> {
        let AdmittedCall { call, prepared } = admitted;
        let work = self.with_context(move |context| prepared.run(context));
        report_while(scope.progress, call.spec.about, work).await
    }

    /// Returns when the wait is over and a client is connected to receive the response. Questions of the
    /// agents are passed on to the user meanwhile.
    pub(in crate::mcp) async fn wait_for_tasks(
        &self,
        waiting: &TaskWait,
        scope: CallScope<'_>,
    ) -> Result<GroupWaitOutcome, AppError> {
        let CallScope { progress, context, .. } = scope;
        let engine = self.with_context(engine).await?;
        outside_backlog(context, async {
            let (sender, open) = watch::channel(Vec::new());
            let sender = (questions::can_pass_on(context) && self.may_ask(waiting).await).then_some(sender);
            // On the heap, because every call reserves memory for what it may await.
            let asking = Box::pin(questions::ask_user(context, &engine, open));
            let wait = wait_for_tasks(&self.wait_thread, engine.clone(), waiting, progress, sender);
            let (outcome, ()) = tokio::join!(wait, asking);
            let outcome = outcome?;
            wait_for_listener(context).await;
            Ok(outcome)
        })
        .await
    }

    /// Whether the user of this client may answer questions of the awaited tasks: a client that one of them
    /// runs may not, because an agent would answer itself.
    async fn may_ask(&self, waiting: &TaskWait) -> bool {
        let ids = waiting.ids.clone();
        let is_inside = self.with_context(move |context| {
            let caller = own_task(&engine(context)?)?;
            Ok(caller.is_some_and(|caller| ids.iter().any(|id| caller.is_inside(id))))
        });
        is_inside.await.is_ok_and(|is_inside| !is_inside)
    }

    /// Like [`Server::wait_for_tasks`], but also ends when an agent asks a question that the call has not
    /// asked yet.
    async fn wait_or_ask(&self, waiting: &TaskWait, scope: CallScope<'_>) -> Result<WaitEnd, AppError> {
        let CallScope { request, progress, context } = scope;
        let engine = self.with_context(engine).await?;
        questions::record_answers(&engine, &waiting.ids, request).await;
        outside_backlog(context, async {
            let (sender, mut open) = watch::channel(Vec::new());
            let wait = wait_for_tasks(&self.wait_thread, engine, waiting, progress, Some(sender));
            let asks = async {
                let new =
                    open.wait_for(|open| open.iter().any(|entry| questions::is_new(entry, request))).await;
                match new.ok().map(|open| questions::input_required(&open, request)) {
                    Some(question) => question,
                    // The wait is over, which ends the call.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                outcome = wait => Ok(WaitEnd::Over(outcome?)),
                question = asks => Ok(WaitEnd::Asks(question)),
            }
        })
        .await
    }

    /// Asks the user for a missing confirmation, if the client can ask. Otherwise returns the refusal.
    async fn ask_confirmation(
        &self,
        refused: RefusedCall,
        mut object: Map<String, Value>,
        scope: CallScope<'_>,
    ) -> Result<AdmittedCall, CallToolResponse> {
        let CallScope { request, progress, context } = scope;
        let (spec, current_dir) = (refused.call.spec, &self.state.process.current_dir);
        let refuse = |refused: RefusedCall| -> CallToolResponse {
            self.state.render(&refused.call, Err(*refused.error)).into()
        };
        if !refused.lacks_only_confirmation() {
            return Err(refuse(refused));
        }
        self.state.state_default_mode(spec, &mut object);
        let answer = if !confirmation::can_ask(context) {
            Confirmation::Unavailable
        } else if confirmation::uses_input_required(context) {
            match confirmation::answer_in(request) {
                Some(answer) => answer,
                None => return Err(confirmation::input_required(&object, current_dir).into()),
            }
        } else {
            let answer = confirmation::ask(context, &object, current_dir);
            let limit = confirmation::ANSWER_TIMEOUT;
            let reported = report_seconds_while(progress, "Waiting for the user to confirm", limit, answer);
            outside_backlog(context, reported).await
        };
        if let Some(error) = answer.refusal() {
            return Err(refuse(RefusedCall { error: error.into(), ..refused }));
        }
        confirmation::set_confirmed(&mut object);
        self.admit(spec, object).await.map_err(refuse)
    }
}

enum WaitEnd {
    Over(GroupWaitOutcome),
    /// The client is to repeat the call with the answers.
    Asks(InputRequiredResult),
}

/// Awaits a future; a panic in it becomes an error.
pub(in crate::mcp) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, AppError> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|waker| match catch_panics(|| Ok(work.as_mut().poll(waker))) {
        Ok(poll) => poll.map(Ok),
        Err(error) => Poll::Ready(Err(error)),
    })
    .await
}

/// Drops the call when the client cancels its request. Tasks that the call has started continue.
async fn unless_cancelled(
    context: &RequestContext,
    call: impl Future<Output = CallToolResponse>,
) -> Result<CallToolResponse, ErrorData> {
    tokio::select! {
        biased;
        () = context.ct.cancelled() => Err(ErrorData::internal_error("The request was cancelled.", None)),
        response = call => Ok(response),
    }
}

/// The request itself must declare support for tasks to get a handle.
fn declares_tasks(context: &RequestContext) -> bool {
    context.meta.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}
