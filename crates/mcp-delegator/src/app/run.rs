//! Runs one command line call, from its arguments to its exit code.
//!
//! The steps: parse the arguments, choose the presentation, load the configuration, validate, execute, print.
//! Every error on the way, including a panic, becomes an outcome and is printed like any other.

use std::path::Path;
use std::sync::Arc;

use delegator_config::{Config, ConfigError, SecretText, Sources};
use delegator_domain::redact::Redactor;
use delegator_domain::warning_code::WarningCode;
use delegator_engine::ConnectionPool;
use delegator_fleet::DatabasePool;
use serde_json::{Map, Value};

use crate::app::logging;
use crate::app::signals::{self, FinalOutput};
use crate::commands::context::{Context, sources};
use crate::commands::local::attach::complete;
use crate::commands::local::last_task::{LastRequest, fill_task_input};
use crate::commands::{CommandList, help, schema, terminal_prompt, version};
use crate::error::{AppError, ErrorCode, ExitCode, Problem, catch_panics, io_error};
use crate::input::argv::{self, Invocation};
use crate::input::path::locate;
use crate::input::{stdin, validation};
use crate::output::awaited_task::Attachment;
use crate::output::fields;
use crate::output::outcome::{CallClock, CommandOutput, Completion, Outcome, Warning};
use crate::output::presentation::{Presentation, RenderedOutput};
use crate::output::printer::{Printer, WriteResult};
use crate::output::screen::Screen;
use crate::output::truncation::{DEFAULT_MAX_BYTES, SizeLimit, SizeUnit, truncate_to_fit};
use crate::spec::formats::{Format, Globals, HelpLength};
use crate::spec::process::Process;
use crate::spec::{CallOrigin, CommandSpec, ConfigUse, PreflightContext, ROOT, RawOutput, Surface};

/// A parsed command line with its command resolved.
struct ParsedCall {
    spec: &'static CommandSpec,
    invocation: Invocation,
    /// Set if the command line could not be parsed.
    early_error: Option<AppError>,
}

/// What a service does is of interest at any level.
const SERVICE_LOGS: &str = "mcp_delegator::commands::worker=info";

pub fn run(process: Process, commands: CommandList) -> ExitCode {
    let call = CallClock::begin();
    let mut parsed = parse_call(&process, commands);
    let loaded = configuration(&process, &parsed.invocation.globals);
    let config = &loaded.config;
    let printer = Arc::new(Printer::new(redactor(&process, config)));
    let (spec, attachment) = (parsed.spec, Attachment::default());
    let mut presentation =
        Presentation::decide(&process, &parsed.invocation.globals, spec, &parsed.invocation.object, config);
    install_panic_hook();
    if !spec.is_service {
        let (printer, presentation) = (Arc::clone(&printer), presentation.clone());
        let final_output = FinalOutput { printer: Arc::clone(&printer), presentation, command: spec, call };
        if let Err(error) = signals::watch(attachment.clone(), final_output) {
            printer.remark(&format!("warning: could not install the signal handlers: {error}"));
        }
    }
    let log_warning = start_logging(&process, spec, &printer, config, &parsed.invocation.globals);
    let result = catch_panics(|| {
        let object = collect_input(&mut parsed)?;
        presentation = Presentation::decide(&process, &parsed.invocation.globals, spec, &object, config);
        let screen = Screen { printer: &printer, presentation: &presentation, attachment: &attachment };
        execute(&process, commands, &parsed, object, screen, &loaded)
    });
    let mut output = result.unwrap_or_else(|error| refuse_secrets(error, &printer).into());
    if matches!(spec.config, ConfigUse::Required | ConfigUse::ValidPart) {
        output = output.warn(&config.warnings);
    }
    output.warnings.extend(log_warning);
    let (outcome, rendered) =
        finish(&call, spec, output, &parsed.invocation.globals, &presentation, &printer);
    print_outcome(&printer, &presentation, &outcome, rendered)
}

/// Removes a redirect whose command contains a secret: redaction would make it unusable.
fn refuse_secrets(error: AppError, printer: &Printer) -> AppError {
    match &error.redirect {
        Some(redirect) if printer.contains_secret(&redirect.command) => {
            AppError { code: ErrorCode::ArgError, redirect: None, ..error }
        }
        _ => error,
    }
}

