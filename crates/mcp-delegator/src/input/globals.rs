//! Global flags: accepted by every command. They control the output, not what the command does.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use crate::error::Problem;
use crate::spec::formats::{ColorChoice, Envelope, Format, Globals, HelpLength, LogFormat};

const HEADING: &str = "Output options";

/// The smallest output that still has space for the truncation notice.
const MIN_MAX_BYTES: usize = 4096;

/// A parser that accepts every text, because validation reports all problems together. The choices are used
/// only for help and completions.
#[derive(Debug, Clone)]
pub struct LenientParser(Vec<String>);

pub fn lenient_choices(choices: &[&str]) -> LenientParser {
    LenientParser(choices.iter().map(|choice| (*choice).to_owned()).collect())
}

impl TypedValueParser for LenientParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let invalid = || clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command);
        value.to_str().map(str::to_owned).ok_or_else(invalid)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = self.0.iter().map(PossibleValue::new);
        (!self.0.is_empty()).then(|| Box::new(values) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}

pub fn args() -> Vec<Arg> {
    let arg = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).global(true).help_heading(HEADING).help(help)
    };
    let value = |id: &'static str, name: &'static str, help: &'static str| {
        arg(id, help).value_name(name).action(ArgAction::Append)
    };
    // A repeated boolean flag is accepted.
    let flag =
        |id: &'static str, help: &'static str| arg(id, help).action(ArgAction::SetTrue).overrides_with(id);
    let choice = |id: &'static str, name: &'static str, help: &'static str, names: &[&str]| {
        value(id, name, help).value_parser(lenient_choices(names)).hide_possible_values(true)
    };
    let formats = "human (default on a terminal), markdown, json (default in a pipe), jsonl";
    let envelopes = "JSON envelope: agent (default), standard (default in files), tool, raw";
    let colors = "Colour text: auto (on a terminal, unless NO_COLOR is set), always, never";
    vec![
        choice("format", "FORMAT", formats, &Format::NAMES),
        flag("json", "Same as --format json"),
        choice("envelope", "ENVELOPE", envelopes, &Envelope::NAMES),
        value("fields", "A,B.C", "Print only these fields of the data, comma-separated"),
        value("output", "FILE", "Write the output to a file").value_hint(ValueHint::FilePath),
        value("input-json", "FILE|-", "Read the inputs from a JSON object; flags take precedence")
            .value_hint(ValueHint::FilePath),
        value("max-bytes", "N", "Truncate output larger than this (default 1048576)")
            .allow_negative_numbers(true),
        flag("no-stream", "With jsonl: print one line at the end instead of one per item"),
        flag("strict-warnings", "Treat warnings as errors"),
        flag("quiet", "Print only the result: no progress, no remarks").short('q'),
        choice("color", "WHEN", colors, &ColorChoice::NAMES),
        choice("log-format", "FORMAT", "Format of logs on stderr: text or json", &LogFormat::NAMES),
        flag("schema", "Show the input and output schema of the command instead of running it"),
        flag("short-help", "Show help without details and rarely needed inputs").short('h').long(None),
        flag("help", "Show help"),
        flag("version", "Show the version").short('V'),
    ]
}

pub fn is_global(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(HEADING)
}

/// Whether an argument is a global flag, with or without `=value`.
pub fn is_known(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    match (name.strip_prefix("--"), name.strip_prefix('-')) {
        (Some(long), _) => args().iter().any(|arg| arg.get_long() == Some(long)),
        (None, Some(short)) => {
            let mut letters = short.chars();
            let first = letters.next();
            letters.next().is_none() && args().iter().any(|arg| arg.get_short() == first)
        }
        (None, None) => false,
    }
}

/// Whether an argument is a global flag whose value is the next argument.
pub fn takes_value(word: &str) -> bool {
    let long = word.strip_prefix("--").unwrap_or_default();
    args().iter().any(|arg| arg.get_long() == Some(long) && matches!(arg.get_action(), ArgAction::Append))
}

