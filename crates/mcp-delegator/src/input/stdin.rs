//! Reads input from files and standard input: JSON objects (`--input-json`) and long texts.
//!
//! The size is bounded. This module only reads and merges objects; `validation` validates them.

use std::io::Read;

use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode, Problem};
use crate::input::validation::{FORMAT, OPTIONS, duplicate_input, snake_case};
use crate::spec::formats::Format;
use crate::spec::{CommandSpec, Marker};

/// Upper limit of one input: far more than any valid call needs, far less than would exhaust memory.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Reads `--input-json` and merges the flags into it; flags take precedence.
pub fn merge_input_json(source: &str, flags: Map<String, Value>) -> Result<Map<String, Value>, AppError> {
    let mut object = parse_object(source, &read(source)?)?;
    drop_overridden(&mut object, &flags);
    if let Some(Value::Object(options)) = object.get_mut(OPTIONS) {
        drop_overridden(options, &flags);
    }
    object.extend(flags);
    Ok(object)
}

fn drop_overridden(object: &mut Map<String, Value>, flags: &Map<String, Value>) {
    object.retain(|key, _| !flags.contains_key(&snake_case(key)));
}

fn read(source: &str) -> Result<String, AppError> {
    if source == "-" {
        return read_stdin();
    }
    let unreadable = |error: &std::io::Error| {
        let message = format!("cannot be read: {error}");
        AppError::from(Problem::invalid("--input-json", message).value(source.into()))
    };
    let file = std::fs::File::open(source).map_err(|error| unreadable(&error))?;
    read_bounded(file, source).map_err(|error| error.unwrap_or_else(|error| unreadable(&error)))
}

pub fn read_stdin() -> Result<String, AppError> {
    tracing::debug!("reading standard input");
    read_bounded(std::io::stdin().lock(), "standard input").map_err(|error| {
        error.unwrap_or_else(|error| crate::error::io_error("Reading standard input", &error))
    })
}

/// Reads at most `MAX_BYTES`. `Err(Err(_))` is an I/O error, `Err(Ok(_))` an error about the content.
fn read_bounded(reader: impl Read, name: &str) -> Result<String, Result<AppError, std::io::Error>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Err)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Ok(AppError::new(
            ErrorCode::StdinTooLarge,
            format!("The input in {name} is larger than {MAX_BYTES} bytes."),
        )));
    }
    String::from_utf8(bytes).map_err(|_| {
        Ok(AppError::new(ErrorCode::InvalidJson, format!("The input in {name} is not valid UTF-8.")))
    })
}

fn parse_object(source: &str, text: &str) -> Result<Map<String, Value>, AppError> {
    let name = if source == "-" { "standard input" } else { source };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(AppError::new(ErrorCode::InvalidJson, format!("The JSON in {name} is not an object."))),
        Err(error) => Err(AppError::new(
            ErrorCode::InvalidJson,
            format!("The input in {name} is not valid JSON: {error}"),
        )
        .context("line", error.line())
        .context("column", error.column())),
    }
}

/// Removes `format` from the input, at the top level or in `options`. The allowed formats differ between MCP
/// and the command line.
pub fn take_format(
    object: &mut Map<String, Value>,
    known: &[Format],
    problems: &mut Vec<Problem>,
) -> Option<Format> {
    let top_level = object.shift_remove(FORMAT).filter(|value| !value.is_null());
    let options = object.get_mut(OPTIONS).and_then(Value::as_object_mut);
    let in_options =
        options.and_then(|options| options.shift_remove(FORMAT)).filter(|value| !value.is_null());
    if top_level.is_some() && in_options.is_some() {
        problems.push(duplicate_input(FORMAT, FORMAT, &format!("{OPTIONS}.{FORMAT}")));
    }
    let value = top_level.or(in_options)?;
    let format = value.as_str().and_then(Format::named).filter(|format| known.contains(format));
    if format.is_none() {
        let names: Vec<&str> = known.iter().map(|format| format.name()).collect();
        problems.push(
            Problem::invalid(FORMAT, format!("must be one of {}", names.join(", ")))
                .choose_from(value.as_str().unwrap_or_default(), names.iter().copied())
                .value(value),
        );
    }
    format
}

/// A file that contains the value of an input: `--task-file FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    pub input: String,
    /// Without the hyphens.
    pub flag: String,
    pub path: String,
}

/// Reads the files into the inputs. `-` stays as the value; [`fill_from_stdin`] replaces it.
pub fn fill_from_files(files: Vec<TextFile>, args: &mut Map<String, Value>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        if args.contains_key(&file.input) {
            let message = format!("cannot be given together with {}", file.input);
            problems.push(Problem::invalid(format!("--{}", file.flag), message));
            continue;
        }
        let text = if file.path == "-" { Ok(file.path.clone()) } else { read_text_file(&file) };
        // An input whose file cannot be read is given, so it must not be reported as missing, too.
        let text = text.unwrap_or_else(|problem| {
            problems.push(problem);
            file.path
        });
        args.insert(file.input, text.into());
    }
    problems
}

fn read_text_file(file: &TextFile) -> Result<String, Problem> {
    let refuse = |message: String| {
        let problem = Problem::invalid(format!("--{}", file.flag), message);
        problem.value(file.path.as_str().into())
    };
    let opened = std::fs::File::open(&file.path).map_err(Err);
    match opened.and_then(|opened| read_bounded(opened, &file.path)) {
        Ok(text) if text.is_empty() => Err(refuse(format!("the file {} is empty", file.path))),
        Ok(text) => Ok(text),
        Err(Ok(error)) => Err(refuse(error.message)),
        Err(Err(error)) => Err(refuse(format!("could not read {}: {error}", file.path))),
    }
}

/// Replaces `-` by the content of standard input for inputs that accept it. Only command line arguments can
/// mean that. Standard input can be read only once, so it cannot supply `--input-json` as well.
pub fn fill_from_stdin(
    spec: &CommandSpec,
    args: &mut Map<String, Value>,
    input_json: Option<&str>,
) -> Result<Option<Problem>, AppError> {
    for property in spec.inputs().properties.into_iter().filter(|property| property.has(&Marker::Stdin)) {
        if args.get(&property.name).and_then(Value::as_str) != Some("-") {
            continue;
        }
        if input_json == Some("-") {
            let message = "cannot come from standard input together with --input-json -";
            return Ok(Some(Problem::invalid(property.name, message)));
        }
        args.insert(property.name, read_stdin()?.into());
    }
    Ok(None)
}
