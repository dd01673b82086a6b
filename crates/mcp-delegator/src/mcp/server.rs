//! The server as the protocol sees it: every request of MCP, answered from the rooms beside this one.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::Poll;

use delegator_engine::resident::{Resident, Watched};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CompletionInfo, CustomRequest, CustomResult, ErrorCode as RpcCode, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use super::call::{Admitted, Refused, Surroundings};
use super::confirmation::{self, Said};
use super::malformed::malformed;
use super::staying::{Listener, stay, telling};
use super::{instructions, prompts, resources};
use crate::commands::local::tasks::engine;
use crate::fault::{AppError, ErrorCode};
use crate::outcome::Answer;
use crate::registry::stay::{Begun, Stay, Staying};
use crate::run::{Context, caught};
use crate::views::PRODUCT_VERSION;

/// One server; clones share everything.
#[derive(Debug, Clone)]
pub struct Server {
    pub(super) surroundings: Arc<Surroundings>,
    resident: Arc<Resident>,
}

impl Server {
    pub fn new(surroundings: Surroundings, resident: Resident) -> Server {
        Server { surroundings: Arc::new(surroundings), resident: Arc::new(resident) }
    }

    /// Does something short on a thread that may block.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Context<'_>) -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        let surroundings = Arc::clone(&self.surroundings);
        aside(move || surroundings.work(act)).await
    }

    /// Lets a call in or not. Of one that may change something files are looked at first, so that is done on a thread that
    /// may block.
    pub(super) async fn admit(
        &self,
        spec: &'static crate::registry::CommandSpec,
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
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        match surviving(self.answer(call, context)).await {
            Ok(response) => response,
            Err(error) => self.surroundings.render(call, Err(error)).into(),
        }
    }

    /// What a command is called here.
    #[cfg(feature = "conformance-fixtures")]
    pub fn name_of(&self, spec: &crate::registry::CommandSpec) -> String {
        spec.tool_name(self.surroundings.toolbox.prefix())
    }

    /// A call whose handler breaks down: for the proof that the server does not.
    #[cfg(feature = "conformance-fixtures")]
    pub async fn breaking_down(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        static BREAKS: crate::registry::CommandSpec = crate::registry::CommandSpec {
            run: Some(|_, _| std::panic::panic_any("the handler broke down")),
            ..crate::commands::local::status::SPEC
        };
        let call = self.surroundings.admit(&BREAKS, Map::new());
        let call = call.map_err(|refused| bad(refused.error.message.clone()))?;
        Ok(self.whatever_happens(&call, context).await)
    }

    async fn answer(&self, call: &Admitted, context: &RequestContext<RoleServer>) -> CallToolResponse {
        let listener = Listener::of(context);
        if let Some(listener) = &listener {
            listener.tell(call.spec.about).await;
        }
        let input = call.input.clone();
        let answered = match call.spec.stay {
            Some(stay) => {
                let begun = self.work(move |context| (stay.begin)(context, &input));
                match telling(listener.as_ref(), call.spec.about, begun).await {
                    Ok(Begun::Over(answer)) => Ok(*answer),
                    Ok(Begun::Staying(staying)) if declares_tasks(context) => {
                        return self.handle_of(call, &staying).await;
                    }
                    Ok(Begun::Staying(staying)) => self.stayed(call, stay, &staying, listener.as_ref()).await,
                    Err(error) => Err(error),
                }
            }
            None => self.done(call, listener.as_ref()).await,
        };
        self.surroundings.render(call, answered).into()
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
        listener: Option<&Listener>,
    ) -> Result<Answer, AppError> {
        let watched = self.watched(staying, listener).await?;
        let input = call.input.clone();
        let mut answer = self.work(move |context| (how.end)(context, &input, watched)).await?;
        answer.facts.extend(staying.facts.clone());
        Ok(answer)
    }

    /// Until what is awaited has happened.
    pub(super) async fn watched(
        &self,
        staying: &Staying,
        listener: Option<&Listener>,
    ) -> Result<Watched, AppError> {
        let engine = self.work(engine).await?;
        stay(&self.resident, engine, staying, listener).await
    }

    /// The user's word, where it is missing and the host can ask for it.
    async fn confirmed(
        &self,
        refused: Refused,
        mut object: Map<String, Value>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Admitted, CallToolResponse> {
        let spec = refused.call.spec;
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
                    return Err(match confirmation::question(&object) {
                        Some(question) => question.into(),
                        None => refuse(refused),
                    });
                }
            }
        } else {
            confirmation::ask(context, &object).await
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

/// On a thread that may block.
async fn aside<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, AppError> + Send + 'static,
) -> Result<T, AppError> {
    let ended = |_| Err(AppError::new(ErrorCode::Internal, "The work of this call was ended."));
    tokio::task::spawn_blocking(act).await.unwrap_or_else(ended)
}

