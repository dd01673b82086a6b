//! How this call wants its answer, and the answer in that form.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use delegator_config::Config;
use delegator_domain::terminal;
use serde_json::{Map, Value};

use crate::cli::globals::{Format, Globals, LogFormat};
use crate::logging;
use crate::outcome::{Completion, Outcome};
use crate::process::Process;
use crate::screen::ItemFormat;
use crate::spec::{CommandSpec, ServedTools};
use crate::views::document::{Block, CallSyntax, Document};
use crate::views::envelope_schema::{self, Envelope};
use crate::views::{
    cli_envelope, error_document, escape_terminal_controls, human, json_text, jsonl, meta_facts,
    standard_envelope, tool_envelope,
};

/// Decided before anything runs, so that even a crash is told in the right words.
#[derive(Debug, Clone)]
pub struct Presentation {
    screen: Rendering,
    /// A success goes here; a failure is told where the caller looks, and the file keeps what it had.
    file: Option<(PathBuf, Rendering)>,
    stream: bool,
    pub quiet: bool,
    /// Only part of the data is wanted, so it cannot be described as a whole.
    has_selected_fields: bool,
    /// A host reads it, and hands it to a model that can call these.
    served_tools: Option<Arc<ServedTools>>,
    tool_prefix: String,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// The form of the lines on stderr.
    log_format: LogFormat,
}

/// One way to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rendering {
    representation: Representation,
    envelope: Envelope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Representation {
    /// The command's own format.
    Raw,
    Formatted(Format),
}

/// The texts of an answer: what goes to stdout (or the file), and what goes to stderr.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RenderedOutput {
    pub body: String,
    pub remarks: Vec<String>,
}

impl Presentation {
    pub fn decide(
        process: &Process,
        globals: &Globals,
        (spec, input): (&CommandSpec, &Map<String, Value>),
        config: &Config,
    ) -> Self {
        let raw = spec.raw.applies_to(input);
        // A configuration that cannot be read still leaves the variable to say how its error shall look.
        let configured = config.envelope().or_else(|| process.variable("MCP_DELEGATOR_ENVELOPE"));
        let chosen = globals.envelope.or_else(|| configured.and_then(Envelope::from_name));
        let asked_for_json = globals.envelope.is_some() || (raw && !globals.fields.is_empty());
        let shown = |default: Format| match globals.format {
            Some(Format::Human) if raw && globals.fields.is_empty() => Representation::Raw,
            Some(format) => Representation::Formatted(format),
            None if asked_for_json => Representation::Formatted(Format::Json),
            None if raw => Representation::Raw,
            None => Representation::Formatted(default),
        };
        let for_programs = if spec.streams { Format::Jsonl } else { Format::Json };
        let on_screen = if process.is_unattended() { for_programs } else { Format::Human };
        let in_file =
            Rendering { representation: shown(Format::Json), envelope: chosen.unwrap_or(Envelope::Standard) };
        Presentation {
            screen: Rendering {
                representation: shown(on_screen),
                envelope: chosen.unwrap_or(Envelope::Agent),
            },
            file: globals.output.clone().map(|path| (path, in_file)),
            stream: !globals.no_stream,
            quiet: globals.quiet,
            has_selected_fields: !globals.fields.is_empty(),
            served_tools: None,
            tool_prefix: config.tool_prefix().to_owned(),
            stdout_is_terminal: process.stdout_is_terminal,
            stderr_is_terminal: process.stderr_is_terminal,
            log_format: globals.log_format,
        }
    }

    /// How a tool answers.
    pub fn for_tool(format: Format, served: &Arc<ServedTools>) -> Self {
        Presentation {
            screen: Rendering { representation: Representation::Formatted(format), envelope: Envelope::Tool },
            file: None,
            stream: false,
            quiet: true,
            has_selected_fields: false,
            served_tools: Some(Arc::clone(served)),
            tool_prefix: served.prefix.clone(),
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            log_format: LogFormat::Text,
        }
    }