fn parse_call(process: &Process, commands: CommandList) -> ParsedCall {
    let failed = |error: AppError, globals: Globals| ParsedCall {
        spec: protocol_command(process, commands).unwrap_or(&ROOT),
        invocation: Invocation { globals, ..Invocation::default() },
        early_error: Some(error),
    };
    match catch_panics(|| Ok(argv::parse(commands.catalog, &process.argv))) {
        Ok(Ok(invocation)) => resolve_command(invocation),
        Ok(Err(failure)) => failed(failure.error, failure.globals),
        Err(error) => failed(error, Globals::default()),
    }
}

/// The command whose stdout belongs to a protocol, if it is called: an error must not be printed there.
fn protocol_command(process: &Process, commands: CommandList) -> Option<&'static CommandSpec> {
    let called = locate(commands.catalog, &process.argv).spec(commands.catalog);
    called.filter(|spec| spec.raw == RawOutput::Protocol)
}

/// Replaces `--help`, `--version`, `--schema` and a group without a command by the commands `help`, `version`
/// and `schema`.
fn resolve_command(mut invocation: Invocation) -> ParsedCall {
    let Invocation { globals, path, spec, .. } = &mut invocation;
    let with_input = |key: &str, value: Value| Map::from_iter([(key.to_owned(), value)]);
    let (spec, object) = match *spec {
        _ if globals.version => {
            if globals.envelope.is_none() && globals.fields.is_empty() {
                globals.format.get_or_insert(Format::Human);
            }
            (&version::SPEC, Map::new())
        }
        Some(spec) if globals.schema && globals.help.is_none() => {
            (&schema::SPEC, with_input("name", spec.name().into()))
        }
        Some(spec) if globals.help.is_none() => return ParsedCall { spec, invocation, early_error: None },
        _ if path.is_empty() => (&help::SPEC, Map::new()),
        _ => {
            let mut input = with_input("command", path.clone().into());
            input.insert("short".to_owned(), (globals.help == Some(HelpLength::Short)).into());
            (&help::SPEC, input)
        }
    };
    let invocation = Invocation { object, text_files: Vec::new(), ..invocation };
    ParsedCall { spec, invocation, early_error: None }
}

struct LoadedConfig {
    /// The valid part, if there is an error.
    config: Config,
    error: Option<ConfigError>,
}

fn configuration(process: &Process, globals: &Globals) -> LoadedConfig {
    let envelope = globals.envelope.map(|envelope| ("envelope".to_owned(), envelope.name().to_owned()));
    let sources = Sources { flags: envelope.into_iter().collect(), ..sources(process) };
    let loaded = delegator_config::load(&sources).map(|config| (config, None));
    let (config, error) = loaded.unwrap_or_else(|invalid| (invalid.valid_part, Some(invalid.error)));
    let errors = error.into_iter().chain(delegator_config::state_dir(&sources).err());
    let problems: Vec<_> = errors.flat_map(|error| error.problems).collect();
    LoadedConfig { config, error: (!problems.is_empty()).then_some(ConfigError { problems }) }
}

fn redactor(process: &Process, config: &Config) -> Redactor {
    let environment =
        process.environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let secrets = config.sourced().iter().filter(|setting| setting.key.secret);
    let builder = Redactor::builder().extra_names(&config.settings.redact_names).environment(environment);
    // A file that cannot be read fails only the commands that need the database.
    let database_url = config.database_url().ok().flatten();
    let builder = secrets
        .filter_map(|setting| setting.value.as_str())
        .chain(database_url.as_ref().map(SecretText::reveal))
        .fold(builder, |builder, secret| builder.secret(secret));
    // A webhook secret need not look like one.
    let secret_file = config.settings.notify_webhook_secret_file.as_deref();
    let webhook_secret = secret_file.and_then(|path| delegator_engine::read_webhook_secret(path).ok());
    webhook_secret.into_iter().fold(builder, |builder, secret| builder.named_secret(secret)).build()
}

