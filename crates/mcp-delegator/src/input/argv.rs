//! Parses a command line into a command, its inputs and all problems of the arguments. Validates nothing.
//!
//! clap stops at the first argument it does not know. To report all problems at once, the parser records the
//! unknown argument, replaces it by the flag that was probably intended (so that its value is not taken for
//! something else) or removes it, and parses again.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use delegator_domain::similar_names;
use delegator_domain::task::TaskIdPrefix;
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode, Problem, truncate_text};
use crate::input::guess::UnknownWord;
use crate::input::path::locate;
use crate::input::stdin::TextFile;
use crate::input::{globals, tree, unknown_command, value_flags};
use crate::spec::catalog::Catalog;
use crate::spec::formats::Globals;
use crate::spec::shell::shell_word;
use crate::spec::version::PROGRAM;
use crate::spec::{CommandSpec, InputSchema, Marker, Property, PropertyType};

#[derive(Debug, Default)]
pub struct Invocation {
    pub globals: Globals,
    /// Path of the command. A group, or an empty path, shows help.
    pub path: Vec<String>,
    pub spec: Option<&'static CommandSpec>,
    pub object: Map<String, Value>,
    pub text_files: Vec<TextFile>,
    /// `--last` is given.
    pub last: bool,
    pub problems: Vec<Problem>,
}

/// A command line without a known command. The global flags are known and decide how the error is printed.
#[derive(Debug)]
pub struct ParseFailure {
    pub globals: Globals,
    pub error: AppError,
}

pub fn parse(catalog: Catalog, argv: &[OsString]) -> Result<Invocation, Box<ParseFailure>> {
    let located = locate(catalog, argv);
    let refuse = |error: AppError| Err(Box::new(ParseFailure { globals: parse_globals_only(argv), error }));
    if let Some(index) = located.unknown_word {
        let unknown_word =
            UnknownWord { args: argv, path: &located.path, path_indexes: &located.path_indexes, index };
        return refuse(unknown_command::error_for(catalog, unknown_word));
    }
    let mut args = located.args_with_command_first(argv);
    let mut problems = Vec::new();
    // Each iteration removes an unknown argument or replaces it by a known one, so the loop ends.
    for _ in 0..=2 * argv.len() {
        match tree::for_args(catalog, &args).try_get_matches_from(&args) {
            Ok(matches) => return Ok(build_invocation(catalog, &matches, problems)),
            Err(error) => problems.push(record_and_repair(catalog, &error, &mut args, &located.path)),
        }
    }
    refuse(AppError::from_problems(problems))
}

fn record_and_repair(
    catalog: Catalog,
    error: &clap::Error,
    args: &mut Vec<OsString>,
    path: &[String],
) -> Problem {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let word = text(ContextKind::InvalidArg).or(text(ContextKind::InvalidSubcommand)).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidUtf8 => repair_invalid_utf8(args),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            remove_unknown_arg(catalog, &word, args, path)
        }
        ErrorKind::TooManyValues => remove_flag(&word, args, ErrorCode::InvalidValue, "takes no value"),
        _ => remove_flag(&word, args, ErrorCode::MissingArgument, "needs a value"),
    }
}

/// Replaces the argument by its lossy UTF-8 form. Removing it would shift the other arguments.
fn repair_invalid_utf8(args: &mut [OsString]) -> Problem {
    let mut lossy = String::new();
    for word in args.iter_mut().filter(|word| word.to_str().is_none()) {
        lossy = word.to_string_lossy().into_owned();
        *word = lossy.clone().into();
    }
    Problem::invalid("argument", "is not valid UTF-8").value(lossy.into())
}

