//! Reading a command line: which command, which inputs, and everything that is wrong with the words.
//!
//! clap stops at the first word it does not know. To tell all problems at once, the offending word is noted, replaced
//! by the flag that was probably meant (so that its value is not mistaken for something else) or taken out, and the
//! line is read again.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use delegator_domain::names;
use delegator_transcript::shell;
use serde_json::{Map, Value, json};

use super::globals::{self, Globals};
use super::path::locate;
use super::tree;
use super::unknown::{self, Stray};
use crate::fault::{AppError, ErrorCode, Problem, clipped};
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
    let located = locate(argv);
    let refuse = |error: AppError| Err(Box::new(Unreadable { globals: globals_of(argv), error }));
    if let Some(place) = located.stray {
        let stray = Stray { line: argv, path: &located.path, places: &located.places, place };
        return refuse(unknown::command(stray));
    }
    let mut words = located.in_order(argv);
    let mut problems = Vec::new();
    // Every turn takes a word away or replaces it by one that is known, so this ends.
    for _ in 0..=2 * argv.len() {
        match tree::for_words(&words).try_get_matches_from(&words) {
            Ok(matches) => return Ok(invocation(&matches, problems)),
            Err(error) => problems.push(mend(&error, &mut words, &located.path)),
        }
    }
    refuse(AppError::of_problems(problems))
}

/// Names what is wrong and changes the line so that it can be read on.
fn mend(error: &clap::Error, words: &mut Vec<OsString>, path: &[String]) -> Problem {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let word = text(ContextKind::InvalidArg).or(text(ContextKind::InvalidSubcommand)).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidUtf8 => bad_utf8(words),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => unknown_word(&word, words, path),
        ErrorKind::TooManyValues => flag_with_value(&word, words),
        _ => flag_without_value(&word, words),
    }
}

/// The word stays where it is, readable, so that nothing else takes its place.
fn bad_utf8(words: &mut [OsString]) -> Problem {
    let mut shown = String::new();
    for word in words.iter_mut().filter(|word| word.to_str().is_none()) {
        shown = word.to_string_lossy().into_owned();
        *word = shown.clone().into();
    }
    Problem::new(ErrorCode::InvalidValue, "argument", "is not valid UTF-8").value(shown.into())
}

fn unknown_word(word: &str, words: &mut Vec<OsString>, path: &[String]) -> Problem {
    let typed = word.split('=').next().unwrap_or(word).to_owned();
    let Some(at) = place_of(&typed, words) else {
        // Nothing to take away means nothing to read on with: end here with what is known.
        words.truncate(1 + path.len());
        return Problem::new(ErrorCode::ArgError, quoted(&typed), "is not understood");
    };
    if !typed.starts_with('-') || typed == "-" {
        words.remove(at);
        let suggestion = match typed.as_str() {
            "true" | "false" => format!("Write a switch as --name={typed}."),
            _ => "Quote a text that holds spaces.".to_owned(),
        };
        return Problem::new(ErrorCode::ArgError, quoted(&typed), "is one argument too many")
            .suggest(Some(suggestion));
    }
    let known = unknown::flags_of(path);
    let nearest = names::nearest(&typed, known.iter().map(String::as_str)).map(str::to_owned);
    let nearest = nearest.or_else(|| unknown::meant_flag(&typed, path)).filter(|flag| *flag != typed);
    let problem = Problem::new(ErrorCode::UnknownFlag, clipped(&typed), "is not a flag of this command")
        .suggest(nearest.as_ref().map(|flag| format!("Did you mean {flag}?")));
    let has_own_value = words[at].to_string_lossy().contains('=');
    match nearest {
        Some(flag) => {
            let value = words[at].to_string_lossy()[typed.len()..].to_owned();
            words[at] = format!("{flag}{value}").into();
        }
        None => {
            words.remove(at);
            let value_follows = words.get(at).is_some_and(|next| !next.to_string_lossy().starts_with('-'));
            if value_follows && !has_own_value {
                words.remove(at);
            }
        }
    }
    problem
}

/// Where a word stands, as itself, with a value behind `=`, or as one letter of a cluster such as `-qx`.
fn place_of(typed: &str, words: &[OsString]) -> Option<usize> {
    let with_value = format!("{typed}=");
    let letter = typed.strip_prefix('-').filter(|letter| letter.chars().count() == 1);
    let is_it = |word: &str| {
        let in_cluster = letter.is_some_and(|letter| {
            word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter)
        });
        word == typed || word.starts_with(&with_value) || in_cluster
    };
    words.iter().skip(1).position(|word| word.to_str().is_some_and(is_it)).map(|at| at + 1)
}

fn quoted(word: &str) -> String {
    if word.is_empty() { "''".to_owned() } else { clipped(word) }
}

/// clap names the flag as it shows it in help: `--limit <N>`.
fn flag_named(shown: &str) -> String {
    shown.split([' ', '=', '[']).next().unwrap_or(shown).to_owned()
}

fn remove_flag(flag: &str, words: &mut Vec<OsString>) {
    match place_of(flag, words) {
        Some(at) => drop(words.remove(at)),
        None => words.truncate(1),
    }
}

fn flag_with_value(shown: &str, words: &mut Vec<OsString>) -> Problem {
    let flag = flag_named(shown);
    remove_flag(&flag, words);
    Problem::new(ErrorCode::InvalidValue, flag, "takes no value")
}

fn flag_without_value(shown: &str, words: &mut Vec<OsString>) -> Problem {
    let flag = flag_named(shown);
    remove_flag(&flag, words);
    Problem::new(ErrorCode::MissingArgument, flag, "needs a value")
}

/// The global flags of a line that cannot be read as a whole.
fn globals_of(words: &[OsString]) -> Globals {
    let mut kept = vec![OsString::from(registry::PROGRAM)];
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            break;
        }
        if globals::is_known(&text) {
            kept.push(text.clone().into_owned().into());
            if globals::takes_value(&text) {
                kept.extend(rest.next().map(|value| value.to_string_lossy().into_owned().into()));
            }
        }
    }
    let reader = clap::Command::new(registry::PROGRAM)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(globals::args());
    match reader.try_get_matches_from(kept) {
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
            [only] if property.words && is_line(only) => match shell::split(only) {
                Some(words) if !words.is_empty() => json!(words),
                Some(_) => return Err(problem("is blank")),
                None => return Err(problem("has a quote that is not closed")),
            },
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

/// A command as one text: what a shell would split, and nothing it would do beyond that.
fn is_line(text: &str) -> bool {
    text.contains(char::is_whitespace) && json_text(text, '[').is_none()
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
