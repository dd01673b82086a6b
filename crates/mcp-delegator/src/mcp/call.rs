//! One tool call: from its arguments to its answer.
//!
//! The way is the command line's own: the same validation, the same handlers, the same outcome, the same renderers. Only
//! the last step differs: the text goes to the host, cleaned of secrets, and no longer than hosts take.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delegator_config::Config;
use delegator_engine::Shelf;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value};

use super::advice;
use super::toolbox::Toolbox;
use crate::cli::globals::Format;
use crate::fault::{AppError, ErrorCode, Problem};
use crate::fitting::{Room, fitting};
use crate::interrupt::Attachment;
use crate::outcome::{Answer, Unit, Warning};
use crate::payload;
use crate::presentation::Presentation;
use crate::process::Process;
use crate::registry::{Circumstances, CommandSpec};
use crate::requests;
use crate::run::{Call, Context, Surface, caught};
use crate::screen::Screen;
use crate::stdout::Printer;
use crate::views::task as view;

/// How a tool can answer.
const FORMATS: [Format; 2] = [Format::Markdown, Format::Json];
/// Hosts cut or divert texts beyond about 50,000 characters.
const MAX_TEXT: usize = 48_000;
/// What else an answer may take where more output was asked for.
const AROUND_OUTPUT: usize = 16_000;

/// Everything a call needs, shared by all of a server.
#[derive(Debug)]
pub struct Surroundings {
    pub process: Process,
    pub config: Config,
    pub state_dir: Option<PathBuf>,
    pub printer: Arc<Printer>,
    pub toolbox: Toolbox,
    pub shelf: Shelf,
}

/// A call that was let in.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub spec: &'static CommandSpec,
    pub input: Value,
    pub format: Format,
    call: Call,
    /// Characters the host takes.
    max_text: usize,
}

impl Surroundings {
    /// Validates. The refusal is an answer, too, in the format that was asked for.
    pub fn admit(&self, spec: &'static CommandSpec, object: Map<String, Value>) -> Result<Admitted, Refused> {
        let around = Circumstances {
            config: &self.config,
            current_dir: &self.process.current_dir,
            state_dir: self.state_dir.as_deref(),
        };
        self.admit_in(spec, object, Some(&around))
    }

    /// A call that could not even be judged.
    pub fn broken(&self, spec: &'static CommandSpec, error: AppError) -> Refused {
        let (call, format) = (Call::begin(), self.toolbox.default_format());
        let call = Admitted { spec, input: Value::Null, format, call, max_text: MAX_TEXT };
        Refused { call: Box::new(call), error: Box::new(error) }
    }

    fn admit_in(
        &self,
        spec: &'static CommandSpec,
        mut object: Map<String, Value>,
        around: Option<&Circumstances<'_>>,
    ) -> Result<Admitted, Refused> {
        let call = Call::begin();
        let mut problems: Vec<Problem> = Vec::new();
        let asked = payload::take_format(&mut object, &FORMATS, &mut problems);
        let format = asked.unwrap_or(self.toolbox.default_format());
        // Output that was asked for is escaped on its way, and the agent's last message comes besides.
        let asked_for_more = ["max_output_bytes", "maxOutputBytes"]
            .iter()
            .find_map(|key| object.get(*key).or_else(|| object.get("options")?.get(key))?.as_u64());
        let max_text = asked_for_more
            .and_then(|bytes| usize::try_from(bytes).ok())
            .map_or(MAX_TEXT, |bytes| MAX_TEXT.max(bytes.saturating_mul(2).saturating_add(AROUND_OUTPUT)));
        let admitted = |input: Value| Admitted { spec, input, format, call, max_text };
        match requests::validate(spec, object, problems, around) {
            Ok(request) => Ok(admitted(request.input)),
            Err(error) => Err(Refused { call: Box::new(admitted(Value::Null)), error: Box::new(error) }),
        }
    }

    /// A call of our own making: it says how to answer, and starts nothing that surroundings could have something against.
    pub fn admitted(
        &self,
        spec: &'static CommandSpec,
        input: Value,
        format: Format,
    ) -> Result<Admitted, Refused> {
        let object = input.as_object().cloned().unwrap_or_default();
        self.admit_in(spec, object, None).map(|call| Admitted { format, ..call })
    }

    /// A resource as the host gets it.
    pub fn cleaned(&self, contents: ResourceContents) -> ResourceContents {
        match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, meta } => {
                let text = self.printer.clean_line(&text);
                ResourceContents::TextResourceContents { uri, mime_type, text, meta }
            }
            other => other,
        }
    }

    /// An agent's own words, and nothing else, as the host gets them.
    pub fn quoted(&self, words: &str) -> String {
        self.printer.clean_line(&view::shortened(words, MAX_TEXT))
    }

    /// Does a piece of work of a call; a panic is an error like any other.
    pub fn work<T>(&self, act: impl FnOnce(&Context<'_>) -> Result<T, AppError>) -> Result<T, AppError> {
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
            shelf: self.shelf.clone(),
        };
        caught(|| act(&context))
    }

    /// The answer as the host gets it.
    pub fn render(&self, call: &Admitted, answer: Result<Answer, AppError>) -> CallToolResult {
        let mut answer = answer.unwrap_or_else(Answer::from);
        let told = self.config.warnings.iter().map(|warning| Warning::new(warning.code, &warning.message));
        answer.warnings.extend(told);
        advice::for_tools(&mut answer, self.toolbox.names());
        let presentation = self.presentation(call.format);
        let room = || Room { most: call.max_text, unit: Unit::Characters, printer: &self.printer };
        let (outcome, texts) = fitting(call.call.end(call.spec, answer), &presentation, room());
        let text = self.printer.clean_line(&texts.answer);
        let is_error = outcome.tool_error().is_some();
        let structured = match call.format {
            Format::Json => Some(text.clone()),
            // Whoever was told what answers look like expects them to look so in every format.
            _ if self.toolbox.declares_answers() => {
                let (_, texts) = fitting(outcome, &self.presentation(Format::Json), room());
                Some(self.printer.clean_line(&texts.answer))
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
        Presentation::of_tool(format, self.toolbox.names())
    }
}

impl Admitted {
    /// Whether its response may be longer than usual.
    pub fn may_be_long(&self) -> bool {
        self.max_text > MAX_TEXT
    }
}

/// A call that was not let in, and why.
#[derive(Debug)]
pub struct Refused {
    pub call: Box<Admitted>,
    pub error: Box<AppError>,
}

impl Refused {
    /// Whether all that is missing is a person's word.
    pub fn wants_confirmation(&self) -> bool {
        let mut problems = self.error.problems.iter();
        self.error.problems.len() == 1
            && problems
                .all(|problem| problem.code == ErrorCode::ConfirmationRequired && problem.field == "confirm")
    }
}