fn remove_unknown_arg(catalog: Catalog, word: &str, args: &mut Vec<OsString>, path: &[String]) -> Problem {
    let typed = word.split('=').next().unwrap_or(word).to_owned();
    let Some(at) = find_arg(&typed, args) else {
        // The argument is not on the line, so it cannot be removed: stop parsing after the command path.
        args.truncate(1 + path.len());
        return Problem::new(ErrorCode::ArgError, quote_empty(&typed), "could not be parsed")
            .value(typed.into());
    };
    if !typed.starts_with('-') || typed == "-" {
        args.remove(at);
        let suggestion = match typed.as_str() {
            "true" | "false" => format!("Write a boolean flag as --name={typed}."),
            _ => surplus_value_hint(catalog, args, path),
        };
        return Problem::new(ErrorCode::ArgError, quote_empty(&typed), "is an unexpected argument")
            .value(typed.into())
            .suggest(Some(suggestion));
    }
    let known = unknown_command::flags_of(catalog, path);
    let nearest = similar_names::nearest(&typed, known.iter().map(String::as_str)).map(str::to_owned);
    let nearest = nearest
        .or_else(|| unknown_command::suggest_flag(catalog, &typed, path))
        .filter(|flag| *flag != typed);
    let suggestion = match &nearest {
        Some(flag) => format!("Did you mean {flag}?"),
        None => format!(
            "Run '{}' to list the flags.",
            [&[PROGRAM.to_owned()], path, &["--help".to_owned()]].concat().join(" ")
        ),
    };
    let problem =
        Problem::new(ErrorCode::UnknownFlag, truncate_text(&typed), "is not a flag of this command")
            .value(typed.clone().into())
            .suggest(Some(suggestion));
    let has_own_value = args[at].to_string_lossy().contains('=');
    match nearest {
        Some(flag) => {
            let value = args[at].to_string_lossy()[typed.len()..].to_owned();
            args[at] = format!("{flag}{value}").into();
        }
        None => {
            args.remove(at);
            let value_follows = args.get(at).is_some_and(|next| !next.to_string_lossy().starts_with('-'));
            if value_follows && !has_own_value {
                args.remove(at);
            }
        }
    }
    problem
}

/// What to do about a value for which the command has no position.
fn surplus_value_hint(catalog: Catalog, args: &[OsString], path: &[String]) -> String {
    let properties = catalog.find(path).map(|spec| spec.inputs().properties).unwrap_or_default();
    let given_id = args
        .iter()
        .filter_map(|word| word.to_str())
        .find(|word| word.get(..2) == Some("T-") && word.parse::<TaskIdPrefix>().is_ok());
    match (properties.iter().find(|property| property.has(&Marker::Positional)), given_id) {
        (Some(property), _) if property.is_id() => "This command takes one id.".to_owned(),
        (Some(_), Some(id)) if properties.iter().any(|property| property.name == "task_id") => {
            format!("Give the id as a flag, --task-id {id}, and one text.")
        }
        (Some(_), _) => "Quote a value that contains spaces.".to_owned(),
        (None, _) => "This command takes no value without a flag.".to_owned(),
    }
}

/// Index of an argument: as typed, with `=value`, or as one letter of a cluster such as `-qx`.
fn find_arg(typed: &str, args: &[OsString]) -> Option<usize> {
    let with_value = format!("{typed}=");
    let letter = typed.strip_prefix('-').filter(|letter| letter.chars().count() == 1);
    let is_match = |word: &str| {
        let in_cluster = letter.is_some_and(|letter| {
            word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter)
        });
        word == typed || word.starts_with(&with_value) || in_cluster
    };
    args.iter().skip(1).position(|word| word.to_str().is_some_and(is_match)).map(|at| at + 1)
}

fn quote_empty(word: &str) -> String {
    if word.is_empty() { "''".to_owned() } else { truncate_text(word) }
}

fn remove_flag(clap_name: &str, args: &mut Vec<OsString>, code: ErrorCode, problem: &str) -> Problem {
    // clap appends the value to the name: `--limit <N>`.
    let flag = clap_name.split([' ', '=', '[']).next().unwrap_or(clap_name);
    match find_arg(flag, args) {
        Some(at) => drop(args.remove(at)),
        None => args.truncate(1),
    }
    Problem::new(code, flag, problem)
}

