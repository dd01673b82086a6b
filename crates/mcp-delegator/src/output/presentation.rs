//! Selects the format, envelope and destination of a call's output, and renders it.
//!
//! The selection is made before the command runs, so that an error or a panic is rendered in the same way.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use delegator_config::Config;
use delegator_domain::terminal;
use delegator_engine::Variables;
use serde_json::{Map, Value};

use crate::error::AppError;
use crate::output::call_syntax::CallSyntax;
use crate::output::command_data::Data;
use crate::output::documents::document::{Block, Document};
use crate::output::documents::text::TextStyle;
use crate::output::documents::{error as error_document, human, meta_facts};
use crate::output::envelopes::{
    cli as cli_envelope, schema, standard as standard_envelope, tool as tool_envelope,
};
use crate::output::outcome::{Completion, Outcome};
use crate::output::pager::Pager;
use crate::output::printer;
use crate::output::values::{escape_terminal_controls, json_text};
use crate::spec::formats::{ColorChoice, Envelope, Format, Globals, LogFormat};
use crate::spec::process::Process;
use crate::spec::{CommandSpec, RawOutput, ServedTools};

#[derive(Debug, Clone)]
pub struct Presentation {
    screen: Rendering,
    /// The destination of a whole or partial success. A failure goes to stdout, and the file is left
    /// unchanged.
    file: Option<(PathBuf, Rendering)>,
    stream: bool,
    pub quiet: bool,
    /// With `--fields` the data is incomplete, so the command's own document cannot be built.
    has_selected_fields: bool,
    /// Set for MCP responses: the tools that suggested syntax may use.
    served_tools: Option<Arc<ServedTools>>,
    tool_prefix: String,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// How text for people looks on stdout, and on stderr.
    body_style: TextStyle,
    remark_style: TextStyle,
    /// The format of the lines on stderr.
    log_format: LogFormat,
    /// `None` unless a person reads stdout.
    pager: Option<Pager>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rendering {
    /// `None` for the command's own format.
    format: Option<Format>,
    envelope: Envelope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFormat {
    /// One line of text each.
    Text,
    /// One line of JSON each.
    Json,
    /// Not printed one by one: the output contains all items.
    Collected,
}

/// `body` goes to stdout or the file, `remarks` go to stderr.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RenderedOutput {
    pub body: String,
    pub remarks: Vec<String>,
}

impl Presentation {
    pub fn decide(
        process: &Process,
        globals: &Globals,
        spec: &CommandSpec,
        input: &Map<String, Value>,
        config: &Config,
    ) -> Self {
        let raw = spec.raw.applies_to(input);
        // If the configuration is invalid, the variables still select the presentation of that error.
        let in_variable = || process.variable("MCP_DELEGATOR_ENVELOPE").and_then(Envelope::from_name);
        let chosen = globals.envelope.or(config.settings.envelope).or_else(in_variable);
        let wants_json = globals.envelope.is_some() || (raw && !globals.fields.is_empty());
        let format = |default: Format| match globals.format {
            _ if spec.raw == RawOutput::Protocol => None,
            Some(Format::Human) if raw && globals.fields.is_empty() => None,
            Some(format) => Some(format),
            None if wants_json => Some(Format::Json),
            None => (!raw).then_some(default),
        };
        let for_programs = if spec.streams { Format::Jsonl } else { Format::Json };
        let in_variable = || process.variable("MCP_DELEGATOR_FORMAT").and_then(Format::from_name);
        let on_screen = match config.settings.format.or_else(in_variable) {
            Some(Format::Json) => for_programs,
            Some(configured) => configured,
            None if process.is_unattended() => for_programs,
            None => Format::Human,
        };
        let in_file =
            Rendering { format: format(Format::Json), envelope: chosen.unwrap_or(Envelope::Standard) };
        Presentation {
            screen: Rendering { format: format(on_screen), envelope: chosen.unwrap_or(Envelope::Agent) },
            file: globals.output.clone().map(|path| (path, in_file)),
            stream: !globals.no_stream,
            quiet: globals.quiet,
            has_selected_fields: !globals.fields.is_empty(),
            served_tools: None,
            tool_prefix: config.settings.tool_prefix.clone(),
            stdout_is_terminal: process.stdout_is_terminal,
            stderr_is_terminal: process.stderr_is_terminal,
            body_style: text_style(process, globals.color, process.stdout_is_terminal),
            remark_style: text_style(process, globals.color, process.stderr_is_terminal),
            log_format: globals.log_format,
            pager: Pager::find(process).filter(|_| globals.output.is_none()),
        }
    }

