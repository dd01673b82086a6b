//! How this call wants its answer, and the answer in that form.

use std::path::{Path, PathBuf};

use delegator_config::Config;
use serde_json::Value;

use crate::cli::globals::{Format, Globals};
use crate::fault::ExitCode;
use crate::outcome::{Completion, Outcome};
use crate::process::Process;
use crate::registry::CommandSpec;
use crate::screen::Items;
use crate::views::envelope_schema::{self, Envelope};
use crate::views::{agent, human, lines, standard, tool};

/// Decided before anything runs, so that even a crash is told in the right words.
#[derive(Debug, Clone)]
pub struct Presentation {
    screen: Look,
    /// A success goes here; a failure is told where the caller looks, and the file keeps what it had.
    file: Option<(PathBuf, Look)>,
    stream: bool,
    pub quiet: bool,
    tool_prefix: String,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
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
    pub fn decide(process: &Process, globals: &Globals, spec: &CommandSpec, config: &Config) -> Self {
        // A configuration that cannot be read still leaves the variable to say how its error shall look.
        let configured = config.envelope().or_else(|| process.variable("MCP_DELEGATOR_ENVELOPE"));
        let chosen = globals.envelope.or_else(|| configured.and_then(Envelope::named));
        let asked_for_json = globals.envelope.is_some() || (spec.raw && !globals.fields.is_empty());
        let shown = |default: Format| match globals.format {
            Some(Format::Human) if spec.raw => Shown::Raw,
            Some(format) => Shown::In(format),
            None if asked_for_json => Shown::In(Format::Json),
            None if spec.raw => Shown::Raw,
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
            tool_prefix: config.tool_prefix().to_owned(),
            stdout_is_terminal: process.stdout_is_terminal,
            stderr_is_terminal: process.stderr_is_terminal,
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

    /// Whether a person watches stderr and nothing else is being drawn there.
    pub fn shows_progress(&self) -> bool {
        let draws_lines = self.stdout_is_terminal && self.file.is_none() && self.screen.shown == Shown::Raw;
        self.stderr_is_terminal && !self.quiet && !draws_lines
    }

    /// Where this outcome is to be written, if not to stdout.
    pub fn file_for(&self, outcome: &Outcome) -> Option<&Path> {
        let (path, _) = self.file.as_ref()?;
        (outcome.exit() == ExitCode::Success).then_some(path)
    }

    fn look(&self, outcome: &Outcome) -> Look {
        match (&self.file, self.file_for(outcome)) {
            (Some((_, look)), Some(_)) => *look,
            _ => self.screen,
        }
    }

    /// Where a program reads the answer, text for people stays off stdout.
    pub fn is_for_programs(&self) -> bool {
        self.file.is_none() && matches!(self.screen.shown, Shown::In(Format::Json | Format::Jsonl))
    }

    pub fn texts(&self, outcome: &Outcome) -> Texts {
        let look = self.look(outcome);
        match look.shown {
            Shown::Raw => self.raw(outcome),
            Shown::In(Format::Human) => self.human(outcome),
            Shown::In(Format::Markdown) => Texts { answer: markdown(outcome), remarks: Vec::new() },
            Shown::In(Format::Json) => self.json(outcome, look.envelope),
            Shown::In(Format::Jsonl) => {
                let lines: Vec<String> =
                    lines::render(outcome, self.stream).iter().map(Value::to_string).collect();
                Texts { answer: lines.join("\n"), remarks: Vec::new() }
            }
        }
    }

    fn human(&self, outcome: &Outcome) -> Texts {
        let mut remarks = if self.quiet { Vec::new() } else { human::warnings(&outcome.answer.warnings) };
        let answer = match (&outcome.answer.completion, outcome.error()) {
            (_, Some(error)) => {
                remarks.push(human::error(&error));
                outcome
                    .failure_data()
                    .map(|data| (outcome.command.describe)(data).to_text())
                    .unwrap_or_default()
            }
            (Completion::NotModified, None) => "Not modified.".to_owned(),
            (_, None) => {
                outcome.data().map(|data| (outcome.command.describe)(data).to_text()).unwrap_or_default()
            }
        };
        Texts { answer, remarks }
    }

    fn raw(&self, outcome: &Outcome) -> Texts {
        let mut remarks = if self.quiet { Vec::new() } else { human::warnings(&outcome.answer.warnings) };
        if let Some(error) = outcome.error() {
            // Stdout holds the command's own format or nothing; a program finds the envelope on stderr.
            remarks.push(match self.stderr_is_terminal {
                true => human::error(&error),
                false => agent::render(outcome).to_string(),
            });
        }
        Texts { answer: outcome.answer.raw.clone().unwrap_or_default(), remarks }
    }

    fn json(&self, outcome: &Outcome, envelope: Envelope) -> Texts {
        let value = match envelope {
            Envelope::Agent => agent::render(outcome),
            Envelope::Standard => standard::render(outcome),
            Envelope::Tool => tool::render(outcome, &self.tool_prefix),
            Envelope::Raw => return payload_alone(outcome),
        };
        check_contract(envelope, outcome, &value);
        let answer = match envelope {
            Envelope::Standard => standard::to_text(&value),
            _ => value.to_string(),
        };
        Texts { answer, remarks: Vec::new() }
    }
}

/// Without a wrapper there is no place for an error beside the data, so it goes to stderr.
fn payload_alone(outcome: &Outcome) -> Texts {
    let answer = outcome.data().or(outcome.failure_data()).map(Value::to_string).unwrap_or_default();
    let remarks = outcome.error().map(|error| human::error(&error)).into_iter().collect();
    Texts { answer, remarks }
}

fn markdown(outcome: &Outcome) -> String {
    match (outcome.error(), outcome.data()) {
        (Some(error), _) => human::error_document(&error).to_markdown(),
        (None, Some(data)) => (outcome.command.describe)(data).to_markdown(),
        (None, None) => "Not modified.".to_owned(),
    }
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