fn start_logging(
    process: &Process,
    spec: &CommandSpec,
    printer: &Arc<Printer>,
    config: &Config,
    globals: &Globals,
) -> Option<Warning> {
    let level = &config.settings.log_level;
    let filter = match (process.variable("MCP_DELEGATOR_LOG"), spec.is_service) {
        (Some(filter), _) => filter.to_owned(),
        (None, true) => format!("{level},{SERVICE_LOGS}"),
        (None, false) => level.clone(),
    };
    let problem = logging::start(printer, &filter, globals.log_format).err()?;
    Some(Warning::new(WarningCode::IgnoredValue, format!("MCP_DELEGATOR_LOG is not a log filter: {problem}")))
}

/// Logs panics instead of printing them: the default hook would write the message to stderr unredacted.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic");
    }));
}

/// Collects the input from arguments, files, standard input and `--input-json`, and applies its `format`.
fn collect_input(parsed: &mut ParsedCall) -> Result<Map<String, Value>, AppError> {
    if let Some(error) = parsed.early_error.take() {
        return Err(error);
    }
    let Invocation { globals, object, text_files, problems, .. } = &mut parsed.invocation;
    let mut object = std::mem::take(object);
    problems.extend(stdin::fill_from_files(std::mem::take(text_files), &mut object));
    problems.extend(stdin::fill_from_stdin(parsed.spec, &mut object, globals.input_json.as_deref())?);
    if let Some(source) = &globals.input_json {
        object = stdin::merge_input_json(source, object)?;
    }
    let format = stdin::take_format(&mut object, Surface::CommandLine.formats(), problems);
    globals.format = globals.format.or(format);
    Ok(object)
}

fn execute(
    process: &Process,
    commands: CommandList,
    parsed: &ParsedCall,
    mut object: Map<String, Value>,
    screen: Screen<'_>,
    loaded: &LoadedConfig,
) -> Result<CommandOutput, AppError> {
    let LoadedConfig { config, error: config_error } = loaded;
    let (spec, globals) = (parsed.spec, &parsed.invocation.globals);
    let mut problems = parsed.invocation.problems.clone();
    if !globals.fields.is_empty() {
        problems.extend(fields::unknown(&globals.fields, &spec.output_schema()));
    }
    problems.extend(globals.output.as_deref().and_then(unwritable));
    let state_dir = delegator_config::state_dir(&sources(process)).ok();
    let context = Context {
        commands,
        config,
        config_error: config_error.as_ref(),
        state_dir: state_dir.clone(),
        process,
        screen,
        surface: Surface::CommandLine,
        call_budget: None,
        connections: if spec.is_service {
            ConnectionPool::of_service()
        } else {
            ConnectionPool::of_command()
        },
        fleet: DatabasePool::default(),
    };
    let last_task = match LastRequest::of(parsed.invocation.last, &context, spec, &object) {
        Some(request) => fill_task_input(&context, spec, request, &mut object, &mut problems),
        None => Ok(None),
    };
    let preflight_context = PreflightContext::new(config, process, state_dir.as_deref());
    // Preflight checks need a valid configuration.
    let preflight_context = config_error.is_none().then_some(&preflight_context);
    let origin = CallOrigin { surface: Surface::CommandLine, current_dir: &process.current_dir };
    let validate = |object| validation::validate(spec, object, problems.clone(), origin, preflight_context);
    let input = match validate(object.clone()) {
        Err(error) if last_task.is_ok() => {
            let consent = terminal_prompt::consent(&context, error)?;
            object.insert(consent, true.into());
            validate(object)?
        }
        input => input?,
    };
    if let Some(question) = last_task? {
        terminal_prompt::require(&context, &question)?;
    }
    let call = (commands.find(spec)?.prepare)(input)?;
    if spec.config == ConfigUse::Required {
        config_error.clone().map_or(Ok(()), Err)?;
    }
    tracing::debug!(command = spec.name(), user_file = ?config.user_file, "configuration loaded");
    let mut output = complete(&context, call.run(&context)?)?;
    if spec.config == ConfigUse::ValidPart {
        output = output.warn(config_error.iter().flat_map(ConfigError::ignored_values));
    }
    Ok(output)
}