/// Parses only the global flags, for a command line that cannot be parsed completely.
fn parse_globals_only(args: &[OsString]) -> Globals {
    let mut global_args = vec![OsString::from(PROGRAM)];
    let mut remaining = args.iter().skip(1);
    while let Some(word) = remaining.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            break;
        }
        if globals::is_known(&text) {
            global_args.push(text.clone().into_owned().into());
            if globals::takes_value(&text) {
                global_args.extend(remaining.next().map(|value| value.to_string_lossy().into_owned().into()));
            }
        }
    }
    let parser =
        clap::Command::new(PROGRAM).disable_help_flag(true).disable_version_flag(true).args(globals::args());
    match parser.try_get_matches_from(global_args) {
        Ok(matches) => globals::parse(&matches, &mut Vec::new()),
        Err(_) => Globals::default(),
    }
}

fn build_invocation(catalog: Catalog, matches: &ArgMatches, mut problems: Vec<Problem>) -> Invocation {
    let mut path = Vec::new();
    let mut level = matches;
    while let Some((name, subcommand)) = level.subcommand() {
        path.push(name.to_owned());
        level = subcommand;
    }
    // clap propagates global flags downward, so the innermost level has all of them.
    let globals = globals::parse(level, &mut problems);
    let spec = catalog.find(&path);
    let (object, text_files) = match spec.map(CommandSpec::inputs) {
        Some(inputs) => {
            let mut object = collect_inputs(&inputs, level, &mut problems);
            value_flags::add_values(&inputs, level, &mut object, &mut problems);
            (object, collect_text_files(&inputs, level, &mut problems))
        }
        None => Default::default(),
    };
    let last = is_set(level, tree::LAST);
    Invocation { globals, path, spec, object, text_files, last, problems }
}

fn is_set(matches: &ArgMatches, id: &str) -> bool {
    matches.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or(false)
}

