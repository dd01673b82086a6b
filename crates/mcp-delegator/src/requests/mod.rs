//! From raw input to a validated call.
//!
//! Every surface hands over the same thing, a JSON object, and every rule is applied here once: spelling variants are
//! folded, the schema and the command's own checks collect *all* problems, and only then is anything refused or run.
//! The command line is one of the surfaces: `cli` turns words into the object and nothing more.

pub mod page;
mod violations;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use delegator_domain::names;
use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::fault::{AppError, ErrorCode, Problem, clipped};
use crate::registry::{Circumstances, CommandSpec, InputSchema, PropertyType};
use crate::views::PRODUCT_VERSION;

/// The container for rarely needed inputs in a tool call; its keys are ordinary inputs.
pub const OPTIONS: &str = "options";

/// A call that may be made: every input known, in range, and allowed together.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The input in its canonical form: aliases resolved, defaults filled in.
    pub input: Value,
}

/// The inputs of a command, ready to be checked. Made once: a server is asked the same things again and again.
struct Gate {
    inputs: InputSchema,
    validator: Option<Validator>,
}

impl Gate {
    fn of(spec: &CommandSpec) -> Arc<Gate> {
        static GATES: Mutex<BTreeMap<&[&str], Arc<Gate>>> = Mutex::new(BTreeMap::new());
        let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            let inputs = spec.inputs();
            Arc::new(Gate { validator: violations::validator(&inputs), inputs })
        };
        Arc::clone(gates.entry(spec.path).or_insert_with(made))
    }
}

/// Checks an input object against its command, collecting all problems of the call. Without circumstances its values
/// alone are judged.
pub fn validate(
    spec: &'static CommandSpec,
    object: Map<String, Value>,
    found_before: Vec<Problem>,
    around: Option<&Circumstances<'_>>,
) -> Result<Request, AppError> {
    let gate = Gate::of(spec);
    let inputs = &gate.inputs;
    let mut problems = found_before;
    let object = fold_spelling(inputs, object, &mut problems);
    let input = Value::Object(object);
    // What is wrong with an input already needs no second opinion.
    let mut add = |found: Vec<Problem>| {
        let named: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
        problems.extend(found.into_iter().filter(|problem| !named.contains(&problem.field)));
    };
    add(violations::of_schema(inputs, gate.validator.as_ref(), &input));
    add((spec.check)(&input));
    add(unbuilt(inputs, &input));
    add(around.map(|around| (spec.look)(&input, around)).unwrap_or_default());
    let problems = without_idle_confirmation(problems);
    if !problems.is_empty() {
        return Err(AppError::of_problems(problems));
    }
    refuse_unavailable(spec)?;
    let input = (spec.canonical)(input).map_err(|error| {
        AppError::new(ErrorCode::InvalidValue, format!("The input does not fit the command: {error}"))
    })?;
    Ok(Request { input })
}

/// A mode that is refused wants nobody's word.
fn without_idle_confirmation(mut problems: Vec<Problem>) -> Vec<Problem> {
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
        format!("'{}' is not available in version {PRODUCT_VERSION}.", spec.words()),
    )
    .suggest("'mcp-delegator manifest' lists what is available.")
    .context("command", spec.name()))
}

fn unbuilt(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let given =
        inputs.properties.iter().filter(|property| property.unbuilt && input.get(&property.name).is_some());
    let words = format!("is not available in version {PRODUCT_VERSION}");
    given
        .map(|property| {
            Problem::new(ErrorCode::Unsupported, &property.name, &words).suggest(Some("Leave it out."))
        })
        .collect()
}

/// Takes `options` apart and folds camelCase into the names of the schema. Mixed spelling is the best-known cause of
/// failed agent calls in this field, so it is accepted; two spellings of one input are not.
fn fold_spelling(
    inputs: &InputSchema,
    mut object: Map<String, Value>,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let nested = match object.shift_remove(OPTIONS) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(nested)) => nested,
        Some(_) => {
            problems.push(Problem::new(ErrorCode::InvalidValue, OPTIONS, "must be an object"));
            Map::new()
        }
    };
    let mut folded: Map<String, Value> = Map::new();
    for (key, value) in object.into_iter().chain(nested) {
        // An input that is explicitly nothing is an input that was not given.
        if value.is_null() {
            continue;
        }
        let name = snake_case(&key);
        if inputs.get(&name).is_none() {
            problems.push(unknown_input(inputs, &key, &name));
        } else if folded.contains_key(&name) {
            problems.push(Problem::new(
                ErrorCode::InvalidValue,
                name,
                format!("is given twice, once as {key}"),
            ));
        } else {
            let value = whole_number(inputs, &name, value);
            folded.insert(name, value);
        }
    }
    folded
}

/// `5.0` is a whole number to JSON, and some writers know no other.
fn whole_number(inputs: &InputSchema, name: &str, value: Value) -> Value {
    let is_integer = inputs.get(name).is_some_and(|property| property.kind == PropertyType::Integer);
    match value.as_f64() {
        Some(number) if is_integer && number.fract() == 0.0 && number.abs() < 9e15 => (number as i64).into(),
        _ => value,
    }
}

fn unknown_input(inputs: &InputSchema, key: &str, name: &str) -> Problem {
    let nearest = names::nearest(name, inputs.names());
    Problem::new(ErrorCode::UnknownFlag, clipped(key), "is not an input of this command")
        .suggest(nearest.map(|name| format!("Did you mean {name}?")))
}

pub fn snake_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 4);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            if !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        } else {
            name.push(if letter == '-' { '_' } else { letter });
        }
    }
    name
}
