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
use crate::registry::{CommandSpec, ServedTools};
use crate::screen::Items;
use crate::views::document::{Block, Calls, Document};
use crate::views::envelope_schema::{self, Envelope};
use crate::views::{agent, beside, error_document, harmless_json, human, json_text, lines, standard, tool};

/// Decided before anything runs, so that even a crash is told in the right words.
#[derive(Debug, Clone)]
pub struct Presentation {
    screen: Look,
    /// A success goes here; a failure is told where the caller looks, and the file keeps what it had.
    file: Option<(PathBuf, Look)>,
    stream: bool,
    pub quiet: bool,
    /// Only part of the data is wanted, so it cannot be described as a whole.
    is_partial: bool,
    /// A host reads it, and hands it to a model that can call these.
    served: Option<Arc<ServedTools>>,
    tool_prefix: String,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// The form of the lines on stderr.
    log_format: LogFormat,
}

/// One way to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    shown: Shown,
    envelope: Envelope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The command's own format.
    Raw,
    In(Format),
}

/// The texts of an answer: what goes to stdout (or the file), and what goes to stderr.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Texts {
    pub answer: String,
    pub remarks: Vec<String>,
}

impl Presentation {
    pub fn decide(
        process: &Process,
        globals: &Globals,
        (spec, input): (&CommandSpec, &Map<String, Value>),
        config: &Config,
    ) -> Self {
        let raw = spec.raw.is_for(input);
        // A configuration that cannot be read still leaves the variable to say how its error shall look.
        let configured = config.envelope().or_else(|| process.variable("MCP_DELEGATOR_ENVELOPE"));
        let chosen = globals.envelope.or_else(|| configured.and_then(Envelope::named));
        let asked_for_json = globals.envelope.is_some() || (raw && !globals.fields.is_empty());
        let shown = |default: Format| match globals.format {
            Some(Format::Human) if raw && globals.fields.is_empty() => Shown::Raw,
            Some(format) => Shown::In(format),
            None if asked_for_json => Shown::In(Format::Json),
            None if raw => Shown::Raw,
            None => Shown::In(default),
        };
        let for_programs = if spec.streams { Format::Jsonl } else { Format::Json };
        let on_screen = if process.is_unattended() { for_programs } else { Format::Human };
        let in_file = Look { shown: shown(Format::Json), envelope: chosen.unwrap_or(Envelope::Standard) };
        Presentation {
            screen: Look { shown: shown(on_screen), envelope: chosen.unwrap_or(Envelope::Agent) },
            file: globals.output.clone().map(|path| (path, in_file)),
            stream: !globals.no_stream,
            quiet: globals.quiet,
            is_partial: !globals.fields.is_empty(),
            served: None,
            tool_prefix: config.tool_prefix().to_owned(),
            stdout_is_terminal: process.stdout_is_terminal,
            stderr_is_terminal: process.stderr_is_terminal,
            log_format: globals.log_format,
        }
    }

