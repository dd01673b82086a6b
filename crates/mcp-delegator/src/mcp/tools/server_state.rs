//! The state that all calls of a server share, and the two ends of a call: validation and rendering.
//!
//! A tool call uses the same validation, handlers, outcome and renderers as the command line. Only the last step differs:
//! the text goes to the client, redacted and truncated to the size clients accept.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delegator_config::Config;
use delegator_engine::ConnectionPool;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value};

use crate::commands::CommandList;
use crate::commands::context::{Context, Surface};
use crate::error::panic::catch_panics;
use crate::error::{AppError, ErrorCode, Problem};
use crate::input::{stdin, validation};
use crate::mcp::tools::toolbox::Toolbox;
use crate::output::attachment::Attachment;
use crate::output::data::task as task_data;
use crate::output::outcome::{CallClock, CommandOutput, SizeUnit, Warning};
use crate::output::presentation::Presentation;
use crate::output::printer::Printer;
use crate::output::screen::Screen;
use crate::output::truncation::{SizeLimit, truncate_to_fit};
use crate::spec::formats::Format;
use crate::spec::process::Process;
use crate::spec::{CommandSpec, PreflightContext};

/// Formats a tool can respond in.
const FORMATS: [Format; 2] = [Format::Markdown, Format::Json];
/// Clients truncate or divert texts beyond about 50,000 characters.
const MAX_TEXT: usize = 48_000;
/// Characters for everything but the output, when the caller sets `max_output_bytes`.
const MAX_TEXT_AROUND_OUTPUT: usize = 16_000;

#[derive(Debug)]
pub struct ServerState {
    pub commands: CommandList,
    pub process: Process,
    pub config: Config,
    pub state_dir: Option<PathBuf>,
    pub printer: Arc<Printer>,
    pub toolbox: Toolbox,
    pub connections: ConnectionPool,
}

/// A validated call.
#[derive(Debug, Clone)]
pub struct AdmittedCall {
    pub spec: &'static CommandSpec,
    pub input: Value,
    pub format: Format,
    call: CallClock,
    /// Maximum characters of its response.
    max_text: usize,
}

impl ServerState {
    /// Validates a call. A refusal also carries the requested format, so that it can be rendered.
    pub fn admit(
        &self,
        spec: &'static CommandSpec,
        object: Map<String, Value>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let preflight = PreflightContext {
            config: &self.config,
            current_dir: &self.process.current_dir,
            state_dir: self.state_dir.as_deref(),
        };
        self.validate(spec, object, Some(&preflight))
    }

    /// The refusal of a call whose validation failed with an internal error.
    pub fn refuse_unvalidated(&self, spec: &'static CommandSpec, error: AppError) -> RefusedCall {
        let (call, format) = (CallClock::begin(), self.toolbox.default_format());
        let call = AdmittedCall { spec, input: Value::Null, format, call, max_text: MAX_TEXT };
        RefusedCall { call: Box::new(call), error: Box::new(error) }
    }

    fn validate(
        &self,
        spec: &'static CommandSpec,
        mut object: Map<String, Value>,
        preflight: Option<&PreflightContext<'_>>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let call = CallClock::begin();
        let mut problems: Vec<Problem> = Vec::new();
        let requested = stdin::take_format(&mut object, &FORMATS, &mut problems);
        let format = requested.unwrap_or(self.toolbox.default_format());
        // JSON escapes may double the requested output, and the agent's final message is added to it.
        let requested_bytes = ["max_output_bytes", "maxOutputBytes"]
            .iter()
            .find_map(|key| object.get(*key).or_else(|| object.get("options")?.get(key))?.as_u64());
        let max_text =
            requested_bytes.and_then(|bytes| usize::try_from(bytes).ok()).map_or(MAX_TEXT, |bytes| {
                MAX_TEXT.max(bytes.saturating_mul(2).saturating_add(MAX_TEXT_AROUND_OUTPUT))
            });
        let admitted = |input: Value| AdmittedCall { spec, input, format, call, max_text };
        let request = validation::validate(spec, object, problems, preflight).and_then(|request| {
            validation::refuse_command_line_only_inputs(spec, &request.input)?;
            Ok(request)
        });
        match request {
            Ok(request) => Ok(admitted(request.input)),
            Err(error) => Err(RefusedCall { call: Box::new(admitted(Value::Null)), error: Box::new(error) }),
        }
    }

