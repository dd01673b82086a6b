//! One call from its words to its exit code.
//!
//! Read the words, decide how the answer shall look, load the configuration, validate, execute, and say it. Whatever
//! goes wrong on the way, a panic included, becomes an outcome like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use delegator_config::{Config, ConfigError, Sources};
use delegator_domain::redact::Redactor;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::cli::argv::{self, Invocation};
use crate::cli::globals::Globals;
use crate::commands;
use crate::fault::{AppError, ErrorCode, ExitCode, Problem, io_error};
use crate::outcome::{Answer, Completion, Outcome, Warning};
use crate::presentation::Presentation;
use crate::process::Process;
use crate::registry::{CommandSpec, ROOT};
use crate::screen::Screen;
use crate::stdout::{Printer, Written};
use crate::views::{cap, fields};
use crate::{interrupt, logging, payload, requests};

/// What a handler may know.
#[derive(Debug)]
pub struct Context<'a> {
    pub config: &'a Config,
    pub state_dir: Option<PathBuf>,
    pub stdin_is_terminal: bool,
    pub screen: Screen<'a>,
}

/// The moment and the identity of a call.
#[derive(Debug, Clone, Copy)]
struct Call {
    started: Timestamp,
    clock: Instant,
    request_id: Uuid,
}

impl Call {
    fn begin() -> Self {
        Call { started: Timestamp::now(), clock: Instant::now(), request_id: Uuid::new_v4() }
    }

    fn end(&self, command: &'static CommandSpec, answer: Answer) -> Outcome {
        let truncated = None;
        let (started, request_id, duration) = (self.started, self.request_id, self.clock.elapsed());
        Outcome { command, started, emitted: Timestamp::now(), duration, request_id, answer, truncated }
    }
}

/// What the words ask for, settled: which command with which input.
struct Asked {
    spec: &'static CommandSpec,
    object: Map<String, Value>,
    problems: Vec<Problem>,
    globals: Globals,
    /// An answer that needs no command to run.
    early: Option<AppError>,
}

pub fn run(process: Process) -> ExitCode {
    let call = Call::begin();
    let asked = asked(&process);
    let (config, config_error) = configuration(&process, &asked.globals);
    let printer = Arc::new(Printer::new(redactor(&process, &config)));
    let presentation = Presentation::decide(&process, &asked.globals, asked.spec, &config);
    silence_panics();
    let spec = asked.spec;
    let watched =
        interrupt::watch(Arc::clone(&printer), presentation.clone(), move |answer| call.end(spec, answer));
    if let Err(error) = watched {
        printer.remark(&format!("warning: signals cannot be watched: {error}"));
    }
    let globals = asked.globals.clone();
    let logged = start_logging(&process, &printer, &config, &globals);
    let executed = catch_unwind(AssertUnwindSafe(|| {
        let screen = Screen { printer: &printer, presentation: &presentation };
        execute(&process, asked, screen, &config, config_error)
    }));
    let mut answer = match executed {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => error.into(),
        Err(panic) => panicked(panic.as_ref()).into(),
    };
    answer.warnings.extend(logged);
    let outcome = finish(&call, spec, answer, &globals);
    say(&printer, &presentation, &outcome)
}

fn asked(process: &Process) -> Asked {
    match argv::read(&process.argv) {
        Ok(invocation) => settle(invocation),
        Err(unreadable) => Asked {
            spec: &ROOT,
            object: Map::new(),
            problems: Vec::new(),
            globals: unreadable.globals,
            early: Some(unreadable.error),
        },
    }
}

/// `--help`, `--version`, `--schema` and a bare group are other commands in disguise.
fn settle(invocation: Invocation) -> Asked {
    let Invocation { globals, path, spec, object, problems } = invocation;
    let of = |spec: &'static CommandSpec,
              object: Map<String, Value>,
              problems: Vec<Problem>,
              globals: Globals| Asked { spec, object, problems, globals, early: None };
    let words = |key: &str| Map::from_iter([(key.to_owned(), Value::from(path.clone()))]);
    if globals.version {
        return of(&commands::version::SPEC, Map::new(), problems, globals);
    }
    match spec {
        Some(spec) if globals.schema && !globals.help => {
            let name = Map::from_iter([("name".to_owned(), Value::from(spec.name()))]);
            of(&commands::schema::SPEC, name, problems, globals)
        }
        Some(spec) if !globals.help => of(spec, object, problems, globals),
        _ if path.is_empty() => of(&commands::help::SPEC, Map::new(), problems, globals),
        _ => of(&commands::help::SPEC, words("command"), problems, globals),
    }
}

/// The configuration in force. A broken one must not keep its own error from being told, so beside it come the
/// defaults.
fn configuration(process: &Process, globals: &Globals) -> (Config, Option<ConfigError>) {
    let envelope = globals.envelope.map(|envelope| ("envelope".to_owned(), envelope.name().to_owned()));
    let sources = Sources { flags: envelope.into_iter().collect(), ..sources(process) };
    match delegator_config::load(&sources) {
        Ok(config) => (config, None),
        Err(error) => (Config::defaults(process.cores), Some(error)),
    }
}

fn sources(process: &Process) -> Sources {
    Sources {
        environment: process.environment.clone(),
        current_dir: process.current_dir.clone(),
        flags: Vec::new(),
        cores: process.cores,
    }
}

