//! Validates raw input.
//!
//! The command line and MCP both deliver a JSON object. This module normalizes the names, applies the schema,
//! parses the object into the command's input type, applies the rules of that type, and reports *all*
//! problems together. It must not change anything: a call is confirmed or run only after its input is valid.

mod followers;
mod normalization;
pub mod synonyms;
mod value_forms;
mod violations;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use delegator_domain::task::Mode;
use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::error::suggestion::input_marker;
use crate::error::{AppError, ErrorCode, Problem};
use crate::spec::input_schema::MODE;
use crate::spec::input_type::ParsedInput;
use crate::spec::{CallOrigin, CommandSpec, Input, InputSchema, Marker, PreflightContext, Property, Surface};
pub use normalization::{duplicate_input, snake_case};

/// Object for rarely needed inputs in a tool call; its keys are ordinary inputs.
pub const OPTIONS: &str = "options";
/// Output format: accepted by every call, removed before the command runs.
pub const FORMAT: &str = "format";

/// A valid input: every input is known, in range and allowed in combination.
#[derive(Debug, Clone)]
pub struct ValidInput {
    /// The JSON object, with canonical names and without defaults.
    object: Value,
    parsed: ParsedInput,
}

/// Inputs of one command are equal if their objects are.
impl PartialEq for ValidInput {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl ValidInput {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.object.get(name)
    }

    pub fn into_typed<I: Input>(self) -> Result<I, AppError> {
        let mismatch = |_| AppError::new(ErrorCode::Internal, "The command takes another input type.");
        self.parsed.downcast::<I>().map(Arc::unwrap_or_clone).map_err(mismatch)
    }
}

/// Input schema and compiled validator of a command. Created once per process, because a server validates the
/// same commands again and again.
struct InputValidator {
    inputs: InputSchema,
    /// Compiled on first use; `None` if the schema is invalid.
    validator: OnceLock<Option<Validator>>,
}

impl InputValidator {
    fn of(spec: &CommandSpec, surface: Surface) -> Arc<InputValidator> {
        type Validators = BTreeMap<(&'static [&'static str], Surface), Arc<InputValidator>>;
        static VALIDATORS: Mutex<Validators> = Mutex::new(BTreeMap::new());
        let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
        let create = || {
            let mut inputs = spec.inputs();
            inputs.properties.retain(|input| surface == Surface::CommandLine || !input.has(&Marker::Consent));
            Arc::new(InputValidator { inputs, validator: OnceLock::new() })
        };
        Arc::clone(validators.entry((spec.path, surface)).or_insert_with(create))
    }

    /// Empty input for a command without required inputs is valid; this avoids compiling the schema.
    fn violations(&self, input: &Value, max_mode: Mode) -> Vec<Problem> {
        let has_required = self.inputs.properties.iter().any(|property| property.required);
        if !has_required && input.as_object().is_some_and(Map::is_empty) {
            return Vec::new();
        }
        let validator = self.validator.get_or_init(|| violations::validator(&self.inputs));
        violations::schema_problems(&self.inputs, validator.as_ref(), input, max_mode)
    }
}