/// A cancelled request ends the call; what the call has begun goes on.
async fn unless_cancelled(
    context: &RequestContext<RoleServer>,
    answer: impl Future<Output = CallToolResponse>,
) -> Result<CallToolResponse, ErrorData> {
    tokio::select! {
        response = answer => Ok(response),
        () = context.ct.cancelled() => Err(ErrorData::internal_error("The request was cancelled.", None)),
    }
}

/// Only a request that says so itself can be given a handle.
fn declares_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.meta.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// A failure that has no tool to be the answer of.
pub(super) fn rpc(error: &AppError) -> ErrorData {
    let code = match error.code {
        ErrorCode::NotFound | ErrorCode::TaskNotFound => RpcCode::RESOURCE_NOT_FOUND,
        ErrorCode::InvalidId | ErrorCode::InvalidValue => RpcCode::INVALID_PARAMS,
        _ => RpcCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.message.clone(), None)
}

pub(super) fn bad(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .enable_tasks()
            .build();
        let name = Implementation::new(crate::registry::PROGRAM, PRODUCT_VERSION);
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(instructions::instructions(&self.surroundings.toolbox))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
            ProtocolVersion::V_2026_07_28,
        ])
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.surroundings.toolbox.list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let toolbox = &self.surroundings.toolbox;
        if let Some(tool) = toolbox.find_compat(&request.name) {
            let given = request.arguments.unwrap_or_default();
            return unless_cancelled(&context, self.as_codex(tool, given, &context)).await;
        }
        let Some(spec) = toolbox.find(&request.name) else {
            let nearest = toolbox.nearest(&request.name);
            let hint = nearest.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
            return Err(bad(format!("Unknown tool: {}.{hint}", request.name)));
        };
        let object = request.arguments.clone().unwrap_or_default();
        let call = match self.admit(spec, object.clone()).await {
            Ok(call) => call,
            Err(refused) => match self.confirmed(refused, object, &request, &context).await {
                Ok(call) => call,
                Err(response) => return Ok(response),
            },
        };
        unless_cancelled(&context, self.whatever_happens(&call, &context)).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let found = self.work(resources::list).await.map_err(|error| rpc(&error))?;
        Ok(ListResourcesResult::with_all_items(found))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let read = self.work(move |context| resources::read(context, &request.uri)).await;
        let contents = read.map_err(|error| ErrorData { data: Some(json!({"uri": uri})), ..rpc(&error) })?;
        Ok(ReadResourceResult::new(vec![self.surroundings.cleaned(contents)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.surroundings.toolbox)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        match prompts::get(&request.name, &given, &self.surroundings.toolbox) {
            Some(Ok(prompt)) => Ok(prompt.into()),
            Some(Err(problem)) => Err(bad(format!("The prompt {} {problem}.", request.name))),
            None => Err(bad(format!("Unknown prompt: {}.", request.name))),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let is_id = match &request.r#ref {
            Reference::Resource(template) => template.uri.starts_with("codex://task/{id}"),
            Reference::Prompt(prompt) => prompt.name == "review_results",
            _ => false,
        };
        let is_mode = matches!(&request.r#ref, Reference::Prompt(prompt) if prompt.name == "delegate");
        let begun = request.argument.value.clone();
        let values = match request.argument.name.as_str() {
            "id" | "task_id" if is_id => self
                .work(move |context| resources::ids(context, &begun))
                .await
                .map_err(|error| rpc(&error))?,
            "mode" if is_mode => {
                let modes = prompts::MODES.into_iter();
                modes.filter(|mode| mode.starts_with(&begun)).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let completion = CompletionInfo::with_all_values(values).map_err(bad)?;
        Ok(CompleteResult::new(completion))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.handle(&request.task_id).await.map(GetTaskResult::new)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.cancel_handle(&request.task_id).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = || {
            ErrorData::new(RpcCode::METHOD_NOT_FOUND, format!("There is no method {}.", request.method), None)
        };
        Err(malformed(&request.method, request.params.as_ref()).unwrap_or_else(unknown))
    }
}
