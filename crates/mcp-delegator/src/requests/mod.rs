//! From raw input to a validated call.
//!
//! Every surface hands over the same thing, a JSON object, and every rule is applied here once: spelling variants are
//! folded, the schema, the command's own checks and a look at the surroundings collect *all* problems, and only then is
//! anything refused, asked about or run.
//! The command line is one of the surfaces: `cli` turns words into the object and nothing more.

mod nul;
pub mod page;
mod spelling;
pub mod synonyms;
mod violations;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode, Problem};
use crate::spec::{CommandSpec, InputSchema, PreflightContext, Property};
use crate::views::PRODUCT_VERSION;
pub use spelling::{duplicate_input, snake_case};

/// The container for rarely needed inputs in a tool call; its keys are ordinary inputs.
pub const OPTIONS: &str = "options";
/// How the answer shall look: every call may say so, and no command sees it.
pub const FORMAT: &str = "format";

/// A call that may be made: every input known, in range, and allowed together.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The input in its canonical form: aliases resolved, defaults filled in.
    pub input: Value,
}

/// The inputs of a command, ready to be checked. Made once: a server is asked the same things again and again.
struct InputValidator {
    inputs: InputSchema,
    /// Made when first needed; `None` if the schema is broken.
    validator: OnceLock<Option<Validator>>,
}

impl InputValidator {
    fn of(spec: &CommandSpec) -> Arc<InputValidator> {
        static VALIDATORS: Mutex<BTreeMap<&[&str], Arc<InputValidator>>> = Mutex::new(BTreeMap::new());
        let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
        let create = || Arc::new(InputValidator { inputs: spec.inputs(), validator: OnceLock::new() });
        Arc::clone(validators.entry(spec.path).or_insert_with(create))
    }

    /// Where nothing is given and nothing is needed, nothing can be wrong, and no schema has to be understood to see it.
    fn violations(&self, input: &Value) -> Vec<Problem> {
        let has_required = self.inputs.properties.iter().any(|property| property.required);
        if !has_required && input.as_object().is_some_and(Map::is_empty) {
            return Vec::new();
        }
        let validator = self.validator.get_or_init(|| violations::validator(&self.inputs));
        violations::schema_problems(&self.inputs, validator.as_ref(), input)
    }
}

/// Checks an input object against its command, collecting all problems of the call. Without circumstances its values
/// alone are judged.
pub fn validate(
    spec: &'static CommandSpec,
    object: Map<String, Value>,
    earlier_problems: Vec<Problem>,
    preflight_context: Option<&PreflightContext<'_>>,
) -> Result<Request, AppError> {
    let input_validator = InputValidator::of(spec);
    let inputs = &input_validator.inputs;
    let mut problems = earlier_problems;
    let object = spelling::normalize_names(inputs, object, &mut problems);
    let input = Value::Object(object);
    // What is wrong with an input already needs no second opinion.
    let mut add_new = |found: Vec<Problem>| {
        let reported: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
        problems.extend(found.into_iter().filter(|problem| !reported.contains(&problem.field)));
    };
    add_new(nul::nul_problems(inputs, &input));
    add_new(input_validator.violations(&input));
    add_new((spec.check)(&input));
    add_new(unavailable_inputs(inputs, &input));
    add_new(preflight_context.map(|around| (spec.preflight)(&input, around)).unwrap_or_default());
    let problems = without_moot_confirmation(problems);
    if !problems.is_empty() {
        return Err(AppError::from_problems(problems));
    }
    refuse_unavailable(spec)?;
    let input = (spec.canonicalize)(input).map_err(|error| {
        AppError::new(ErrorCode::InvalidValue, format!("The input does not fit the command: {error}"))
    })?;
    Ok(Request { input })
}

/// A mode that is refused wants nobody's word.
fn without_moot_confirmation(mut problems: Vec<Problem>) -> Vec<Problem> {
    if problems.iter().any(|problem| problem.field == "mode") {
        problems.retain(|problem| problem.code != ErrorCode::ConfirmationRequired);
    }
    problems
}

/// Names are settled before rooms are built; using one early is answered honestly.
fn refuse_unavailable(spec: &CommandSpec) -> Result<(), AppError> {
    if spec.is_available() {
        return Ok(());
    }
    Err(AppError::new(
        ErrorCode::Unsupported,
        format!("'{}' is not available in version {PRODUCT_VERSION}.", spec.cli_path()),
    )
    .suggest("'mcp-delegator manifest' lists what is available.")
    .context("command", spec.name()))
}

/// Refuses inputs that only the user may give, on the command line. `input` is a validated one.
pub fn refuse_command_line_only_inputs(spec: &'static CommandSpec, input: &Value) -> Result<(), AppError> {
    let input_validator = InputValidator::of(spec);
    let is_given = |property: &&Property| {
        property.command_line_only
            && input.get(&property.name).is_some_and(|value| *value == Value::Bool(true))
    };
    let problems = input_validator.inputs.properties.iter().filter(is_given).map(|property| {
        let flag = property.name.replace('_', "-");
        let hint = format!("The user can run {} in a terminal with the flag --{flag}.", spec.cli_path());
        Problem::new(ErrorCode::PolicyBlocked, &property.name, "is for the user alone").suggest(Some(hint))
    });
    let problems: Vec<Problem> = problems.collect();
    if problems.is_empty() { Ok(()) } else { Err(AppError::from_problems(problems)) }
}

fn unavailable_inputs(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let given = inputs
        .properties
        .iter()
        .filter(|property| property.unavailable && input.get(&property.name).is_some());
    let message = format!("is not available in version {PRODUCT_VERSION}");
    given
        .map(|property| {
            Problem::new(ErrorCode::Unsupported, &property.name, &message).suggest(Some("Leave it out."))
        })
        .collect()
}
