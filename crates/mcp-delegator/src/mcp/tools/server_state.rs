//! The state that all calls of a server share, and the two ends of a call: validation and rendering.
//!
//! A tool call uses the same validation, handlers, outcome and renderers as the command line. Only the last
//! step differs: the text goes to the client, redacted and truncated to the size clients accept.

use std::path::PathBuf;
use std::sync::Arc;

use delegator_config::{Config, ConfigError};
use delegator_engine::ConnectionPool;
use delegator_fleet::DatabasePool;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value};

use crate::commands::context::Context;
use crate::commands::{CommandList, PreparedCall};
use crate::error::{AppError, ErrorCode, Problem, catch_panics};
use crate::input::validation::ValidInput;
use crate::input::{stdin, validation};
use crate::mcp::tools::toolbox::Toolbox;
use crate::output::awaited_task::Attachment;
use crate::output::outcome::{CallClock, CommandOutput, Outcome};
use crate::output::presentation::Presentation;
use crate::output::printer::Printer;
use crate::output::screen::Screen;
use crate::output::truncation::{SizeLimit, SizeUnit, truncate_to_fit};
use crate::output::values::truncate_chars;
use crate::spec::formats::Format;
use crate::spec::process::Process;
use crate::spec::{CallOrigin, CommandSpec, ConfigUse, PreflightContext, Surface};

/// Clients truncate or divert texts beyond about 50,000 characters.
const MAX_TEXT: usize = 48_000;
/// Characters for everything but the output, when the caller sets `max_output_bytes`.
const MAX_TEXT_AROUND_OUTPUT: usize = 16_000;
/// A page of a browser can show this; longer diffs are read by path.
const MAX_API_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub struct ServerState {
    pub commands: CommandList,
    pub process: Process,
    pub config: Config,
    /// The problems of the configuration: tools that need no valid one are served anyway.
    pub config_error: Option<ConfigError>,
    pub state_dir: Option<PathBuf>,
    pub printer: Arc<Printer>,
    pub toolbox: Toolbox,
    pub connections: ConnectionPool,
    pub fleet: DatabasePool,
}

/// What the response to a call depends on.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall {
    pub spec: &'static CommandSpec,
    pub format: Format,
    clock: CallClock,
    max_text: usize,
}

impl ToolCall {
    pub fn new(spec: &'static CommandSpec, format: Format) -> ToolCall {
        ToolCall { spec, format, clock: CallClock::begin(), max_text: MAX_TEXT }
    }

    /// Makes the response long enough for the output that the caller requested.
    pub fn with_output(self, max_output_bytes: Option<u64>) -> ToolCall {
        let bytes = max_output_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        // JSON escapes may double the requested output, and the agent's final message is added to it.
        let max_text = bytes.map(|bytes| bytes.saturating_mul(2).saturating_add(MAX_TEXT_AROUND_OUTPUT));
        ToolCall { max_text: max_text.unwrap_or_default().max(MAX_TEXT), ..self }
    }

    pub fn may_be_long(&self) -> bool {
        self.max_text > MAX_TEXT
    }
}

#[derive(Debug)]
pub struct AdmittedCall {
    pub call: ToolCall,
    pub prepared: Box<dyn PreparedCall>,
}

impl ServerState {
    /// Validates a call. A refusal also carries the requested format, so that it can be rendered.
    pub fn admit(
        &self,
        spec: &'static CommandSpec,
        object: Map<String, Value>,
    ) -> Result<AdmittedCall, RefusedCall> {
        self.admit_with(spec, |input| (self.commands.find(spec)?.prepare)(input), object)
    }

    /// Validates a call of a command that need not be one of the command line.
    pub fn admit_with(
        &self,
        spec: &'static CommandSpec,
        prepare: impl FnOnce(ValidInput) -> Result<Box<dyn PreparedCall>, AppError>,
        mut object: Map<String, Value>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let preflight = PreflightContext::new(&self.config, &self.process, self.state_dir.as_deref());
        let mut problems: Vec<Problem> = Vec::new();
        let requested = stdin::take_format(&mut object, Surface::Server.formats(), &mut problems);
        let call = ToolCall::new(spec, requested.unwrap_or(self.toolbox.settings.default_format));
        let admitted = || {
            let origin = CallOrigin { surface: Surface::Server, current_dir: &self.process.current_dir };
            let preflight = self.config_error.is_none().then_some(&preflight);
            let input = validation::validate(spec, object, problems, origin, preflight)?;
            self.require_valid_config(spec)?;
            validation::refuse_command_line_only_inputs(spec, &input)?;
            let call = call.with_output(input.get("max_output_bytes").and_then(Value::as_u64));
            Ok(AdmittedCall { call, prepared: prepare(input)? })
        };
        admitted().map_err(|error: AppError| RefusedCall { call, error: Box::new(error) })
    }