/// Checks `--output` before the command runs, because a result that cannot be written would be lost.
fn unwritable(path: &Path) -> Option<Problem> {
    let problem = |message: String| {
        Some(
            Problem::invalid("--output", message)
                .value(path.display().to_string().into())
                .suggest(Some("Give the path of a file in a directory that exists.")),
        )
    };
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
    call: &CallClock,
    spec: &'static CommandSpec,
    mut output: CommandOutput,
    globals: &Globals,
    presentation: &Presentation,
    printer: &Printer,
) -> (Outcome, RenderedOutput) {
    if !globals.fields.is_empty() {
        select_fields(spec, &mut output, &globals.fields);
    }
    let is_success = matches!(output.completion, Completion::Done | Completion::NotModified);
    if globals.strict_warnings && is_success && !output.warnings.is_empty() {
        output.completion = Completion::Failed(Box::new(warnings_error(&output.warnings)));
    }
    if let Some(error) = output.completion.error_mut() {
        presentation.call_syntax().name_inputs_of(error);
    }
    let max_bytes = globals.max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
    truncate_to_fit(
        call.end(spec, output),
        presentation,
        SizeLimit { max_size: max_bytes, unit: SizeUnit::Bytes, printer },
    )
}

/// Reduces the data of any result to these fields.
fn select_fields(spec: &CommandSpec, output: &mut CommandOutput, paths: &[String]) {
    let is_done = matches!(output.completion, Completion::Done);
    let Some(data) = &mut output.data else { return };
    let json = data.to_json();
    let absent = fields::absent(&json, paths);
    match absent.first() {
        // A failure has its own error, and after a command that changed something it is too late for one.
        Some(path) if is_done && spec.is_safe() => {
            let problem = Problem::invalid("--fields", format!("there is no field {path}"))
                .value((*path).into())
                .suggest(Some("Run the command without --fields to see the fields of its data."));
            *output = AppError::from(problem).into();
        }
        _ => {
            data.select(paths);
            output.selected_fields = paths.to_vec();
            output.update_cursors();
        }
    }
}

fn warnings_error(warnings: &[Warning]) -> AppError {
    let first = warnings.first().map(|warning| warning.message.as_str()).unwrap_or_default();
    let count = format!("{} warnings, treated as errors", warnings.len());
    AppError::summarizing(ErrorCode::WarningsAsErrors, count, first.to_owned())
}

/// Prints the output, then the remarks. If the reader has closed the pipe, nothing more is printed.
fn print_outcome(
    printer: &Printer,
    presentation: &Presentation,
    outcome: &Outcome,
    rendered: RenderedOutput,
) -> ExitCode {
    let written = match presentation.file_for(outcome) {
        Some(path) => match printer.print_final_to_file(path, &rendered.body) {
            Ok(written) => Ok(written),
            Err(error) => {
                let outcome = not_written(outcome, path, &error);
                let rendered = presentation.render(&outcome);
                return print_outcome(printer, presentation, &outcome, rendered);
            }
        },
        None => match presentation.pager_for(outcome) {
            Some(pager) => printer.print_final_paged(&rendered.body, pager),
            None => printer.print_final(&rendered.body),
        },
    };
    match written {
        Ok(WriteResult::ReaderGone) => return ExitCode::Success,
        Ok(WriteResult::Complete | WriteResult::AlreadyFinished) => {}
        Err(error) => {
            let error = io_error("Writing the output", &error);
            printer.remark(&presentation.error_text(&error));
            return error.exit();
        }
    }
    for remark in &rendered.remarks {
        printer.remark(remark);
    }
    let repeat_help_on_stderr = outcome.command.path == ["help"] && presentation.is_for_programs();
    if repeat_help_on_stderr && !presentation.quiet {
        printer.remark(outcome.output.raw.as_deref().unwrap_or_default());
    }
    outcome.exit()
}

/// The outcome of a call that succeeded but whose output could not be written.
fn not_written(outcome: &Outcome, path: &Path, error: &std::io::Error) -> Outcome {
    let message = format!("Could not write {}: {error}", path.display());
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
        _ => ErrorCode::IoError,
    };
    Outcome { output: AppError::new(code, message).into(), ..outcome.clone() }
}