    /// A call that the server itself makes to render a handle. It starts nothing, so it needs no preflight check.
    pub fn admit_internal(
        &self,
        spec: &'static CommandSpec,
        input: Value,
        format: Format,
    ) -> Result<AdmittedCall, RefusedCall> {
        let object = input.as_object().cloned().unwrap_or_default();
        self.validate(spec, object, None).map(|call| AdmittedCall { format, ..call })
    }

    pub fn redact_resource(&self, contents: ResourceContents) -> ResourceContents {
        match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, meta } => {
                let text = self.printer.redact(&text);
                ResourceContents::TextResourceContents { uri, mime_type, text, meta }
            }
            other => other,
        }
    }

    /// The agent's own text, truncated and redacted.
    pub fn redact_text(&self, text: &str) -> String {
        self.printer.redact(&task_data::truncate_chars(text, MAX_TEXT))
    }

    /// Runs `act` with the context of a call; a panic becomes an error.
    pub fn with_context<T>(
        &self,
        act: impl FnOnce(&Context<'_>) -> Result<T, AppError>,
    ) -> Result<T, AppError> {
        let presentation = self.presentation(Format::Json);
        let attachment = Attachment::default();
        let screen = Screen { printer: &self.printer, presentation: &presentation, attachment: &attachment };
        let budget = Duration::from_secs(self.config.number("call_budget_sec"));
        let context = Context {
            commands: self.commands,
            config: &self.config,
            state_dir: self.state_dir.clone(),
            process: &self.process,
            screen,
            surface: Surface::Server,
            call_budget: Some(budget),
            connections: self.connections.clone(),
        };
        catch_panics(|| act(&context))
    }

    /// The response of a call, truncated and redacted.
    pub fn render(&self, call: &AdmittedCall, output: Result<CommandOutput, AppError>) -> CallToolResult {
        let mut output = output.unwrap_or_else(CommandOutput::from);
        let warnings = self.config.warnings.iter();
        output.warnings.extend(warnings.map(|warning| Warning::new(warning.code, &warning.message)));
        let presentation = self.presentation(call.format);
        let limit =
            || SizeLimit { max_size: call.max_text, unit: SizeUnit::Characters, printer: &self.printer };
        let (outcome, rendered) = truncate_to_fit(
            call.call.end(call.spec, self.commands.describe(call.spec, output)),
            &presentation,
            limit(),
        );
        let text = self.printer.redact(&rendered.body);
        let is_error = outcome.tool_error().is_some();
        let structured = match call.format {
            Format::Json => Some(text.clone()),
            // MCP requires structured content from a tool that declares an output schema, in every format.
            _ if self.toolbox.declares_output_schemas() => {
                let (_, rendered) = truncate_to_fit(outcome, &self.presentation(Format::Json), limit());
                Some(self.printer.redact(&rendered.body))
            }
            _ => None,
        };
        let content = vec![ContentBlock::text(text)];
        let mut result =
            if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = structured.and_then(|text| serde_json::from_str(&text).ok());
        result
    }

    fn presentation(&self, format: Format) -> Presentation {
        Presentation::for_tool(format, self.toolbox.names())
    }
}

impl AdmittedCall {
    /// Whether its response may exceed `MAX_TEXT`.
    pub fn may_be_long(&self) -> bool {
        self.max_text > MAX_TEXT
    }
}

/// A call that failed validation, and why.
#[derive(Debug)]
pub struct RefusedCall {
    pub call: Box<AdmittedCall>,
    pub error: Box<AppError>,
}

impl RefusedCall {
    /// Whether the user's confirmation is all that is missing.
    pub fn lacks_only_confirmation(&self) -> bool {
        let mut problems = self.error.problems.iter();
        self.error.problems.len() == 1
            && problems
                .all(|problem| problem.code == ErrorCode::ConfirmationRequired && problem.field == "confirm")
    }
}