    fn require_valid_config(&self, spec: &CommandSpec) -> Result<(), AppError> {
        match &self.config_error {
            Some(error) if spec.config == ConfigUse::Required => Err(AppError::from(error.clone())
                .detail("Ask the user to correct the configuration and to restart the MCP server.")),
            _ => Ok(()),
        }
    }

    /// States the mode of a call that names none.
    pub fn state_default_mode(&self, spec: &'static CommandSpec, object: &mut Map<String, Value>) {
        let around = PreflightContext::new(&self.config, &self.process, self.state_dir.as_deref());
        validation::state_default_mode(spec, object, &around);
    }

    pub fn redact_resource(&self, mut contents: ResourceContents) -> ResourceContents {
        if let ResourceContents::TextResourceContents { text, .. } = &mut contents {
            *text = self.printer.redact(text);
        }
        contents
    }

    /// The agent's own text, truncated and redacted.
    pub fn redact_text(&self, text: &str) -> String {
        self.printer.redact(&truncate_chars(text, MAX_TEXT))
    }

    /// Runs `act` with the context of a call; a panic becomes an error.
    pub fn with_context<T>(
        &self,
        act: impl FnOnce(&Context<'_>) -> Result<T, AppError>,
    ) -> Result<T, AppError> {
        let presentation = self.presentation(Format::Json);
        let attachment = Attachment::default();
        let screen = Screen { printer: &self.printer, presentation: &presentation, attachment: &attachment };
        let context = Context {
            commands: self.commands,
            config: &self.config,
            config_error: self.config_error.as_ref(),
            state_dir: self.state_dir.clone(),
            process: &self.process,
            screen,
            surface: Surface::Server,
            call_budget: Some(self.config.settings.call_budget),
            connections: self.connections.clone(),
            fleet: self.fleet.clone(),
        };
        catch_panics(|| act(&context))
    }

    /// The response of a call, truncated and redacted.
    pub fn render(&self, call: &ToolCall, output: Result<CommandOutput, AppError>) -> CallToolResult {
        let presentation = self.presentation(call.format);
        let output = self.complete(call, output, &presentation);
        let limit =
            || SizeLimit { max_size: call.max_text, unit: SizeUnit::Characters, printer: &self.printer };
        let (outcome, rendered) = truncate_to_fit(call.clock.end(call.spec, output), &presentation, limit());
        let text = self.printer.redact(&rendered.body);
        let is_error = outcome.tool_error().is_some();
        let structured = match call.format {
            Format::Json => Some(text.clone()),
            // MCP requires structured content from a tool that declares an output schema, in every format.
            _ if self.toolbox.output_schemas => {
                let (_, rendered) = truncate_to_fit(outcome, &self.presentation(Format::Json), limit());
                Some(self.printer.redact(&rendered.body))
            }
            _ => None,
        };
        let to_result = if is_error { CallToolResult::error } else { CallToolResult::success };
        let mut result = to_result(vec![ContentBlock::text(text)]);
        result.structured_content = structured.and_then(|text| serde_json::from_str(&text).ok());
        result
    }

    /// Adds what the configuration has to say, and names the inputs of an error as the caller knows them.
    fn complete(
        &self,
        call: &ToolCall,
        output: Result<CommandOutput, AppError>,
        presentation: &Presentation,
    ) -> CommandOutput {
        let mut output = output.unwrap_or_else(CommandOutput::from).warn(&self.config.warnings);
        if call.spec.config == ConfigUse::ValidPart {
            output = output.warn(self.config_error.iter().flat_map(ConfigError::ignored_values));
        }
        if let Some(error) = output.completion.error_mut() {
            presentation.call_syntax().name_inputs_of(error);
        }
        output
    }

    /// The outcome of a call of the HTTP API and its envelope, redacted.
    pub fn envelope(&self, call: &ToolCall, output: Result<CommandOutput, AppError>) -> (Outcome, String) {
        let presentation = Presentation::for_api();
        let output = self.complete(call, output, &presentation);
        let limit = SizeLimit { max_size: MAX_API_BYTES, unit: SizeUnit::Bytes, printer: &self.printer };
        let (outcome, rendered) = truncate_to_fit(call.clock.end(call.spec, output), &presentation, limit);
        (outcome, self.printer.redact(&rendered.body))
    }

    fn presentation(&self, format: Format) -> Presentation {
        Presentation::for_tool(format, &self.toolbox.names)
    }
}

/// A call that failed validation, and why.
#[derive(Debug)]
pub struct RefusedCall {
    pub call: ToolCall,
    pub error: Box<AppError>,
}

impl RefusedCall {
    /// Whether the user's confirmation is all that is missing.
    pub fn lacks_only_confirmation(&self) -> bool {
        matches!(self.error.problems.as_slice(), [problem]
            if problem.code == ErrorCode::ConfirmationRequired && problem.field == "confirm")
    }
}