pub fn parse(matches: &ArgMatches, problems: &mut Vec<Problem>) -> Globals {
    let mut parser = GlobalsParser { matches, problems };
    let json = parser.flag("json");
    let format = parser.choice("format", Format::named, &Format::NAMES);
    if json && format.is_some_and(|format| format != Format::Json) {
        let problem = Problem::invalid("--json", "contradicts --format");
        parser.problems.push(problem.suggest(Some("Give only one of them.")));
    }
    let envelope = parser.choice("envelope", Envelope::from_name, &Envelope::NAMES);
    if format == Some(Format::Jsonl) && envelope.is_some_and(|envelope| envelope != Envelope::Agent) {
        let message = "cannot be combined with --format jsonl, whose last line is always an agent envelope";
        let problem = Problem::invalid("--envelope", message);
        let value = envelope.map(Envelope::name).unwrap_or_default();
        parser.problems.push(problem.value(value.into()).suggest(Some("Omit one of them.")));
    }
    Globals {
        format: if json { Some(Format::Json) } else { format },
        envelope,
        fields: parser.list("fields"),
        output: parser.output(),
        input_json: parser.text("input-json"),
        max_bytes: parser.max_bytes(),
        quiet: parser.flag("quiet"),
        no_stream: parser.flag("no-stream"),
        strict_warnings: parser.flag("strict-warnings"),
        log_format: parser.choice("log-format", LogFormat::from_name, &LogFormat::NAMES).unwrap_or_default(),
        color: parser.choice("color", ColorChoice::from_name, &ColorChoice::NAMES).unwrap_or_default(),
        help: match (parser.flag("help"), parser.flag("short-help")) {
            (true, _) => Some(HelpLength::Long),
            (false, true) => Some(HelpLength::Short),
            (false, false) => None,
        },
        version: parser.flag("version"),
        schema: parser.flag("schema"),
    }
}

struct GlobalsParser<'a> {
    matches: &'a ArgMatches,
    problems: &'a mut Vec<Problem>,
}

impl GlobalsParser<'_> {
    fn flag(&self, id: &str) -> bool {
        self.matches.get_flag(id)
    }

    fn text(&mut self, id: &str) -> Option<String> {
        let mut values = self.matches.get_many::<String>(id)?;
        let first = values.next().cloned();
        if values.next().is_some() {
            self.problems.push(Problem::invalid(format!("--{id}"), "is given more than once"));
        }
        first
    }

    fn list(&mut self, id: &str) -> Vec<String> {
        let values = self.matches.get_many::<String>(id).into_iter().flatten();
        let names: Vec<String> =
            values.flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            self.problems.push(Problem::invalid(format!("--{id}"), "contains an empty name"));
        }
        names.into_iter().filter(|name| !name.is_empty()).collect()
    }

    fn choice<T>(&mut self, id: &str, named: fn(&str) -> Option<T>, names: &[&str]) -> Option<T> {
        let typed = self.text(id)?;
        let found = named(&typed);
        if found.is_none() {
            let message = format!("must be one of {}", names.join(", "));
            self.problems.push(
                Problem::invalid(format!("--{id}"), message)
                    .choose_from(&typed, names.iter().copied())
                    .value(typed.into()),
            );
        }
        found
    }

    /// Refuses `--output json`: other programs use it for `--format json`, and a file named `json` is hardly
    /// intended.
    fn output(&mut self) -> Option<PathBuf> {
        let path = self.text("output")?;
        let suggestion = match path.as_str() {
            "" => None,
            "-" => Some("Omit --output to write to standard output.".to_owned()),
            name if Format::NAMES.contains(&name) => Some(format!("Did you mean --format {name}?")),
            name if Envelope::NAMES.contains(&name) => Some(format!("Did you mean --envelope {name}?")),
            _ => return Some(PathBuf::from(path)),
        };
        let message = if path.is_empty() { "must not be empty" } else { "must be the path of a file" };
        self.problems.push(Problem::invalid("--output", message).value(path.into()).suggest(suggestion));
        None
    }

    fn max_bytes(&mut self) -> Option<usize> {
        let typed = self.text("max-bytes")?;
        let bytes = typed.parse().ok().filter(|bytes| *bytes >= MIN_MAX_BYTES);
        if bytes.is_none() {
            let message = format!("must be an integer of at least {MIN_MAX_BYTES}");
            let problem = Problem::invalid("--max-bytes", message).value(typed.into());
            self.problems.push(problem.permit(format!("Give a number of at least {MIN_MAX_BYTES}.")));
        }
        bytes
    }
}