    pub fn for_tool(format: Format, served: &Arc<ServedTools>) -> Self {
        Presentation {
            screen: Rendering { format: Some(format), envelope: Envelope::Tool },
            served_tools: Some(Arc::clone(served)),
            tool_prefix: served.prefix.clone(),
            ..Presentation::for_api()
        }
    }

    /// The CLI envelope as JSON.
    pub fn for_api() -> Self {
        Presentation {
            screen: Rendering { format: Some(Format::Json), envelope: Envelope::Agent },
            file: None,
            stream: false,
            quiet: true,
            has_selected_fields: false,
            served_tools: None,
            tool_prefix: String::new(),
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            body_style: TextStyle::default(),
            remark_style: TextStyle::default(),
            log_format: LogFormat::Text,
            pager: None,
        }
    }

    pub fn call_syntax(&self) -> CallSyntax<'_> {
        self.served_tools.as_deref().map_or(CallSyntax::Commands, CallSyntax::Tools)
    }

    /// The destination file of a whole or partial success.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// The format in which items are written as they arrive.
    pub fn items(&self) -> ItemFormat {
        match self.format() {
            None => ItemFormat::Json,
            Some(Format::Jsonl) if self.stream => ItemFormat::Json,
            Some(Format::Human) => ItemFormat::Text,
            Some(Format::Jsonl | Format::Json | Format::Markdown) => ItemFormat::Collected,
        }
    }

    pub fn is_raw(&self) -> bool {
        self.format().is_none()
    }

    /// The format of a success.
    fn format(&self) -> Option<Format> {
        self.file.as_ref().map_or(self.screen, |(_, rendering)| *rendering).format
    }

    pub fn pager_for(&self, outcome: &Outcome) -> Option<&Pager> {
        self.pager.as_ref().filter(|_| outcome.output.is_paged && self.is_raw())
    }

    /// Whether stdout is a terminal and the output goes there.
    pub fn writes_to_terminal(&self) -> bool {
        self.stdout_is_terminal && self.file.is_none()
    }

    /// Whether stderr is a terminal that no other output uses.
    pub fn shows_progress(&self) -> bool {
        let writes_lines = self.writes_to_terminal() && self.screen.format.is_none();
        self.stderr_is_terminal && !self.quiet && !writes_lines
    }

    /// A message of a command that keeps running, in the format of its log lines.
    pub fn announcement(&self, message: &str) -> String {
        printer::announcement(&self.remark_style.wrap(message), self.log_format)
    }

    /// A question to the person at the terminal.
    pub fn question(&self, text: &str) -> String {
        self.remark_style.wrap(text)
    }

    /// The file for this outcome; `None` for stdout.
    pub fn file_for(&self, outcome: &Outcome) -> Option<&Path> {
        let (path, _) = self.file.as_ref()?;
        matches!(outcome.output.completion, Completion::Done | Completion::Partial).then_some(path)
    }

    fn rendering_for(&self, outcome: &Outcome) -> Rendering {
        match (&self.file, self.file_for(outcome)) {
            (Some((_, rendering)), Some(_)) => *rendering,
            _ => self.screen,
        }
    }

    /// Whether the size limit applies. Text for people and a command's own format are never truncated.
    pub fn is_size_limited(&self, outcome: &Outcome) -> bool {
        match self.rendering_for(outcome).format {
            Some(Format::Json | Format::Jsonl) => true,
            Some(Format::Markdown) => self.served_tools.is_some(),
            Some(Format::Human) | None => false,
        }
    }

    /// Whether a program reads stdout; then text for people must not go there.
    pub fn is_for_programs(&self) -> bool {
        self.file.is_none() && matches!(self.screen.format, Some(Format::Json | Format::Jsonl))
    }

    pub fn is_for_people(&self) -> bool {
        self.screen.format == Some(Format::Human)
    }

    /// How lines for a person look that are printed before the final output.
    pub fn body_style(&self) -> TextStyle {
        if self.file.is_some() { self.body_style.plain() } else { self.body_style }
    }

