//! A tool call on its way to its answer: let in, confirmed, run or stayed with, and told of meanwhile.

use std::sync::Arc;
use std::task::Poll;

use delegator_engine::resident::Watched;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};

use super::audience::somebody_listens;
use super::backlog::{long_response, without_place};
use super::call::{Admitted, Refused};
use super::confirmation::{self, Said};
use super::server::{Server, aside, bad};
use super::staying::{Listener, stay, telling};
use crate::commands::local::tasks::engine;
use crate::fault::{AppError, ErrorCode};
use crate::outcome::Answer;
use crate::registry::CommandSpec;
use crate::registry::stay::{Begun, Stay, Staying};
use crate::run::caught;

impl Server {
    /// The answer to a call of whatever tool is meant.
    pub(super) async fn called(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let toolbox = &self.surroundings.toolbox;
        if let Some(tool) = toolbox.find_compat(&request.name) {
            let listener = Listener::told(context, tool.about()).await;
            let given = request.arguments.unwrap_or_default();
            let answer = self.as_codex(tool, given, listener.as_ref(), context);
            return unless_cancelled(context, answer).await;
        }
        let Some(spec) = toolbox.find(&request.name) else {
            let nearest = toolbox.nearest(&request.name);
            let hint = nearest.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
            return Err(bad(format!("Unknown tool: {}.{hint}", request.name)));
        };
        let listener = Listener::told(context, spec.about).await;
        let listener = listener.as_ref();
        let object = request.arguments.clone().unwrap_or_default();
        let call = match self.admit(spec, object.clone()).await {
            Ok(call) => call,
            Err(refused) => match self.confirmed(refused, object, &request, listener, context).await {
                Ok(call) => call,
                Err(response) => return Ok(response),
            },
        };
        unless_cancelled(context, self.whatever_happens(&call, listener, context)).await
    }

    /// Lets a call in or not. Of one that may change something files are looked at first, so that is done on a thread that
    /// may block.
    pub(super) async fn admit(
        &self,
        spec: &'static CommandSpec,
        object: Map<String, Value>,
    ) -> Result<Admitted, Refused> {
        let surroundings = Arc::clone(&self.surroundings);
        let judge = move || caught(|| Ok(surroundings.admit(spec, object)));
        let judged = if spec.is_safe() { judge() } else { aside(judge).await };
        judged.unwrap_or_else(|error| Err(self.surroundings.broken(spec, error)))
    }

    /// The answer; a panic on the way to it is one, too.
    async fn whatever_happens(
        &self,
        call: &Admitted,
        listener: Option<&Listener>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        match surviving(self.answer(call, listener, context)).await {
            Ok(response) => response,
            Err(error) => self.surroundings.render(call, Err(error)).into(),
        }
    }

    /// What a command is called here.
    #[cfg(feature = "conformance-fixtures")]
    pub fn name_of(&self, spec: &CommandSpec) -> String {
        spec.tool_name(self.surroundings.toolbox.prefix())
    }

    /// A call whose handler breaks down: for the proof that the server does not.
    #[cfg(feature = "conformance-fixtures")]
    pub async fn breaking_down(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        static BREAKS: CommandSpec = CommandSpec {
            run: Some(|_, _| std::panic::panic_any("the handler broke down")),
            ..crate::commands::local::status::SPEC
        };
        let call = self.surroundings.admit(&BREAKS, Map::new());
        let call = call.map_err(|refused| bad(refused.error.message.clone()))?;
        Ok(self.whatever_happens(&call, None, context).await)
    }

    async fn answer(
        &self,
        call: &Admitted,
        listener: Option<&Listener>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let input = call.input.clone();
        let mut long = if call.may_be_long() { long_response(context).await } else { None };
        let answered = match call.spec.stay {
            Some(stay) => {
                let begun = self.work(move |context| (stay.begin)(context, &input));
                match telling(listener, call.spec.about, begun).await {
                    Ok(Begun::Over(answer)) => Ok(*answer),
                    Ok(Begun::Staying(staying)) if declares_tasks(context) => {
                        return self.handle_of(call, &staying).await;
                    }
                    Ok(Begun::Staying(staying)) => {
                        drop(long.take());
                        let watched = self.watched(&staying, listener, context).await;
                        long = if call.may_be_long() { long_response(context).await } else { None };
                        self.stayed(call, stay, &staying, watched).await
                    }
                    Err(error) => Err(error),
                }
            }
            None => self.done(call, listener).await,
        };
        let response = self.surroundings.render(call, answered).into();
        drop(long);
        response
    }

    /// What a command does that does not stay.
    pub(super) async fn done(
        &self,
        call: &Admitted,
        listener: Option<&Listener>,
    ) -> Result<Answer, AppError> {
        let Some(run) = call.spec.run else {
            return Err(AppError::new(ErrorCode::Internal, "A command without a handler was accepted."));
        };
        let input = call.input.clone();
        telling(listener, call.spec.about, self.work(move |context| run(context, input))).await
    }

    async fn stayed(
        &self,
        call: &Admitted,
        how: Stay,
        staying: &Staying,
        watched: Result<Watched, AppError>,
    ) -> Result<Answer, AppError> {
        let watched = watched?;
        let input = call.input.clone();
        let mut answer = self.work(move |context| (how.end)(context, &input, watched)).await?;
        answer.facts.extend(staying.facts.clone());
        Ok(answer)
    }

    /// Until what is awaited has happened, and somebody listens to hear it.
    pub(super) async fn watched(
        &self,
        staying: &Staying,
        listener: Option<&Listener>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Watched, AppError> {
        let engine = self.work(engine).await?;
        without_place(context, async {
            let watched = stay(&self.resident, engine, staying, listener).await?;
            somebody_listens(context).await;
            Ok(watched)
        })
        .await
    }

    /// The user's word, where it is missing and the host can ask for it.
    async fn confirmed(
        &self,
        refused: Refused,
        mut object: Map<String, Value>,
        request: &CallToolRequestParams,
        listener: Option<&Listener>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Admitted, CallToolResponse> {
        let (spec, current_dir) = (refused.call.spec, &self.surroundings.process.current_dir);
        let refuse = |refused: Refused| -> CallToolResponse {
            self.surroundings.render(&refused.call, Err(*refused.error)).into()
        };
        if !refused.wants_confirmation() || !confirmation::can_ask(context) {
            return Err(refuse(refused));
        }
        let said = if confirmation::asks_by_answer(context) {
            match confirmation::answered(request.input_responses.as_ref()) {
                Some(said) => Some(said),
                None => {
                    return Err(match confirmation::question(&object, current_dir) {
                        Some(question) => question.into(),
                        None => refuse(refused),
                    });
                }
            }
        } else {
            let asking =
                telling(listener, "Waiting for the user", confirmation::ask(context, &object, current_dir));
            without_place(context, asking).await
        };
        match said {
            Some(Said::Yes) => confirmation::confirm(&mut object),
            Some(said) => {
                return Err(refuse(Refused { error: confirmation::refusal(said).into(), ..refused }));
            }
            None => return Err(refuse(refused)),
        }
        self.admit(spec, object).await.map_err(refuse)
    }
}

/// A panic on the way is an error like any other.
pub(super) async fn surviving<T>(work: impl Future<Output = T>) -> Result<T, AppError> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|waker| match caught(|| Ok(work.as_mut().poll(waker))) {
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
