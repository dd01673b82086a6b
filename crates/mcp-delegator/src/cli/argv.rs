//! Reading a command line: which command, which inputs, and everything that is wrong with the words.
//!
//! clap stops at the first word it does not know. To tell all problems at once, the offending word is noted, replaced
//! by the flag that was probably meant (so that its value is not mistaken for something else) or taken out, and the
//! line is read again.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use delegator_domain::names;
use serde_json::{Map, Value, json};

use super::globals::{self, Globals};
use super::{tree, unknown};
use crate::fault::{AppError, ErrorCode, Problem};
use crate::registry::{self, CommandSpec, Property, PropertyType};

/// What a command line asks for.
#[derive(Debug)]
pub struct Invocation {
    pub globals: Globals,
    /// The words of the command, as far as they are known; a group, or nothing, asks for help.
    pub path: Vec<String>,
    pub spec: Option<&'static CommandSpec>,
    pub object: Map<String, Value>,
    pub problems: Vec<Problem>,
}

/// A command line that names no command we have; how to answer is known all the same.
#[derive(Debug)]
pub struct Unreadable {
    pub globals: Globals,
    pub error: AppError,
}

pub fn read(argv: &[OsString]) -> Result<Invocation, Box<Unreadable>> {
    let mut words: Vec<OsString> = argv.to_vec();
    let mut problems = Vec::new();
    // Every turn takes at least one word away or mends it for good, so this ends.
    for _ in 0..=2 * argv.len() {
        match tree::for_words(&words).try_get_matches_from(&words) {
            Ok(matches) => return Ok(invocation(&matches, problems)),
            Err(error) => match mend(&error, &mut words) {
                Mended::Problem(problem) => problems.push(problem),
                Mended::Unreadable(error) => {
                    return Err(Box::new(Unreadable { globals: globals_of(&words), error: *error }));
                }
            },
        }
    }
    let error = AppError::of_problems(problems);
    Err(Box::new(Unreadable { globals: globals_of(argv), error }))
}

enum Mended {
    Problem(Problem),
    Unreadable(Box<AppError>),
}

fn mend(error: &clap::Error, words: &mut Vec<OsString>) -> Mended {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            Mended::Unreadable(Box::new(unknown::command(&word, words)))
        }
        ErrorKind::InvalidUtf8 => {
            let bad = words.iter().position(|word| word.to_str().is_none());
            let shown = bad.map(|at| words.remove(at).to_string_lossy().into_owned()).unwrap_or_default();
            Mended::Problem(
                Problem::new(ErrorCode::InvalidValue, "argument", "is not valid UTF-8").value(shown.into()),
            )
        }
        ErrorKind::UnknownArgument => {
            let word = text(ContextKind::InvalidArg).unwrap_or_default();
            unknown_word(&word, words)
        }
        _ => {
            let flag = text(ContextKind::InvalidArg).unwrap_or_default();
            Mended::Problem(flag_without_value(&flag, words))
        }
    }
}

fn unknown_word(word: &str, words: &mut Vec<OsString>) -> Mended {
    let typed = word.split('=').next().unwrap_or(word).to_owned();
    let Some(at) = words.iter().skip(1).position(|candidate| {
        candidate
            .to_str()
            .is_some_and(|candidate| candidate == word || candidate.starts_with(&format!("{typed}=")))
    }) else {
        // One letter of a cluster such as `-qx`: the whole word goes.
        let at = words.iter().skip(1).position(|candidate| candidate.to_string_lossy().starts_with('-'));
        let shown = at.map(|at| words.remove(at + 1)).unwrap_or_default();
        let shown = shown.to_string_lossy().into_owned();
        return Mended::Problem(Problem::new(ErrorCode::UnknownFlag, shown, "is not a flag of this command"));
    };
    let at = at + 1;
    if !typed.starts_with('-') {
        // A stray word under a group is a command that does not exist; elsewhere it is one argument too many.
        if unknown::is_command_position(words, at) {
            return Mended::Unreadable(Box::new(unknown::command(word, words)));
        }
        words.remove(at);
        return Mended::Problem(
            Problem::new(ErrorCode::ArgError, typed, "is one argument too many")
                .suggest(Some("Quote a text that holds spaces.")),
        );
    }
    let known = unknown::flags_of(words);
    let nearest = names::nearest(&typed, known.iter().map(String::as_str)).map(str::to_owned);
    let problem = Problem::new(ErrorCode::UnknownFlag, typed.clone(), "is not a flag of this command")
        .suggest(nearest.as_ref().map(|flag| format!("Did you mean {flag}?")));
    match nearest {
        Some(flag) => {
            let value = words[at].to_string_lossy()[typed.len()..].to_owned();
            words[at] = format!("{flag}{value}").into();
        }
        None => {
            words.remove(at);
            let value_follows = words.get(at).is_some_and(|next| !next.to_string_lossy().starts_with('-'));
            if value_follows && !typed.contains('=') && at < words.len() && !word.contains('=') {
                words.remove(at);
            }
        }
    }
    Mended::Problem(problem)
}