    /// The file a success goes to.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// In which form items may be shown as they come.
    pub fn items(&self) -> ItemFormat {
        match self.file.as_ref().map_or(self.screen, |(_, look)| *look).representation {
            Representation::Raw => ItemFormat::Json,
            Representation::Formatted(Format::Jsonl) if self.stream => ItemFormat::Json,
            Representation::Formatted(Format::Human) => ItemFormat::Text,
            Representation::Formatted(Format::Jsonl | Format::Json | Format::Markdown) => {
                ItemFormat::Collected
            }
        }
    }

    /// Whether lines go straight to a terminal.
    pub fn writes_to_terminal(&self) -> bool {
        self.stdout_is_terminal && self.file.is_none()
    }

    /// Whether a person watches stderr and nothing else is being drawn there.
    pub fn shows_progress(&self) -> bool {
        let draws_lines = self.writes_to_terminal() && self.screen.representation == Representation::Raw;
        self.stderr_is_terminal && !self.quiet && !draws_lines
    }

    /// Words beside the answer of a command that goes on, among its log lines.
    pub fn announcement(&self, words: &str) -> String {
        logging::announcement(words, self.log_format)
    }

    /// Where this outcome is to be written, if not to stdout.
    pub fn file_for(&self, outcome: &Outcome) -> Option<&Path> {
        let (path, _) = self.file.as_ref()?;
        matches!(outcome.output.completion, Completion::Done(_)).then_some(path)
    }

    fn rendering_for(&self, outcome: &Outcome) -> Rendering {
        match (&self.file, self.file_for(outcome)) {
            (Some((_, look)), Some(_)) => *look,
            _ => self.screen,
        }
    }

    /// Whether a text this long would be more than the reader takes; a command's own format is never cut.
    pub fn is_size_limited(&self, outcome: &Outcome) -> bool {
        match self.rendering_for(outcome).representation {
            Representation::Formatted(Format::Json | Format::Jsonl) => true,
            Representation::Formatted(Format::Markdown) => self.served_tools.is_some(),
            Representation::Formatted(Format::Human) | Representation::Raw => false,
        }
    }

    /// Where a program reads the answer, text for people stays off stdout.
    pub fn is_for_programs(&self) -> bool {
        self.file.is_none()
            && matches!(self.screen.representation, Representation::Formatted(Format::Json | Format::Jsonl))
    }

    /// What is said. An envelope is held to its contract before it leaves.
    pub fn render(&self, outcome: &Outcome) -> RenderedOutput {
        self.render_with(outcome, check_contract)
    }

    /// The same, to see how long it would be.
    pub fn render_draft(&self, outcome: &Outcome) -> RenderedOutput {
        self.render_with(outcome, |_, _, _| {})
    }

    fn render_with(&self, outcome: &Outcome, check: EnvelopeCheck) -> RenderedOutput {
        let look = self.rendering_for(outcome);
        match look.representation {
            Representation::Raw => self.raw(outcome),
            Representation::Formatted(Format::Human) => self.human(outcome),
            Representation::Formatted(Format::Markdown) => {
                RenderedOutput { body: self.markdown(outcome), remarks: Vec::new() }
            }
            Representation::Formatted(Format::Json) => self.json(outcome, look.envelope, check),
            Representation::Formatted(Format::Jsonl) => {
                let lines: Vec<String> = jsonl::render(outcome, self.stream).iter().map(json_text).collect();
                RenderedOutput { body: lines.join("\n"), remarks: Vec::new() }
            }
        }
    }

    fn human(&self, outcome: &Outcome) -> RenderedOutput {
        let mut remarks = if self.quiet { Vec::new() } else { human::warnings(&outcome.output.warnings) };
        let next = outcome.output.page.as_ref().and_then(|page| page.next_cursor.as_ref());
        remarks
            .extend(next.filter(|_| !self.quiet).map(|cursor| format!("There is more: --cursor {cursor}")));
        let answer = match (&outcome.output.completion, outcome.error()) {
            (_, Some(error)) => {
                remarks.push(human::error(&error));
                outcome.failure_data().map(|data| self.document(outcome, data).to_text()).unwrap_or_default()
            }
            (Completion::NotModified, None) => "Not modified.".to_owned(),
            (_, None) => {
                outcome.data().map(|data| self.document(outcome, data).to_text()).unwrap_or_default()
            }
        };
        RenderedOutput { body: answer, remarks }
    }

