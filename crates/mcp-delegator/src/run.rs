//! One call from its words to its exit code.
//!
//! Read the words, decide how the answer shall look, load the configuration, validate, execute, and say it. Whatever
//! goes wrong on the way, a panic included, becomes an outcome like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use delegator_config::{Config, ConfigError, Sources};
use delegator_domain::redact::Redactor;
use delegator_engine::Shelf;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::cli::argv::{self, Invocation};
use crate::cli::globals::{Format, Globals};
use crate::commands;
use crate::fault::{AppError, ErrorCode, ExitCode, Problem, io_error};
use crate::fitting::{Room, fitting};
use crate::interrupt::{self, Attachment};
use crate::outcome::{Answer, Completion, Outcome, Unit, Warning};
use crate::presentation::{Presentation, Texts};
use crate::process::Process;
use crate::registry::{Circumstances, CommandSpec, ROOT};
use crate::screen::Screen;
use crate::stdout::{Printer, Written};
use crate::views::{cap, fields};
use crate::{logging, payload, requests};

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    CommandLine,
    /// A server. Its standard input carries the protocol or belongs to another program, and a model chose the paths.
    Server,
}

/// What a handler may know.
#[derive(Debug)]
pub struct Context<'a> {
    pub config: &'a Config,
    pub state_dir: Option<PathBuf>,
    pub process: &'a Process,
    pub screen: Screen<'a>,
    pub surface: Surface,
    /// How long a call that stays with a task does so unless it is told: hosts give up after about a minute, people do not.
    pub call_budget: Option<Duration>,
    /// Where a server keeps its connections between calls.
    pub shelf: Shelf,
}

impl Context<'_> {
    pub fn circumstances(&self) -> Circumstances<'_> {
        Circumstances {
            config: self.config,
            current_dir: &self.process.current_dir,
            state_dir: self.state_dir.as_deref(),
        }
    }
}

/// The moment and the identity of a call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    started: Timestamp,
    clock: Instant,
    request_id: Uuid,
}

impl Call {
    pub fn begin() -> Self {
        Call { started: Timestamp::now(), clock: Instant::now(), request_id: Uuid::new_v4() }
    }