fn collect_inputs(
    inputs: &InputSchema,
    matches: &ArgMatches,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let mut object = Map::new();
    let several = several_by_position(inputs, matches);
    let (task, next) = shifted_positions(inputs, matches).unzip();
    for property in &inputs.properties {
        let by_flag = texts(matches, &property.name);
        let value = match several.as_ref().filter(|several| several.list == property.name) {
            Some(several) => {
                let by_position = several.values.iter().cloned().map(Value::from);
                parse_value(property, by_flag).map(|by_flag| match by_flag {
                    Value::Array(by_flag) => by_position.chain(by_flag).collect(),
                    by_flag => by_position.chain([by_flag]).collect(),
                })
            }
            None => {
                let is_listed = several.as_ref().is_some_and(|several| several.property == property.name);
                let by_position = match &property.name {
                    name if is_listed || task.as_ref() == Some(name) => Vec::new(),
                    name if next.as_ref() == Some(name) => {
                        task.iter().flat_map(|task| texts(matches, &tree::positional_id(task))).collect()
                    }
                    name if property.has(&Marker::Positional) => texts(matches, &tree::positional_id(name)),
                    _ => Vec::new(),
                };
                if !by_flag.is_empty() && !by_position.is_empty() {
                    let problem = format!("is given twice, by position and as --{}", property.flag());
                    problems.push(Problem::invalid(&property.name, problem));
                }
                let given = if by_flag.is_empty() { by_position } else { by_flag };
                if given.is_empty() {
                    continue;
                }
                parse_value(property, given)
            }
        };
        match value {
            Ok(value) => drop(object.insert(property.name.clone(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    object
}

/// With `--last` the first value by position belongs to the input after the task: `answer --last allow_once`.
/// Returns the names of both.
fn shifted_positions(inputs: &InputSchema, matches: &ArgMatches) -> Option<(String, String)> {
    let task =
        inputs.task_input().filter(|task| task.has(&Marker::Positional) && is_set(matches, tree::LAST))?;
    let next =
        inputs.properties.iter().find(|input| input.has(&Marker::Positional) && input.name != task.name)?;
    let is_free = texts(matches, &tree::positional_id(&next.name)).is_empty();
    is_free.then(|| (task.name.clone(), next.name.clone()))
}

fn texts(matches: &ArgMatches, id: &str) -> Vec<String> {
    matches.try_get_many::<String>(id).ok().flatten().into_iter().flatten().cloned().collect()
}

/// Values by position that belong to a list input instead of the positional one.
struct SeveralValues {
    property: String,
    list: String,
    values: Vec<String>,
}

/// `wait A B`, or `wait A` together with the flag of the list.
fn several_by_position(inputs: &InputSchema, matches: &ArgMatches) -> Option<SeveralValues> {
    inputs.properties.iter().find_map(|property| {
        let list = property.several()?.to_owned();
        let values = texts(matches, &tree::positional_id(&property.name));
        let is_list = values.len() > 1 || (values.len() == 1 && !texts(matches, &list).is_empty());
        is_list.then(|| SeveralValues { property: property.name.clone(), list, values })
    })
}

fn collect_text_files(
    inputs: &InputSchema,
    matches: &ArgMatches,
    problems: &mut Vec<Problem>,
) -> Vec<TextFile> {
    let mut files = Vec::new();
    for property in inputs.properties.iter().filter(|property| property.has(&Marker::Stdin)) {
        let (flag, given) = (property.file_flag(), texts(matches, &tree::file_id(&property.name)));
        if given.len() > 1 {
            problems.push(Problem::invalid(format!("--{flag}"), "is given more than once"));
        }
        let is_stdin = property.has(&Marker::StdinFlag) && is_set(matches, &tree::stdin_id(&property.name));
        let by_file = given.into_iter().next().map(|path| (flag, path));
        let by_stdin = is_stdin.then(|| ("stdin".to_owned(), "-".to_owned()));
        let input = || property.name.clone();
        files.extend(by_file.into_iter().chain(by_stdin).map(|(flag, path)| TextFile {
            input: input(),
            flag,
            path,
        }));
    }
    files
}

/// The value of one property from at least one text. A value of the wrong type stays a string, which the
/// validator refuses.
pub fn parse_value(property: &Property, texts: Vec<String>) -> Result<Value, Problem> {
    let problem = |message: &str| Problem::invalid(property.name.clone(), message);
    match property.kind {
        PropertyType::List => Ok(match texts.as_slice() {
            [only] if property.has(&Marker::Command) || property.has(&Marker::Names) => {
                parse_json(only, '[').unwrap_or_else(|| only.as_str().into())
            }
            [only] => parse_json(only, '[').unwrap_or_else(|| split_at_commas(property, &texts)),
            _ => split_at_commas(property, &texts),
        }),
        PropertyType::Pairs => parse_pairs(property, &texts),
        _ if texts.len() > 1 => Err(problem("is given more than once")),
        PropertyType::Flag => Ok(match texts[0].as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            other => other.into(),
        }),
        PropertyType::Integer => {
            Ok(texts[0].parse::<i64>().map_or_else(|_| texts[0].clone().into(), Value::from))
        }
        PropertyType::Object => parse_object(property, &texts[0]),
        PropertyType::Text if property.has(&Marker::Follower) => {
            Ok(parse_json(&texts[0], '{').unwrap_or_else(|| texts[0].as_str().into()))
        }
        PropertyType::Text => Ok(texts[0].clone().into()),
    }
}

/// The values of a list. An empty one stays: the validator refuses it.
fn split_at_commas(property: &Property, texts: &[String]) -> Value {
    let separator = |letter: char| property.has(&Marker::CommaSeparated) && letter == ',';
    texts.iter().flat_map(|text| text.split(separator)).collect()
}

fn parse_pairs(property: &Property, texts: &[String]) -> Result<Value, Problem> {
    if let [only] = texts
        && let Some(object) = parse_json(only, '{')
    {
        return Ok(object);
    }
    let mut object = Map::new();
    let separator = |letter: char| property.has(&Marker::CommaSeparated) && letter == ',';
    for text in texts.iter().flat_map(|text| text.split(separator)) {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(
                Problem::invalid(property.name.clone(), "must be written key=value").value(text.into())
            );
        };
        if let Some((first, second)) = value.split_once(',').filter(|(_, second)| second.contains('=')) {
            let flag = property.flag();
            return Err(Problem::invalid(property.name.clone(), "must have one key=value per flag")
                .value(text.into())
                .suggest(Some(format!(
                    "Write --{flag} {} --{flag} {}",
                    shell_word(&format!("{key}={first}")),
                    shell_word(second)
                ))));
        }
        if object.insert(key.to_owned(), value.into()).is_some() {
            return Err(Problem::invalid(property.name.clone(), format!("has the key {key} twice")));
        }
    }
    Ok(Value::Object(object))
}

/// Parses an object: JSON, or the path of a file that contains it.
fn parse_object(property: &Property, text: &str) -> Result<Value, Problem> {
    let problem = |message: String| Problem::invalid(property.name.clone(), message);
    if let Some(object) = parse_json(text, '{') {
        return Ok(object);
    }
    if text.trim_start().starts_with('{') {
        return Err(problem("is not valid JSON".to_owned()));
    }
    let content = std::fs::read_to_string(text)
        .map_err(|error| problem(format!("cannot be read from {text}: {error}")))?;
    serde_json::from_str(&content).map_err(|error| problem(format!("in {text} is not valid JSON: {error}")))
}

fn parse_json(text: &str, opening: char) -> Option<Value> {
    text.trim_start().starts_with(opening).then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(line: &[&str]) -> Invocation {
        let args: Vec<OsString> = ["p"].iter().chain(line).map(OsString::from).collect();
        parse(crate::app::command_list::catalog(), &args).unwrap()
    }

    #[test]
    fn short_flags_give_inputs() {
        let run = parsed(&["run", "x", "-wW", "-a", "claude", "-n2", "-t", "make test", "-C", "/d"]);
        let expected = json!({
            "task": "x", "mode": "workspace-write", "isolation": "worktree", "agent": ["claude"],
            "attempts": 2, "verify": ["make test"], "working_dir": "/d",
        });
        let object = Value::Object(run.object);
        let given = expected.as_object().unwrap();
        for (name, value) in given {
            let is_text = value.as_array().is_some_and(|list| object[name] == list[0]);
            assert!(object[name] == *value || is_text, "{name}: {}", object[name]);
        }
        assert_eq!((object.as_object().unwrap().len(), run.problems.len()), (given.len(), 0));
        assert_eq!(Value::Object(parsed(&["logs", "T", "-fq"]).object)["follow"], json!(true));
        assert_eq!(Value::Object(parsed(&["init", "-y"]).object)["yes"], json!(true));
        assert_eq!(Value::Object(parsed(&["discard", "T", "-y"]).object)["confirm_destructive"], json!(true));
        assert_eq!(Value::Object(parsed(&["run", "x", "--worktree"]).object)["isolation"], json!("worktree"));
    }

    #[test]
    fn a_flag_for_a_value_contradicts_another_value() {
        let both = parsed(&["run", "x", "-w", "--mode", "read-only"]);
        let [problem] = both.problems.as_slice() else { panic!("{:?}", both.problems) };
        assert_eq!((problem.field.as_str(), problem.code), ("mode", ErrorCode::InvalidValue));
        assert_eq!(both.object["mode"], json!("read-only"));
        assert!(parsed(&["run", "x", "-w", "--mode", "workspace-write"]).problems.is_empty());
    }

    #[test]
    fn a_short_flag_exists_only_where_its_input_does() {
        let [problem] = &parsed(&["version", "-w"]).problems[..] else { panic!("-w is no flag of version") };
        assert_eq!((problem.field.as_str(), problem.code), ("-w", ErrorCode::UnknownFlag));
    }
}