    fn document(&self, outcome: &Outcome, data: &Value) -> Document {
        match self.has_selected_fields {
            true => Document::from_value(data),
            false => meta_facts::append_to((outcome.command.describe)(data), &outcome.output),
        }
    }

    /// The same under a heading: where the data has none of its own, what the command says of itself.
    fn titled_document(&self, outcome: &Outcome, data: &Value) -> Document {
        let mut document = self.document(outcome, data);
        let said = || outcome.output.message.clone().unwrap_or_else(|| outcome.command.about.to_owned());
        document.title.get_or_insert_with(said);
        match outcome.output.page.as_ref().and_then(|page| page.next_cursor.as_ref()) {
            Some(cursor) => document.with_facts(vec![("more".to_owned(), format!("cursor {cursor}"))]),
            None => document,
        }
    }

    /// A wait that ran out is an answer here, whoever reads it, and what there is to warn of is told.
    fn markdown(&self, outcome: &Outcome) -> String {
        let calls = self.served_tools.as_deref().map_or(CallSyntax::Commands, CallSyntax::Tools);
        let mut text = match (outcome.tool_error(), outcome.data().or(outcome.failure_data())) {
            (Some(error), _) => error_document::build(outcome, &error).to_markdown(calls),
            (None, Some(data)) => self.titled_document(outcome, data).to_markdown(calls),
            (None, None) => "# Not modified".to_owned(),
        };
        for warning in human::warnings(&outcome.output.warnings) {
            let note = Document::default().block(Block::Text(warning));
            text = format!("{text}\n\n{}", note.to_markdown(calls));
        }
        text
    }

    fn raw(&self, outcome: &Outcome) -> RenderedOutput {
        let mut remarks = if self.quiet { Vec::new() } else { human::warnings(&outcome.output.warnings) };
        // What a person should know beside it must not stand in it.
        let said = outcome.output.message.as_ref().filter(|_| self.stderr_is_terminal && !self.quiet);
        remarks.extend(said.map(|words| terminal::sanitize(words).into_owned()));
        if let Some(error) = outcome.error() {
            // Stdout holds the command's own format or nothing; a program finds the envelope on stderr.
            remarks.push(match self.stderr_is_terminal {
                true => human::error(&error),
                false => json_text(&cli_envelope::render(outcome)),
            });
        }
        RenderedOutput { body: outcome.output.raw.clone().unwrap_or_default(), remarks }
    }

    fn json(&self, outcome: &Outcome, envelope: Envelope, check: EnvelopeCheck) -> RenderedOutput {
        let value = match envelope {
            Envelope::Agent => cli_envelope::render(outcome),
            Envelope::Standard => standard_envelope::render(outcome),
            Envelope::Tool => tool_envelope::render(outcome, &self.tool_prefix),
            Envelope::Raw => return data_only(outcome),
        };
        check(envelope, outcome, &value);
        let answer = match envelope {
            Envelope::Standard => escape_terminal_controls(&standard_envelope::to_text(&value)),
            _ => json_text(&value),
        };
        RenderedOutput { body: answer, remarks: Vec::new() }
    }
}

/// What becomes of an envelope before it is text.
type EnvelopeCheck = fn(Envelope, &Outcome, &Value);

/// Without a wrapper there is no place for an error beside the data, so it goes to stderr.
fn data_only(outcome: &Outcome) -> RenderedOutput {
    let answer = outcome.data().or(outcome.failure_data()).map(json_text).unwrap_or_default();
    let remarks = outcome.error().map(|error| human::error(&error)).into_iter().collect();
    RenderedOutput { body: answer, remarks }
}

/// Every envelope is held to its published schema before it leaves. A violation is a bug of ours: loud while we
/// develop, logged in the field, where the answer is worth more than its form.
fn check_contract(envelope: Envelope, outcome: &Outcome, value: &Value) {
    let Some(schema) = envelope_schema::schema_of(envelope, outcome.command.category) else { return };
    let violations = envelope_schema::violations(&schema, value);
    debug_assert!(violations.is_empty(), "an envelope breaks its contract: {violations:?}\n{value}");
    for violation in violations {
        tracing::error!(command = outcome.command.name(), violation, "an envelope breaks its contract");
    }
}