    pub fn end(&self, command: &'static CommandSpec, answer: Answer) -> Outcome {
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
    let mut asked = asked(&process);
    let (config, config_error) = configuration(&process, &asked.globals);
    let printer = Arc::new(Printer::new(redactor(&process, &config)));
    let mut presentation =
        Presentation::decide(&process, &asked.globals, (asked.spec, &asked.object), &config);
    silence_panics();
    let (spec, attachment) = (asked.spec, Attachment::default());
    let watched =
        interrupt::watch(Arc::clone(&printer), presentation.clone(), attachment.clone(), move |answer| {
            call.end(spec, answer)
        });
    if let Err(error) = watched {
        printer.remark(&format!("warning: signals cannot be watched: {error}"));
    }
    let logged = start_logging(&process, &printer, &config, &asked.globals);
    let executed = caught(|| {
        let object = gather(&mut asked)?;
        presentation = Presentation::decide(&process, &asked.globals, (spec, &object), &config);
        let screen = Screen { printer: &printer, presentation: &presentation, attachment: &attachment };
        execute(&process, &asked, object, screen, (&config, config_error))
    });
    let mut answer = executed.unwrap_or_else(|error| refuse_secrets(error, &printer).into());
    answer.warnings.extend(logged);
    let (outcome, texts) = finish(&call, spec, answer, &asked.globals, &presentation, &printer);
    say(&printer, &presentation, &outcome, texts)
}

/// A panic is an error like any other.
pub fn caught<T>(work: impl FnOnce() -> Result<T, AppError>) -> Result<T, AppError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// A command that would have to be run as it stands must not hold what cannot be shown.
fn refuse_secrets(error: AppError, printer: &Printer) -> AppError {
    match &error.redirect {
        Some(redirect) if printer.hides(&redirect.command) => {
            AppError { code: ErrorCode::ArgError, redirect: None, ..error }
        }
        _ => error,
    }
}

fn asked(process: &Process) -> Asked {
    let failed = |error: AppError, globals: Globals| Asked {
        spec: &ROOT,
        object: Map::new(),
        problems: Vec::new(),
        globals,
        early: Some(error),
    };
    match caught(|| Ok(argv::read(&process.argv))) {
        Ok(Ok(invocation)) => settle(invocation),
        Ok(Err(unreadable)) => failed(unreadable.error, unreadable.globals),
        Err(error) => failed(error, Globals::default()),
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
    match delegator_config::load_for_call(&sources) {
        Ok(config) => (config, None),
        Err(error) => (Config::defaults(process.cores), Some(error)),
    }
}

/// What the configuration is made from, flags aside.
pub fn sources(process: &Process) -> Sources {
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

/// The whole input: words, standard input, the object that came by file. What it says about the answer's format is
/// taken over.
fn gather(asked: &mut Asked) -> Result<Map<String, Value>, AppError> {
    if let Some(error) = asked.early.take() {
        return Err(error);
    }
    let mut object = std::mem::take(&mut asked.object);
    let from_stdin = payload::fill_from_stdin(asked.spec, &mut object, asked.globals.input_json.as_deref());
    asked.problems.extend(from_stdin?);
    if let Some(source) = &asked.globals.input_json {
        object = payload::merged(source, object)?;
    }
    let format = payload::take_format(&mut object, &Format::ALL, &mut asked.problems);
    asked.globals.format = asked.globals.format.or(format);
    Ok(object)
}

fn execute(
    process: &Process,
    asked: &Asked,
    object: Map<String, Value>,
    screen: Screen<'_>,
    (config, config_error): (&Config, Option<ConfigError>),
) -> Result<Answer, AppError> {
    let (spec, globals) = (asked.spec, &asked.globals);
    let mut problems = asked.problems.clone();
    if !globals.fields.is_empty() {
        problems.extend(fields::unknown(&globals.fields, &commands::manifest::output_schema(spec)));
    }
    problems.extend(globals.output.as_deref().and_then(unwritable));
    // What a configuration would have against it only one that can be read says.
    let state_dir = delegator_config::state_dir(&sources(process));
    let around =
        Circumstances { config, current_dir: &process.current_dir, state_dir: state_dir.as_deref().ok() };
    let around = config_error.is_none().then_some(&around);
    let request = requests::validate(spec, object, problems, around)?;
    if needs_config(spec) {
        config_error.map_or(Ok(()), Err)?;
        state_dir.clone()?;
    }
    tracing::debug!(command = spec.name(), user_file = ?config.user_file, "configuration loaded");
    let (state_dir, shelf) = (state_dir.ok(), Shelf::default());
    let surface = Surface::CommandLine;
    let context = Context { config, state_dir, process, screen, surface, call_budget: None, shelf };
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
fn unwritable(path: &Path) -> Option<Problem> {
    let problem = |words: String| Some(Problem::new(ErrorCode::InvalidValue, "--output", words));
    if path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/') {
        return problem(format!("{} is a directory", path.display()));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
    if !directory.is_dir() {
        return problem(format!("there is no directory {}", directory.display()));
    }
    None
}

fn finish(
    call: &Call,
    spec: &'static CommandSpec,
    mut answer: Answer,
    globals: &Globals,
    presentation: &Presentation,
    printer: &Printer,
) -> (Outcome, Texts) {
    if let (Completion::Done(data), false) = (&mut answer.completion, globals.fields.is_empty()) {
        let absent = fields::absent(data, &globals.fields);
        // Only where nothing was changed can it still be refused.
        if let (Some(path), true) = (absent.first(), spec.is_safe()) {
            let problem =
                Problem::new(ErrorCode::InvalidValue, "--fields", format!("there is no field {path}"));
            answer = AppError::of_problems(vec![problem]).into();
        } else {
            *data = fields::project(data, &globals.fields);
        }
    }
    if globals.strict_warnings && !answer.warnings.is_empty() {
        answer.completion = match answer.completion {
            Completion::Done(data) => Completion::Failed(Box::new(strict(&answer.warnings)), Some(data)),
            Completion::NotModified => Completion::Failed(Box::new(strict(&answer.warnings)), None),
            other => other,
        };
    }
    let most = globals.max_bytes.unwrap_or(cap::DEFAULT_MAX_BYTES);
    fitting(call.end(spec, answer), presentation, Room { most, unit: Unit::Bytes, printer })
}

fn strict(warnings: &[Warning]) -> AppError {
    let first = warnings.first().map(|warning| warning.message.as_str()).unwrap_or_default();
    AppError::new(
        ErrorCode::WarningsAsErrors,
        format!("{} warnings, treated as errors. First: {first}", warnings.len()),
    )
}

/// The answer first, then what else there is to say: a reader who is gone is told nothing.
fn say(printer: &Printer, presentation: &Presentation, outcome: &Outcome, texts: Texts) -> ExitCode {
    let written = match presentation.file_for(outcome) {
        Some(path) => match printer.answer_to_file(path, &texts.answer) {
            Ok(written) => Ok(written),
            Err(error) => {
                let outcome = not_written(outcome, path, &error);
                let texts = presentation.texts(&outcome);
                return say(printer, presentation, &outcome, texts);
            }
        },
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
    outcome.exit()
}

/// The outcome of a call that did its work and could not hand it over.
fn not_written(outcome: &Outcome, path: &Path, error: &std::io::Error) -> Outcome {
    let words = format!("{} cannot be written: {error}", path.display());
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
        _ => ErrorCode::IoError,
    };
    Outcome { answer: AppError::new(code, words).into(), ..outcome.clone() }
}
