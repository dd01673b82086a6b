//! One tool call: from its arguments to its answer.
//!
//! The way is the command line's own: the same validation, the same handlers, the same outcome, the same renderers. Only
//! the last step differs: the text goes to the host, cleaned of secrets, and no longer than hosts take.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delegator_config::Config;
use delegator_engine::ConnectionPool;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value};

use super::advice;
use super::toolbox::Toolbox;
use crate::cli::globals::Format;
use crate::error::{AppError, ErrorCode, Problem};
use crate::interrupt::Attachment;
use crate::outcome::{CommandOutput, SizeUnit, Warning};
use crate::payload;
use crate::presentation::Presentation;
use crate::process::Process;
use crate::requests;
use crate::run::{CallClock, Context, Surface, catch_panics};
use crate::screen::Screen;
use crate::spec::{CommandSpec, PreflightContext};
use crate::stdout::Printer;
use crate::truncate::{SizeLimit, truncate_to_fit};
use crate::views::task as view;

/// How a tool can answer.
const FORMATS: [Format; 2] = [Format::Markdown, Format::Json];
/// Hosts cut or divert texts beyond about 50,000 characters.
const MAX_TEXT: usize = 48_000;
/// What else an answer may take where more output was asked for.
const MAX_TEXT_AROUND_OUTPUT: usize = 16_000;

/// Everything a call needs, shared by all of a server.
#[derive(Debug)]
pub struct ServerState {
    pub process: Process,
    pub config: Config,
    pub state_dir: Option<PathBuf>,
    pub printer: Arc<Printer>,
    pub toolbox: Toolbox,
    pub shelf: ConnectionPool,
}

/// A call that was let in.
#[derive(Debug, Clone)]
pub struct AdmittedCall {
    pub spec: &'static CommandSpec,
    pub input: Value,
    pub format: Format,
    call: CallClock,
    /// Characters the host takes.
    max_text: usize,
}

impl ServerState {
    /// Validates. The refusal is an answer, too, in the format that was asked for.
    pub fn admit(
        &self,
        spec: &'static CommandSpec,
        object: Map<String, Value>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let around = PreflightContext {
            config: &self.config,
            current_dir: &self.process.current_dir,
            state_dir: self.state_dir.as_deref(),
        };
        self.validate(spec, object, Some(&around))
    }

    /// A call that could not even be judged.
    pub fn refuse_unvalidated(&self, spec: &'static CommandSpec, error: AppError) -> RefusedCall {
        let (call, format) = (CallClock::begin(), self.toolbox.default_format());
        let call = AdmittedCall { spec, input: Value::Null, format, call, max_text: MAX_TEXT };
        RefusedCall { call: Box::new(call), error: Box::new(error) }
    }

    fn validate(
        &self,
        spec: &'static CommandSpec,
        mut object: Map<String, Value>,
        around: Option<&PreflightContext<'_>>,
    ) -> Result<AdmittedCall, RefusedCall> {
        let call = CallClock::begin();
        let mut problems: Vec<Problem> = Vec::new();
        let asked = payload::take_format(&mut object, &FORMATS, &mut problems);
        let format = asked.unwrap_or(self.toolbox.default_format());
        // Output that was asked for is escaped on its way, and the agent's last message comes besides.
        let asked_for_more = ["max_output_bytes", "maxOutputBytes"]
            .iter()
            .find_map(|key| object.get(*key).or_else(|| object.get("options")?.get(key))?.as_u64());
        let max_text =
            asked_for_more.and_then(|bytes| usize::try_from(bytes).ok()).map_or(MAX_TEXT, |bytes| {
                MAX_TEXT.max(bytes.saturating_mul(2).saturating_add(MAX_TEXT_AROUND_OUTPUT))
            });
        let admitted = |input: Value| AdmittedCall { spec, input, format, call, max_text };
        let request = requests::validate(spec, object, problems, around).and_then(|request| {
            requests::refuse_command_line_only_inputs(spec, &request.input)?;
            Ok(request)
        });
        match request {
            Ok(request) => Ok(admitted(request.input)),
            Err(error) => Err(RefusedCall { call: Box::new(admitted(Value::Null)), error: Box::new(error) }),
        }
    }

    /// A call of our own making: it says how to answer, and starts nothing that surroundings could have something against.
    pub fn admit_internal(
        &self,
        spec: &'static CommandSpec,
        input: Value,
        format: Format,
    ) -> Result<AdmittedCall, RefusedCall> {
        let object = input.as_object().cloned().unwrap_or_default();
        self.validate(spec, object, None).map(|call| AdmittedCall { format, ..call })
    }

    /// A resource as the host gets it.
    pub fn redact_resource(&self, contents: ResourceContents) -> ResourceContents {
        match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, meta } => {
                let text = self.printer.redact(&text);
                ResourceContents::TextResourceContents { uri, mime_type, text, meta }
            }
            other => other,
        }
    }

    /// An agent's own words, and nothing else, as the host gets them.
    pub fn redact_text(&self, words: &str) -> String {
        self.printer.redact(&view::truncate_chars(words, MAX_TEXT))
    }

    /// Does a piece of work of a call; a panic is an error like any other.
    pub fn with_context<T>(
        &self,
        act: impl FnOnce(&Context<'_>) -> Result<T, AppError>,
    ) -> Result<T, AppError> {
        let presentation = self.presentation(Format::Json);
        let attachment = Attachment::default();
        let screen = Screen { printer: &self.printer, presentation: &presentation, attachment: &attachment };
        let budget = Duration::from_secs(self.config.number("call_budget_sec"));
        let context = Context {
            config: &self.config,
            state_dir: self.state_dir.clone(),
            process: &self.process,
            screen,
            surface: Surface::Server,
            call_budget: Some(budget),
            connections: self.shelf.clone(),
        };
        catch_panics(|| act(&context))
    }

    /// The answer as the host gets it.
    pub fn render(&self, call: &AdmittedCall, answer: Result<CommandOutput, AppError>) -> CallToolResult {
        let mut answer = answer.unwrap_or_else(CommandOutput::from);
        let told = self.config.warnings.iter().map(|warning| Warning::new(warning.code, &warning.message));
        answer.warnings.extend(told);
        advice::rewrite_for_tools(&mut answer, self.toolbox.names());
        let presentation = self.presentation(call.format);
        let room =
            || SizeLimit { max_size: call.max_text, unit: SizeUnit::Characters, printer: &self.printer };
        let (outcome, texts) = truncate_to_fit(call.call.end(call.spec, answer), &presentation, room());
        let text = self.printer.redact(&texts.body);
        let is_error = outcome.tool_error().is_some();
        let structured = match call.format {
            Format::Json => Some(text.clone()),
            // Whoever was told what answers look like expects them to look so in every format.
            _ if self.toolbox.declares_output_schemas() => {
                let (_, texts) = truncate_to_fit(outcome, &self.presentation(Format::Json), room());
                Some(self.printer.redact(&texts.body))
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
    /// Whether its response may be longer than usual.
    pub fn may_be_long(&self) -> bool {
        self.max_text > MAX_TEXT
    }
}

/// A call that was not let in, and why.
#[derive(Debug)]
pub struct RefusedCall {
    pub call: Box<AdmittedCall>,
    pub error: Box<AppError>,
}

impl RefusedCall {
    /// Whether all that is missing is a person's word.
    pub fn lacks_only_confirmation(&self) -> bool {
        let mut problems = self.error.problems.iter();
        self.error.problems.len() == 1
            && problems
                .all(|problem| problem.code == ErrorCode::ConfirmationRequired && problem.field == "confirm")
    }
}