    /// How an error looks that is printed without a document.
    pub fn error_text(&self, error: &AppError) -> String {
        human::error(error, "", self.remark_style)
    }

    /// Renders an outcome and validates it against the published schema.
    pub fn render(&self, outcome: &Outcome) -> RenderedOutput {
        self.render_with(outcome, check_contract)
    }

    /// Renders without validation, for example to measure the size.
    pub fn render_draft(&self, outcome: &Outcome) -> RenderedOutput {
        self.render_with(outcome, |_, _, _| {})
    }

    fn render_with(&self, outcome: &Outcome, check: EnvelopeCheck) -> RenderedOutput {
        let rendering = self.rendering_for(outcome);
        match rendering.format {
            None => self.raw(outcome, check),
            Some(Format::Human) => self.human(outcome),
            Some(Format::Markdown) => {
                RenderedOutput { body: self.markdown(outcome), remarks: self.error_beside_file(outcome) }
            }
            Some(Format::Json) => self.json(outcome, rendering.envelope, check),
            Some(Format::Jsonl) => {
                let (items, ending) = cli_envelope::render_stream(outcome, self.stream);
                check(Envelope::Agent, outcome, &ending);
                let lines: Vec<String> = items.iter().chain([&ending]).map(json_text).collect();
                RenderedOutput { body: lines.join("\n"), remarks: self.error_beside_file(outcome) }
            }
        }
    }

    fn human(&self, outcome: &Outcome) -> RenderedOutput {
        let style = if self.file_for(outcome).is_some() { self.body_style.plain() } else { self.body_style };
        let data = outcome.output.data.as_ref();
        let mut document = data.map(|data| self.document(outcome, data)).unwrap_or_default();
        let printed = document.to_text(TextStyle::default());
        let mut remarks = self.warnings(outcome, &printed);
        if outcome.output.next_cursor().is_some() && !self.quiet {
            remarks.push("There is more: a larger --limit shows it.".to_owned());
        }
        if let Completion::Incomplete(reason) = &outcome.output.completion {
            document.insert_before_next(Block::Text(reason.to_error().message));
        }
        if let Some(error) = outcome.error() {
            let printed = document.to_text(TextStyle::default());
            remarks.push(human::error(&error, &printed, self.remark_style));
        }
        let body = match &outcome.output.completion {
            Completion::NotModified => "Not modified.".to_owned(),
            _ => document.to_text(style),
        };
        RenderedOutput { body, remarks }
    }

    /// The warnings, without those that `printed` contains.
    fn warnings(&self, outcome: &Outcome, printed: &str) -> Vec<String> {
        if self.quiet {
            Vec::new()
        } else {
            human::warnings(&outcome.output.warnings, printed, self.remark_style)
        }
    }

    fn document(&self, outcome: &Outcome, data: &Data) -> Document {
        if self.has_selected_fields {
            Document::from_value(&data.to_json())
        } else {
            meta_facts::append_to(outcome.output.document(data), &outcome.output)
        }
    }

    /// The document with a title: its own, else the message of the output or the description of the command.
    fn titled_document(&self, outcome: &Outcome, data: &Data) -> Document {
        let mut document = self.document(outcome, data);
        let title = || outcome.output.message.clone().unwrap_or_else(|| outcome.command.about.to_owned());
        document.title.get_or_insert_with(title);
        match outcome.output.next_cursor() {
            Some(cursor) => document.with_facts(vec![("more".to_owned(), format!("cursor {cursor}"))]),
            None => document,
        }
    }

    /// As in the tool envelope, an expired wait is a result. Warnings are appended.
    fn markdown(&self, outcome: &Outcome) -> String {
        let syntax = self.call_syntax();
        let mut text = match (outcome.tool_error(), &outcome.output.data) {
            (Some(error), _) => error_document::build(outcome, &error, syntax).to_markdown(syntax),
            (None, Some(data)) => self.titled_document(outcome, data).to_markdown(syntax),
            (None, None) => "# Not modified".to_owned(),
        };
        for warning in human::warnings(&outcome.output.warnings, "", TextStyle::default()) {
            let note = Document::default().text(warning);
            text = format!("{text}\n\n{}", note.to_markdown(syntax));
        }
        text
    }