/// Validates an input object and reports all problems of the call. Without a preflight context only the
/// values are checked.
pub fn validate(
    spec: &'static CommandSpec,
    object: Map<String, Value>,
    earlier_problems: Vec<Problem>,
    origin: CallOrigin<'_>,
    preflight_context: Option<&PreflightContext<'_>>,
) -> Result<ValidInput, AppError> {
    preflight_context.map_or(Ok(()), |around| (spec.precondition)(around))?;
    let input_validator = InputValidator::of(spec, origin.surface);
    let inputs = &input_validator.inputs;
    let mut problems = earlier_problems;
    let object = normalization::normalize_names(inputs, object, &mut problems);
    let mut input = Value::Object(object);
    normalization::normalize_task_ids(&mut input);
    if origin.surface == Surface::CommandLine {
        normalization::resolve_paths(inputs, &mut input, origin.current_dir);
    }
    if let Some(mode) = preflight_context.and_then(|around| default_mode(inputs, &input, around)) {
        input[MODE] = mode.name().into();
    }
    let is_any_refused = problems.iter().any(|problem| spec.exactly_one_of.contains(&problem.field.as_str()));
    add_new(&mut problems, value_forms::nul_problems(inputs, &input));
    add_new(&mut problems, value_forms::command_problems(inputs, &input));
    add_new(&mut problems, value_forms::name_problems(inputs, &input));
    add_new(&mut problems, followers::follower_problems(inputs, &input));
    let max_mode = match (origin.surface, preflight_context) {
        (Surface::Server, Some(around)) => around.config.settings.max_mode,
        _ => Mode::DangerFullAccess,
    };
    let violations = input_validator.violations(&input, max_mode);
    let violations = match origin.surface {
        Surface::CommandLine => with_example(spec, inputs, violations),
        Surface::Server => violations,
    };
    add_new(&mut problems, violations);
    // An input that was refused before is missing here.
    if !is_any_refused {
        add_new(&mut problems, alternatives_problem(spec, &input, origin.surface));
    }
    let refused: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    let parsed = parse(spec, inputs, &input, &refused);
    if let Ok(parsed) = &parsed {
        let rules = (spec.input.rules)(parsed.as_ref());
        let of_rules = rules.problems();
        let of_rules =
            if origin.surface == Surface::CommandLine { with_last(inputs, of_rules) } else { of_rules };
        add_new(&mut problems, of_rules);
        add_new(&mut problems, rules.confirmation(origin.surface));
        add_new(&mut problems, preflight_context.map(|around| rules.preflight(around)).unwrap_or_default());
    }
    if problems.iter().any(|problem| problem.field == "mode") {
        // The mode is refused anyway.
        problems.retain(|problem| problem.code != ErrorCode::ConfirmationRequired);
    }
    if !problems.is_empty() {
        return Err(AppError::from_problems(problems));
    }
    let invalid = |error| {
        let message = format!("The input is not valid for this command: {error}");
        AppError::new(ErrorCode::InvalidValue, message)
    };
    Ok(ValidInput { object: input, parsed: parsed.map_err(invalid)? })
}

/// The configured mode of a call that names none, if it is not the built-in one.
fn default_mode(inputs: &InputSchema, input: &Value, around: &PreflightContext<'_>) -> Option<Mode> {
    let has_default = inputs.get(MODE).is_some_and(|input| input.has(&Marker::DefaultMode));
    if !has_default || input.get(MODE).is_some() || around.config.settings.default_mode() == Mode::default() {
        return None;
    }
    let given = input.get("working_dir").and_then(Value::as_str).map(Path::new);
    let directory = given.unwrap_or(around.current_dir);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    // No task starts beside an invalid project file, so its mode does not matter.
    let config = around.config.for_work_tree(&directory).ok()?;
    Some(config.settings.default_mode())
}

/// Adds the configured mode to a call that names none, so that a user who is asked sees it.
pub fn state_default_mode(
    spec: &'static CommandSpec,
    object: &mut Map<String, Value>,
    around: &PreflightContext<'_>,
) {
    let inputs = spec.inputs();
    let normalized = normalization::normalize_names(&inputs, object.clone(), &mut Vec::new());
    if let Some(mode) = default_mode(&inputs, &Value::Object(normalized), around) {
        object.insert(MODE.to_owned(), mode.name().into());
    }
}

/// Adds at most one problem per input: the first.
fn add_new(problems: &mut Vec<Problem>, found: impl IntoIterator<Item = Problem>) {
    let reported: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
    problems.extend(found.into_iter().filter(|problem| !reported.contains(&problem.field)));
}

/// Parses the input once. If that fails because inputs are refused, the others are parsed without them, so
/// that their problems are found, too.
fn parse(
    spec: &CommandSpec,
    inputs: &InputSchema,
    input: &Value,
    refused: &[&str],
) -> Result<ParsedInput, serde_json::Error> {
    let parsed = (spec.input.parse)(input);
    let Some(mut others) = input.as_object().filter(|_| parsed.is_err() && !refused.is_empty()).cloned()
    else {
        return parsed;
    };
    for field in refused {
        others.shift_remove(field.split('.').next().unwrap_or(field));
    }
    // What is reported about a placeholder is dropped: the input is reported already.
    for property in inputs.properties.iter().filter(|property| property.required) {
        others.entry(&property.name).or_insert_with(|| property.placeholder());
    }
    (spec.input.parse)(&Value::Object(others))
}