fn redactor(process: &Process, config: &Config) -> Redactor {
    let environment =
        process.environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let secrets = config.settings().filter(|setting| setting.key.secret);
    let secrets: Vec<String> =
        secrets.filter_map(|setting| setting.value_json().as_str().map(str::to_owned)).collect();
    let builder = Redactor::builder().extra_names(config.redact_names()).environment(environment);
    secrets.iter().fold(builder, |builder, secret| builder.secret(secret)).build()
}

fn start_logging(
    process: &Process,
    printer: &Arc<Printer>,
    config: &Config,
    globals: &Globals,
) -> Option<Warning> {
    let filter = process.variable("MCP_DELEGATOR_LOG").unwrap_or(config.log_level());
    let problem = logging::start(printer, filter, globals.log_format).err()?;
    Some(Warning::new("W_CONFIG_002", format!("MCP_DELEGATOR_LOG is not a log filter: {problem}")))
}

/// A panic is told as an outcome; the default hook would write it raw, past the redactor.
fn silence_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic");
    }));
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> AppError {
    let words =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    AppError::new(ErrorCode::Internal, "This is a bug in mcp-delegator.")
        .detail(words.unwrap_or("no message").to_owned())
        .suggest("Run again with MCP_DELEGATOR_LOG=debug and report what it says.")
}

/// Commands that tell how to use the program work whatever the configuration holds.
fn needs_config(spec: &CommandSpec) -> bool {
    !matches!(spec.path, [] | ["help"] | ["version"] | ["completions"] | ["man"])
}

fn execute(
    process: &Process,
    asked: Asked,
    screen: Screen<'_>,
    config: &Config,
    config_error: Option<ConfigError>,
) -> Result<Answer, AppError> {
    let Asked { spec, mut object, mut problems, globals, early } = asked;
    if let Some(error) = early {
        return Err(error);
    }
    if let Some(source) = &globals.input_json {
        object = payload::merged(source, object)?;
    }
    if object.contains_key("format") && spec.inputs().get("format").is_none() {
        payload::take_format(&mut object, &mut problems);
    }
    payload::fill_from_stdin(spec, &mut object)?;
    problems.extend(fields::unknown(&globals.fields, &commands::manifest::output_schema(spec)));
    problems.extend(globals.output.as_deref().and_then(unwritable));
    let request = requests::validate(spec, object, problems)?;
    if let (Some(error), true) = (config_error, needs_config(spec)) {
        return Err(error.into());
    }
    tracing::debug!(command = spec.name(), user_file = ?config.user_file, "configuration loaded");
    let state_dir = delegator_config::state_dir(&sources(process));
    let context =
        Context { config, state_dir: state_dir.ok(), stdin_is_terminal: process.stdin_is_terminal, screen };
    let run = spec
        .run
        .ok_or_else(|| AppError::new(ErrorCode::Internal, "A command without a handler was accepted."))?;
    let mut answer = run(&context, request.input)?;
    if needs_config(spec) {
        answer
            .warnings
            .extend(config.warnings.iter().map(|warning| Warning::new(warning.code, &warning.message)));
    }
    Ok(answer)
}

/// Found out before anything runs, because afterwards it would be too late to refuse.
fn unwritable(path: &std::path::Path) -> Option<Problem> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
    let problem = |words: String| Some(Problem::new(ErrorCode::InvalidValue, "--output", words));
    if path.is_dir() {
        return problem(format!("{} is a directory", path.display()));
    }
    if !directory.is_dir() {
        return problem(format!("there is no directory {}", directory.display()));
    }
    None
}

fn finish(call: &Call, spec: &'static CommandSpec, mut answer: Answer, globals: &Globals) -> Outcome {
    if let (Completion::Done(data), false) = (&mut answer.completion, globals.fields.is_empty()) {
        *data = fields::project(data, &globals.fields);
    }
    let truncated = cap::apply(&mut answer, globals.max_bytes.unwrap_or(cap::DEFAULT_MAX_BYTES));
    if globals.strict_warnings && !answer.warnings.is_empty() {
        answer.completion = match answer.completion {
            Completion::Done(data) => Completion::Failed(Box::new(strict(&answer.warnings)), Some(data)),
            other => other,
        };
    }
    Outcome { truncated, ..call.end(spec, answer) }
}

fn strict(warnings: &[Warning]) -> AppError {
    let first = warnings.first().map(|warning| warning.message.as_str()).unwrap_or_default();
    AppError::new(
        ErrorCode::WarningsAsErrors,
        format!("{} warnings, treated as errors. First: {first}", warnings.len()),
    )
}

/// The answer first, then what else there is to say: a reader who is gone is told nothing.
fn say(printer: &Printer, presentation: &Presentation, outcome: &Outcome) -> ExitCode {
    let texts = presentation.texts(outcome);
    let exit = outcome.exit();
    let written = match presentation.file_for(outcome) {
        Some(path) => printer.answer_to_file(path, &texts.answer),
        None => printer.answer(&texts.answer),
    };
    match written {
        Ok(Written::ReaderGone) => return ExitCode::Success,
        Ok(Written::Whole | Written::TooLate) => {}
        Err(error) => {
            let error = io_error("Writing the answer", &error);
            printer.remark(&crate::views::human::error(&error));
            return error.exit();
        }
    }
    for remark in &texts.remarks {
        printer.remark(remark);
    }
    let help_for_people = outcome.command.path == ["help"] && presentation.is_for_programs();
    if help_for_people && !presentation.quiet {
        printer.remark(outcome.data().and_then(|data| data["text"].as_str()).unwrap_or_default());
    }
    exit
}