    fn raw(&self, outcome: &Outcome, check: EnvelopeCheck) -> RenderedOutput {
        let mut remarks = self.warnings(outcome, "");
        // A message for a person must not be mixed into the command's own format.
        let message = outcome.output.message.as_ref().filter(|_| self.stderr_is_terminal && !self.quiet);
        remarks.extend(message.map(|message| self.remark_style.wrap(&terminal::sanitize(message))));
        if let Some(error) = outcome.error() {
            // Stdout contains the command's own format or nothing; a program gets the envelope on stderr.
            remarks.push(if self.stderr_is_terminal {
                self.error_text(&error)
            } else {
                let envelope = cli_envelope::render(outcome);
                check(Envelope::Agent, outcome, &envelope);
                json_text(&envelope)
            });
        }
        RenderedOutput { body: outcome.output.raw.clone().unwrap_or_default(), remarks }
    }

    fn json(&self, outcome: &Outcome, envelope: Envelope, check: EnvelopeCheck) -> RenderedOutput {
        let value = match envelope {
            Envelope::Agent => cli_envelope::render(outcome),
            Envelope::Standard => standard_envelope::render(outcome),
            Envelope::Tool => tool_envelope::render(outcome, &self.tool_prefix, self.call_syntax()),
            Envelope::Raw => return self.data_only(outcome),
        };
        check(envelope, outcome, &value);
        let body = match envelope {
            Envelope::Standard => escape_terminal_controls(&standard_envelope::to_text(&value)),
            _ => json_text(&value),
        };
        RenderedOutput { body, remarks: self.error_beside_file(outcome) }
    }

    /// Without an envelope there is no field for warnings and an error, so they go to stderr.
    fn data_only(&self, outcome: &Outcome) -> RenderedOutput {
        let data = outcome.output.data.as_ref();
        let body = data.map(|data| json_text(&data.to_json())).unwrap_or_default();
        let mut remarks = self.warnings(outcome, "");
        remarks.extend(outcome.error().map(|error| self.error_text(&error)));
        RenderedOutput { body, remarks }
    }

    /// The error of a partial success whose envelope goes to a file: without it stdout and stderr would be
    /// empty.
    fn error_beside_file(&self, outcome: &Outcome) -> Vec<String> {
        let error = self.file_for(outcome).and_then(|_| outcome.error());
        error.map(|error| self.error_text(&error)).into_iter().collect()
    }
}

/// Lines are wrapped only on a terminal. `NO_COLOR` counts only without `--color`.
fn text_style(process: &Process, color: ColorChoice, is_terminal: bool) -> TextStyle {
    let variables = process.environment.iter().filter(|(name, _)| *name == "TZ");
    let zone: Variables = variables.map(|(name, value)| (name.clone(), value.clone())).collect();
    let has_color = || process.variable("TERM").is_some_and(|terminal| terminal != "dumb");
    let can_color = || process.variable("NO_COLOR").is_none() && has_color();
    TextStyle {
        columns: is_terminal.then_some(process.terminal_columns),
        is_colored: match color {
            ColorChoice::Auto => is_terminal && can_color(),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        },
        // A process has one reader, and makes a style for each of its two streams.
        zone: Some(Box::leak(Box::new(zone))),
    }
}

/// Called with every envelope before it is serialised.
type EnvelopeCheck = fn(Envelope, &Outcome, &Value);

/// Validates an answer against its published schema. A violation is a bug of this program: a debug build
/// aborts, a release build logs it and sends the answer, because the caller needs the data more than its
/// form. A release build validates only the first answer of each command: a server would repeat the work for
/// every call.
fn check_contract(envelope: Envelope, outcome: &Outcome, value: &Value) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static VALIDATED: Mutex<BTreeSet<&[&str]>> = Mutex::new(BTreeSet::new());
    let is_first = || {
        let mut validated = VALIDATED.lock().unwrap_or_else(PoisonError::into_inner);
        validated.insert(outcome.command.path)
    };
    if !cfg!(debug_assertions) && !is_first() {
        return;
    }
    let violations = schema::check(envelope, outcome.command, value);
    for violation in &violations {
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::error!(command = outcome.command.name(), violation, count, "an answer violates its schema");
    }
    // A panic would become another answer, or end only the thread that prints.
    if cfg!(debug_assertions) && !violations.is_empty() {
        std::process::abort();
    }
}
