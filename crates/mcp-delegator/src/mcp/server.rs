//! The MCP request handlers. Each delegates to a sibling module and does nothing itself.

use std::borrow::Cow;
use std::sync::Arc;

use delegator_engine::wait_thread::WaitThread;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CompletionInfo, CustomRequest, CustomResult, ErrorCode as RpcCode, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::commands::context::Context;
use crate::error::{AppError, ErrorCode};
use crate::mcp::RequestContext;
use crate::mcp::tools::server_state::ServerState;
use crate::mcp::{instructions, prompts, resources};
use crate::spec::version::PRODUCT_VERSION;

type PageParams = Option<PaginatedRequestParams>;
type RpcResult<T> = Result<T, ErrorData>;

#[derive(Debug, Clone)]
pub struct Server {
    pub(in crate::mcp) state: Arc<ServerState>,
    pub(in crate::mcp) wait_thread: Arc<WaitThread>,
}

impl Server {
    pub fn new(state: ServerState, wait_thread: WaitThread) -> Server {
        Server { state: Arc::new(state), wait_thread: Arc::new(wait_thread) }
    }

    /// Runs something short on a blocking thread, with the context of a call.
    pub(in crate::mcp) async fn with_context<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Context<'_>) -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        let state = Arc::clone(&self.state);
        run_blocking(move || state.with_context(act)).await
    }
}

pub(in crate::mcp) async fn run_blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, AppError> + Send + 'static,
) -> Result<T, AppError> {
    let lost = |_| Err(AppError::new(ErrorCode::Internal, "The thread of this call ended without a result."));
    tokio::task::spawn_blocking(act).await.unwrap_or_else(lost)
}

/// Every list has one page, so no cursor is valid.
fn refuse_cursor(page: PageParams) -> RpcResult<()> {
    if page.is_some_and(|page| page.cursor.is_some()) {
        return Err(invalid_params("Unknown cursor: the list has only one page.".to_owned()));
    }
    Ok(())
}

/// The protocol error for requests that are not tool calls.
pub(in crate::mcp) fn to_rpc_error(error: AppError) -> ErrorData {
    let code = match error.code {
        ErrorCode::NotFound | ErrorCode::TaskNotFound => RpcCode::RESOURCE_NOT_FOUND,
        ErrorCode::InvalidId | ErrorCode::InvalidValue => RpcCode::INVALID_PARAMS,
        _ => RpcCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.message, None)
}

pub(in crate::mcp) fn invalid_params(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

/// The error for a known method with invalid parameters. rmcp treats such a request as one with an unknown
/// method and would respond "method not found". `None`: the method is unknown, or its parameters are valid.
fn params_error(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let why = match method {
        "initialize" => parse_error::<InitializeRequestParams>(params),
        "tools/call" => parse_error::<CallToolRequestParams>(params),
        "prompts/get" => parse_error::<GetPromptRequestParams>(params),
        "resources/read" => parse_error::<ReadResourceRequestParams>(params),
        "completion/complete" => parse_error::<CompleteRequestParams>(params),
        "tasks/get" => parse_error::<GetTaskParams>(params),
        "tasks/cancel" => parse_error::<CancelTaskParams>(params),
        _ => None,
    }?;
    Some(ErrorData::invalid_params(format!("The parameters of {method} are invalid: {why}."), None))
}

fn parse_error<T: DeserializeOwned>(params: Option<&Value>) -> Option<String> {
    let empty = || Value::Object(Map::new());
    serde_json::from_value::<T>(params.cloned().unwrap_or_else(empty)).err().map(|error| error.to_string())
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
        let name = Implementation::new(crate::spec::version::PROGRAM, PRODUCT_VERSION);
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(instructions::instructions(&self.state.toolbox))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
            ProtocolVersion::V_2026_07_28,
        ])
    }

    async fn list_tools(&self, page: PageParams, _: RequestContext) -> RpcResult<ListToolsResult> {
        refuse_cursor(page)?;
        Ok(ListToolsResult::with_all_items(self.state.toolbox.list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext,
    ) -> RpcResult<CallToolResponse> {
        self.handle_call(request, &context).await
    }

    async fn list_resources(&self, page: PageParams, _: RequestContext) -> RpcResult<ListResourcesResult> {
        refuse_cursor(page)?;
        let found = self.with_context(|context| Ok(resources::list(context))).await.map_err(to_rpc_error)?;
        Ok(ListResourcesResult::with_all_items(found))
    }

    async fn list_resource_templates(
        &self,
        page: PageParams,
        _: RequestContext,
    ) -> RpcResult<ListResourceTemplatesResult> {
        refuse_cursor(page)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext,
    ) -> RpcResult<ReadResourceResponse> {
        let uri = request.uri.clone();
        let read = self.with_context(move |context| resources::read(context, &request.uri)).await;
        let contents =
            read.map_err(|error| ErrorData { data: Some(json!({"uri": uri})), ..to_rpc_error(error) })?;
        Ok(ReadResourceResult::new(vec![self.state.redact_resource(contents)]).into())
    }

    async fn list_prompts(&self, page: PageParams, _: RequestContext) -> RpcResult<ListPromptsResult> {
        refuse_cursor(page)?;
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.state.toolbox)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext,
    ) -> RpcResult<GetPromptResponse> {
        let given = request.arguments.unwrap_or_default();
        match prompts::get(&request.name, &given, &self.state.toolbox) {
            Some(Ok(prompt)) => Ok(prompt.into()),
            Some(Err(problem)) => Err(invalid_params(format!("The prompt {} {problem}.", request.name))),
            None => Err(invalid_params(format!("Unknown prompt: {}.", request.name))),
        }
    }

    async fn complete(&self, request: CompleteRequestParams, _: RequestContext) -> RpcResult<CompleteResult> {
        let is_id = match &request.r#ref {
            Reference::Resource(template) => template.uri.starts_with("codex://task/{id}"),
            Reference::Prompt(prompt) => prompt.name == "review_results",
            _ => false,
        };
        let is_mode = matches!(&request.r#ref, Reference::Prompt(prompt) if prompt.name == "delegate");
        let prefix = request.argument.value.clone();
        let values = match request.argument.name.as_str() {
            "id" | "task_id" if is_id => self
                .with_context(move |context| resources::complete_task_ids(context, &prefix))
                .await
                .map_err(to_rpc_error)?,
            "mode" if is_mode => {
                let modes = prompts::MODES.into_iter();
                modes.filter(|mode| mode.starts_with(&prefix)).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let completion = CompletionInfo::with_all_values(values).map_err(invalid_params)?;
        Ok(CompleteResult::new(completion))
    }

    async fn get_task(&self, request: GetTaskParams, _: RequestContext) -> RpcResult<GetTaskResult> {
        self.get_handle(&request.task_id).await.map(GetTaskResult::new)
    }

    /// No handle ever requests input, so there is nothing to update; only the handle itself is checked.
    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext) -> RpcResult<()> {
        self.get_handle(&request.task_id).await.map(drop)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext) -> RpcResult<()> {
        self.cancel_handle(&request.task_id).await
    }

    async fn on_custom_request(&self, request: CustomRequest, _: RequestContext) -> RpcResult<CustomResult> {
        let unknown = || {
            ErrorData::new(RpcCode::METHOD_NOT_FOUND, format!("Unknown method: {}.", request.method), None)
        };
        Err(params_error(&request.method, request.params.as_ref()).unwrap_or_else(unknown))
    }
}