    /// How a tool answers.
    pub fn of_tool(format: Format, served: &Arc<ServedTools>) -> Self {
        Presentation {
            screen: Look { shown: Shown::In(format), envelope: Envelope::Tool },
            file: None,
            stream: false,
            quiet: true,
            is_partial: false,
            served: Some(Arc::clone(served)),
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
    pub fn items(&self) -> Items {
        match self.file.as_ref().map_or(self.screen, |(_, look)| *look).shown {
            Shown::Raw => Items::Json,
            Shown::In(Format::Jsonl) if self.stream => Items::Json,
            Shown::In(Format::Human) => Items::Text,
            Shown::In(Format::Jsonl | Format::Json | Format::Markdown) => Items::Together,
        }
    }

    /// Whether lines go straight to a terminal.
    pub fn draws_on_terminal(&self) -> bool {
        self.stdout_is_terminal && self.file.is_none()
    }

    /// Whether a person watches stderr and nothing else is being drawn there.
    pub fn shows_progress(&self) -> bool {
        let draws_lines = self.draws_on_terminal() && self.screen.shown == Shown::Raw;
        self.stderr_is_terminal && !self.quiet && !draws_lines
    }

    /// Words beside the answer of a command that goes on, among its log lines.
    pub fn announcement(&self, words: &str) -> String {
        logging::announcement(words, self.log_format)
    }

    /// Where this outcome is to be written, if not to stdout.
    pub fn file_for(&self, outcome: &Outcome) -> Option<&Path> {
        let (path, _) = self.file.as_ref()?;
        matches!(outcome.answer.completion, Completion::Done(_)).then_some(path)
    }

    fn look(&self, outcome: &Outcome) -> Look {
        match (&self.file, self.file_for(outcome)) {
            (Some((_, look)), Some(_)) => *look,
            _ => self.screen,
        }
    }

    /// Whether a text this long would be more than the reader takes; a command's own format is never cut.
    pub fn is_capped(&self, outcome: &Outcome) -> bool {
        match self.look(outcome).shown {
            Shown::In(Format::Json | Format::Jsonl) => true,
            Shown::In(Format::Markdown) => self.served.is_some(),
            Shown::In(Format::Human) | Shown::Raw => false,
        }
    }

    /// Where a program reads the answer, text for people stays off stdout.
    pub fn is_for_programs(&self) -> bool {
        self.file.is_none() && matches!(self.screen.shown, Shown::In(Format::Json | Format::Jsonl))
    }

    /// What is said. An envelope is held to its contract before it leaves.
    pub fn texts(&self, outcome: &Outcome) -> Texts {
        self.said(outcome, check_contract)
    }

    /// The same, to see how long it would be.
    pub fn draft(&self, outcome: &Outcome) -> Texts {
        self.said(outcome, |_, _, _| {})
    }

    fn said(&self, outcome: &Outcome, check: Check) -> Texts {
        let look = self.look(outcome);
        match look.shown {
            Shown::Raw => self.raw(outcome),
            Shown::In(Format::Human) => self.human(outcome),
            Shown::In(Format::Markdown) => Texts { answer: self.markdown(outcome), remarks: Vec::new() },
            Shown::In(Format::Json) => self.json(outcome, look.envelope, check),
            Shown::In(Format::Jsonl) => {
                let lines: Vec<String> = lines::render(outcome, self.stream).iter().map(json_text).collect();
                Texts { answer: lines.join("\n"), remarks: Vec::new() }
            }
        }
    }

    fn human(&self, outcome: &Outcome) -> Texts {
        let mut remarks = if self.quiet { Vec::new() } else { human::warnings(&outcome.answer.warnings) };
        let next = outcome.answer.page.as_ref().and_then(|page| page.next_cursor.as_ref());
        remarks
            .extend(next.filter(|_| !self.quiet).map(|cursor| format!("There is more: --cursor {cursor}")));
        let answer = match (&outcome.answer.completion, outcome.error()) {
            (_, Some(error)) => {
                remarks.push(human::error(&error));
                outcome.failure_data().map(|data| self.described(outcome, data).to_text()).unwrap_or_default()
            }
            (Completion::NotModified, None) => "Not modified.".to_owned(),
            (_, None) => {
                outcome.data().map(|data| self.described(outcome, data).to_text()).unwrap_or_default()
            }
        };
        Texts { answer, remarks }
    }

    fn described(&self, outcome: &Outcome, data: &Value) -> Document {
        match self.is_partial {
            true => Document::of_value(data),
            false => beside::added((outcome.command.describe)(data), &outcome.answer),
        }
    }

    /// The same under a heading: where the data has none of its own, what the command says of itself.
    fn headed(&self, outcome: &Outcome, data: &Value) -> Document {
        let mut document = self.described(outcome, data);
        let said = || outcome.answer.message.clone().unwrap_or_else(|| outcome.command.about.to_owned());
        document.title.get_or_insert_with(said);
        match outcome.answer.page.as_ref().and_then(|page| page.next_cursor.as_ref()) {
            Some(cursor) => document.noting(vec![("more".to_owned(), format!("cursor {cursor}"))]),
            None => document,
        }
    }

    /// A wait that ran out is an answer here, whoever reads it, and what there is to warn of is told.
    fn markdown(&self, outcome: &Outcome) -> String {
        let calls = self.served.as_deref().map_or(Calls::Commands, Calls::Tools);
        let mut text = match (outcome.tool_error(), outcome.data().or(outcome.failure_data())) {
            (Some(error), _) => error_document::described(outcome, &error).to_markdown(calls),
            (None, Some(data)) => self.headed(outcome, data).to_markdown(calls),
            (None, None) => "# Not modified".to_owned(),
        };
        for warning in human::warnings(&outcome.answer.warnings) {
            let note = Document::default().block(Block::Text(warning));
            text = format!("{text}\n\n{}", note.to_markdown(calls));
        }
        text
    }

    fn raw(&self, outcome: &Outcome) -> Texts {
        let mut remarks = if self.quiet { Vec::new() } else { human::warnings(&outcome.answer.warnings) };
        // What a person should know beside it must not stand in it.
        let said = outcome.answer.message.as_ref().filter(|_| self.stderr_is_terminal && !self.quiet);
        remarks.extend(said.map(|words| terminal::sanitize(words).into_owned()));
        if let Some(error) = outcome.error() {
            // Stdout holds the command's own format or nothing; a program finds the envelope on stderr.
            remarks.push(match self.stderr_is_terminal {
                true => human::error(&error),
                false => json_text(&agent::render(outcome)),
            });
        }
        Texts { answer: outcome.answer.raw.clone().unwrap_or_default(), remarks }
    }

    fn json(&self, outcome: &Outcome, envelope: Envelope, check: Check) -> Texts {
        let value = match envelope {
            Envelope::Agent => agent::render(outcome),
            Envelope::Standard => standard::render(outcome),
            Envelope::Tool => tool::render(outcome, &self.tool_prefix),
            Envelope::Raw => return payload_alone(outcome),
        };
        check(envelope, outcome, &value);
        let answer = match envelope {
            Envelope::Standard => harmless_json(&standard::to_text(&value)),
            _ => json_text(&value),
        };
        Texts { answer, remarks: Vec::new() }
    }
}

/// What becomes of an envelope before it is text.
type Check = fn(Envelope, &Outcome, &Value);

/// Without a wrapper there is no place for an error beside the data, so it goes to stderr.
fn payload_alone(outcome: &Outcome) -> Texts {
    let answer = outcome.data().or(outcome.failure_data()).map(json_text).unwrap_or_default();
    let remarks = outcome.error().map(|error| human::error(&error)).into_iter().collect();
    Texts { answer, remarks }
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