/// clap names the flag as it shows it in help: `--limit <N>`.
fn flag_without_value(shown: &str, words: &mut Vec<OsString>) -> Problem {
    let flag = shown.split([' ', '=', '[']).next().unwrap_or(shown).to_owned();
    let at = words.iter().rposition(|word| {
        word.to_str().is_some_and(|word| word == flag || word.starts_with(&format!("{flag}=")))
    });
    match at {
        Some(at) => drop(words.remove(at)),
        None => words.truncate(1),
    }
    Problem::new(ErrorCode::MissingArgument, flag, "needs a value")
}

fn globals_of(words: &[OsString]) -> Globals {
    let lenient = clap::Command::new(registry::PROGRAM)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .ignore_errors(true)
        .args(globals::args())
        .arg(clap::Arg::new("rest").num_args(0..).trailing_var_arg(false).allow_hyphen_values(true));
    match lenient.try_get_matches_from(words) {
        Ok(matches) => globals::read(&matches, &mut Vec::new()),
        Err(_) => Globals::default(),
    }
}

fn invocation(matches: &ArgMatches, mut problems: Vec<Problem>) -> Invocation {
    let globals = globals::read(innermost(matches), &mut problems);
    let mut path = Vec::new();
    let mut level = matches;
    while let Some((name, below)) = level.subcommand() {
        path.push(name.to_owned());
        level = below;
    }
    let spec = registry::find(&path.iter().map(String::as_str).collect::<Vec<_>>());
    let object = spec.map(|spec| inputs_of(spec, level, &mut problems)).unwrap_or_default();
    Invocation { globals, path, spec, object, problems }
}

/// Global flags are propagated downward, so the deepest level has them all.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    match matches.subcommand() {
        Some((_, below)) => innermost(below),
        None => matches,
    }
}

fn inputs_of(spec: &CommandSpec, matches: &ArgMatches, problems: &mut Vec<Problem>) -> Map<String, Value> {
    let mut object = Map::new();
    for property in spec.inputs().properties {
        let texts = |id: &str| -> Vec<String> {
            matches.try_get_many::<String>(id).ok().flatten().into_iter().flatten().cloned().collect()
        };
        let by_flag = texts(&property.name);
        let by_position =
            if property.positional { texts(&tree::positional_id(&property.name)) } else { Vec::new() };
        if !by_flag.is_empty() && !by_position.is_empty() {
            problems.push(Problem::new(
                ErrorCode::InvalidValue,
                property.name.clone(),
                format!("is given twice, by position and as --{}", property.flag()),
            ));
        }
        let given = if by_flag.is_empty() { by_position } else { by_flag };
        if given.is_empty() {
            continue;
        }
        match value_of(&property, given) {
            Ok(value) => drop(object.insert(property.name, value)),
            Err(problem) => problems.push(problem),
        }
    }
    object
}

/// One property's value out of its texts. What cannot be read as its type stays a text for the validator to refuse.
fn value_of(property: &Property, texts: Vec<String>) -> Result<Value, Problem> {
    let problem = |words: &str| Problem::new(ErrorCode::InvalidValue, property.name.clone(), words);
    match property.kind {
        PropertyType::List => Ok(match texts.as_slice() {
            [only] => json_text(only, '[').unwrap_or_else(|| json!([only])),
            several => json!(several),
        }),
        PropertyType::Pairs => pairs(property, &texts),
        _ if texts.len() > 1 => Err(problem("is given more than once")),
        PropertyType::Flag => Ok(match texts[0].as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            other => other.into(),
        }),
        PropertyType::Integer => {
            Ok(texts[0].parse::<i64>().map_or_else(|_| texts[0].clone().into(), Value::from))
        }
        PropertyType::Object => object_of(property, &texts[0]),
        PropertyType::Text => Ok(texts[0].clone().into()),
    }
}

fn pairs(property: &Property, texts: &[String]) -> Result<Value, Problem> {
    if let [only] = texts
        && let Some(object) = json_text(only, '{')
    {
        return Ok(object);
    }
    let mut object = Map::new();
    for text in texts {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Problem::new(
                ErrorCode::InvalidValue,
                property.name.clone(),
                "must be written key=value",
            )
            .value(text.clone().into()));
        };
        if object.insert(key.to_owned(), value.into()).is_some() {
            return Err(Problem::new(
                ErrorCode::InvalidValue,
                property.name.clone(),
                format!("has the key {key} twice"),
            ));
        }
    }
    Ok(Value::Object(object))
}

/// An object is given as JSON, or as the path of a file that holds it.
fn object_of(property: &Property, text: &str) -> Result<Value, Problem> {
    let problem = |words: String| Problem::new(ErrorCode::InvalidValue, property.name.clone(), words);
    if let Some(object) = json_text(text, '{') {
        return Ok(object);
    }
    if text.trim_start().starts_with('{') {
        return Err(problem("is not valid JSON".to_owned()));
    }
    let content = std::fs::read_to_string(text)
        .map_err(|error| problem(format!("cannot be read from {text}: {error}")))?;
    serde_json::from_str(&content).map_err(|error| problem(format!("in {text} is not valid JSON: {error}")))
}

fn json_text(text: &str, opening: char) -> Option<Value> {
    text.trim_start().starts_with(opening).then(|| serde_json::from_str(text).ok()).flatten()
}