/// Refuses inputs that only the user may give on the command line.
pub fn refuse_command_line_only_inputs(
    spec: &'static CommandSpec,
    input: &ValidInput,
) -> Result<(), AppError> {
    let input_validator = InputValidator::of(spec, Surface::Server);
    let is_given = |property: &&Property| {
        let value = input.get(&property.name).filter(|value| !value.is_null());
        property.has(&Marker::CommandLineOnly) && value.is_some() && value != property.default()
    };
    let problems = input_validator.inputs.properties.iter().filter(is_given).map(|property| {
        let flag = property.name.replace('_', "-");
        let hint = format!("Ask the user to run '{}' in a terminal with --{flag}.", spec.cli_path());
        Problem::new(
            ErrorCode::PolicyBlocked,
            &property.name,
            "may be set only by the user on the command line",
        )
        .suggest(Some(hint))
    });
    let problems: Vec<Problem> = problems.collect();
    if problems.is_empty() { Ok(()) } else { Err(AppError::from_problems(problems)) }
}

/// A call must have exactly one of the alternatives of the command.
fn alternatives_problem(spec: &CommandSpec, input: &Value, surface: Surface) -> Option<Problem> {
    if spec.exactly_one_of.is_empty() {
        return None;
    }
    let inputs = spec.inputs();
    let has_last = inputs.task_input().is_some_and(|task| spec.exactly_one_of.contains(&task.name.as_str()));
    let last = (has_last && surface == Surface::CommandLine).then(|| "--last".to_owned());
    let names: Vec<String> = spec.exactly_one_of.iter().map(|name| input_marker(name)).chain(last).collect();
    let rule = format!("Give either {}.", names.join(" or "));
    let is_empty = |name: &&&str| match input.get(**name) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(items)) => items.is_empty(),
        _ => false,
    };
    // A value of the wrong type counts as given; the schema reports its type.
    let is_given =
        |name: &&&str| !is_empty(name) && input.get(**name).is_some_and(|value| *value != Value::Bool(false));
    let empty = spec.exactly_one_of.iter().find(is_empty);
    let given: Vec<&&str> = spec.exactly_one_of.iter().filter(is_given).collect();
    let problem = match (given.as_slice(), spec.exactly_one_of) {
        ([first, second, ..], _) => {
            let problem = format!("cannot be given together with {}", input_marker(first));
            Problem::invalid(**second, problem)
        }
        ([], [first, others @ ..]) => match empty {
            Some(empty) => Problem::invalid(*empty, "must not be empty"),
            None => {
                let others: Vec<String> = others.iter().map(|name| input_marker(name)).collect();
                let problem = format!("is missing, and so is {}", others.join(", "));
                Problem::new(ErrorCode::MissingArgument, *first, problem)
            }
        },
        _ => return None,
    };
    Some(problem.suggest(Some(rule)))
}

/// Adds `--last` to the hint for a task that is missing by a rule of the command.
fn with_last(inputs: &InputSchema, mut problems: Vec<Problem>) -> Vec<Problem> {
    let task = inputs.task_input().map(|input| input.name.as_str());
    for problem in &mut problems {
        if problem.code == ErrorCode::MissingArgument && task == Some(&problem.field) {
            let hint = problem.suggestion.get_or_insert_default();
            hint.push_str(" Or give --last for the last submission in this directory.");
        }
    }
    problems
}

/// Adds `--last`, or else the first example of the command, to the hint for a missing input.
fn with_example(spec: &CommandSpec, inputs: &InputSchema, problems: Vec<Problem>) -> Vec<Problem> {
    let task = inputs.task_input().map(|input| &input.name);
    let add = |problem: Problem| match (problem.code, &problem.suggestion, spec.examples.first()) {
        (ErrorCode::MissingArgument, Some(_), _) if task == Some(&problem.field) => {
            problem.suggest(Some("Give an id, or --last for the last submission in this directory."))
        }
        (ErrorCode::MissingArgument, Some(hint), Some(example)) => {
            let hint = format!("{hint} Example: {}", example.command);
            problem.suggest(Some(hint))
        }
        _ => problem,
    };
    problems.into_iter().map(add).collect()
}
