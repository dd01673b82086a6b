//! The clap tree, generated from the command specs.
//!
//! clap only splits the arguments: it accepts any string as a value and requires nothing, so that
//! `validation` sees the whole input and reports all problems together. clap knows the choices only for help
//! and completions.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgGroup, Command, ValueHint};
use clap_complete::ArgValueCompleter;

use crate::input::globals::{self, LenientParser, lenient_choices};
use crate::input::value_flags;
use crate::spec::catalog::{Catalog, group_about};
use crate::spec::input_schema::LAST_HELP;
use crate::spec::tool_schema::description_with_bounds;
use crate::spec::version::PROGRAM;
use crate::spec::{CommandSpec, Marker, Property, PropertyType};

/// clap id of the positional argument of a property; the flag has the property's name.
pub fn positional_id(name: &str) -> String {
    format!("{name}@position")
}

/// clap id of the flag that names a file with the value of a property.
pub fn file_id(name: &str) -> String {
    format!("{name}@file")
}

/// The complete tree, for help, manual pages and completions. Declared commands are included but hidden, and
/// required inputs are marked.
pub fn root(catalog: Catalog) -> Command {
    build_tree(catalog, |spec| mark_required(command_with_inputs(spec), spec))
}

/// The tree for parsing these arguments: commands that they do not mention have no inputs. Building the
/// inputs of all commands takes longer than most calls.
pub fn for_args(catalog: Catalog, args: &[OsString]) -> Command {
    // The last word of a path is in the short path, too.
    let is_mentioned =
        |spec: &CommandSpec| args.iter().any(|word| spec.path.last().is_some_and(|name| word == name));
    build_tree(catalog, |spec| if is_mentioned(spec) { command_with_inputs(spec) } else { command_for(spec) })
}

fn build_tree(catalog: Catalog, build: impl Fn(&'static CommandSpec) -> Command) -> Command {
    let mut root = Command::new(PROGRAM)
        .about("Delegate coding tasks to coding agents and get verified results")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .version(crate::spec::version::PRODUCT_VERSION)
        .after_help(AFTER_HELP)
        .args(globals::args());
    for (path, spec) in catalog.typed_paths() {
        root = add_command(root, build(spec), path);
    }
    root
}

/// What completes the inputs whose values are not in their schema.
#[derive(Debug)]
pub struct Completers {
    pub task_ids: ArgValueCompleter,
    /// Task ids or files.
    pub sources: ArgValueCompleter,
    /// The words of a command, for `help` and `man`.
    pub commands: ArgValueCompleter,
    pub agents: ArgValueCompleter,
}

/// The tree for shell completions: without declared commands and inputs.
/// With `hide_flags` the flags are candidates only where there are no others.
pub fn completable(catalog: Catalog, completers: &Completers, hide_flags: bool) -> Command {
    prune(&root(catalog), &|arg| completable_arg(arg, completers, hide_flags))
}

fn prune(command: &Command, convert: &impl Fn(&Arg) -> Arg) -> Command {
    let visible = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).map(convert))
        .subcommands(visible.map(|subcommand| prune(subcommand, convert)))
}

fn completable_arg(arg: &Arg, completers: &Completers, hide_flags: bool) -> Arg {
    let id = arg.get_id().as_str();
    let completer = match id.trim_end_matches("@position") {
        "task_id" | "task_ids" => Some(&completers.task_ids),
        "source" => Some(&completers.sources),
        "command" => Some(&completers.commands),
        "agent" => Some(&completers.agents),
        _ => None,
    };
    let mut arg = if arg.is_require_equals_set() {
        // The value of a boolean flag is rarely written.

        let help = arg.get_help().cloned().unwrap_or_default();
        Arg::new(id.to_owned())
            .long(arg.get_long().unwrap_or_default().to_owned())
            .short(arg.get_short())
            .help(help)
            .action(ArgAction::SetTrue)
    } else {
        arg.clone()
    };
    if let Some(completer) = completer {
        arg = arg.add(completer.clone());
    }
    let is_flag = !arg.is_positional();
    arg.hide(hide_flags && is_flag).required(false)
}

const AFTER_HELP: &str = "\
Pages: 'mcp-delegator help agents', 'help config', 'help errors', and 'help output' with the options of every command.
Run 'mcp-delegator COMMAND -h' for short help, --help for all of it, or 'mcp-delegator manifest' for a machine-readable list.
In a pipe the output is one line of JSON; on a terminal it is text.";

fn add_command(parent: Command, command: Command, path: &'static [&'static str]) -> Command {
    match path {
        [] | [_] => parent.subcommand(command),
        [group, rest @ ..] => {
            let exists = parent.find_subcommand(group).is_some();
            let parent = if exists { parent } else { parent.subcommand(new_group(group)) };
            parent.mut_subcommand(group, |group| add_command(group, command, rest))
        }
    }
}

fn new_group(name: &'static str) -> Command {
    Command::new(name).about(group_about(&[name])).disable_help_subcommand(true)
}

fn command_for(spec: &'static CommandSpec) -> Command {
    let name = spec.path.last().copied().unwrap_or(PROGRAM);
    let mut command = Command::new(name).about(spec.about);
    let details = spec.full_details();
    if !details.is_empty() {
        command = command.long_about(format!("{}. {details}", spec.about));
    }
    if !spec.examples.is_empty() {
        let examples: Vec<String> = spec
            .examples
            .iter()
            .map(|example| format!("  {}\n      {}", example.command, example.shows))
            .collect();
        command = command.after_help(format!("Examples:\n{}", examples.join("\n")));
    }
    command
}

fn command_with_inputs(spec: &'static CommandSpec) -> Command {
    let mut command = command_for(spec);
    let inputs = spec.inputs();
    for property in &inputs.properties {
        if property.has(&Marker::Positional) {
            command = command.arg(positional_arg(property));
        }
        command = command.arg(flag_arg(property));
        if property.has(&Marker::Stdin) {
            command = command.arg(file_arg(property));
        }
        if property.has(&Marker::StdinFlag) {
            command = command.arg(stdin_arg(property));
        }
    }
    for flag in inputs.value_flags() {
        command = command.arg(value_flags::arg(flag));
    }
    if inputs.task_input().is_some() {
        command = command.arg(last_arg());
    }
    command
}

/// `--task-file FILE`, for a text that is too long or too hard to quote on a command line.
fn file_arg(property: &Property) -> Arg {
    Arg::new(file_id(&property.name))
        .long(property.file_flag())
        .value_name("FILE")
        .help(format!("Read --{} from a file; - reads standard input", property.flag()))
        .value_hint(ValueHint::FilePath)
        .action(ArgAction::Append)
}

/// clap id of `--stdin`, which gives a property.
pub fn stdin_id(name: &str) -> String {
    format!("{name}@stdin")
}

/// `--stdin`: the same as `-` for the text.
fn stdin_arg(property: &Property) -> Arg {
    let id = stdin_id(&property.name);
    Arg::new(id.clone())
        .long("stdin")
        .action(ArgAction::SetTrue)
        .overrides_with(id)
        .help(format!("Read --{} from standard input", property.flag()))
}

/// clap id of `--last`.
pub const LAST: &str = "last";

/// No input of the command: a tool call cannot have it, because a server has no current directory of the
/// user.
fn last_arg() -> Arg {
    Arg::new(LAST).long(LAST).action(ArgAction::SetTrue).overrides_with(LAST).help(LAST_HELP)
}

fn mark_required(mut command: Command, spec: &CommandSpec) -> Command {
    let inputs = spec.inputs();
    let id_of = |property: &Property| {
        if property.has(&Marker::Positional) { positional_id(&property.name) } else { property.name.clone() }
    };
    let task_input = inputs.task_input().filter(|input| !inputs.is_first_of_several(input));
    let task_input = task_input.map(|property| property.name.as_str());
    let mut alternatives: Vec<&str> = spec.exactly_one_of.to_vec();
    // clap refuses an optional positional argument before a required one, and one in a group counts as
    // optional.
    let is_alone = inputs.properties.iter().filter(|property| property.has(&Marker::Positional)).count() == 1;
    for property in inputs.properties.iter().filter(|property| property.required) {
        if task_input == Some(property.name.as_str()) {
            alternatives.push(&property.name);
        } else if property.has(&Marker::Stdin) && is_alone {
            let ways = [id_of(property), file_id(&property.name)];
            let group = ArgGroup::new(format!("{}@text", property.name)).args(ways).required(true);
            command = command.group(group);
        } else {
            command = command.mut_arg(id_of(property), |arg| arg.required(true));
        }
    }
    if alternatives.is_empty() {
        return command;
    }
    let has_task = alternatives.iter().any(|name| task_input == Some(*name));
    let alternatives = alternatives.into_iter().filter_map(|name| inputs.get(name)).map(id_of);
    let last = has_task.then(|| LAST.to_owned());
    command.group(ArgGroup::new("alternatives").args(alternatives.chain(last)).required(true))
}

fn flag_arg(property: &Property) -> Arg {
    let arg = Arg::new(property.name.clone())
        .long(property.flag())
        .short(property.short_flag())
        .help(help_text(property))
        .action(ArgAction::Append)
        .value_parser(value_parser(property))
        .value_hint(value_hint(property))
        .hide_short_help(property.has(&Marker::Advanced) && property.short_flag().is_none());
    let arg = property.former_name().into_iter().fold(arg, |arg, name| arg.alias(name.replace('_', "-")));
    match property.kind {
        PropertyType::Flag => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true)
            .value_name("BOOL"),
        PropertyType::Integer => arg.value_name("N").allow_negative_numbers(true),
        PropertyType::Pairs => arg.value_name("KEY=VALUE"),
        PropertyType::Object => arg.value_name("FILE|JSON"),
        // A task text may be a list of bullet points that begins with a hyphen.
        PropertyType::Text if property.has(&Marker::Stdin) => {
            arg.value_name("TEXT").allow_hyphen_values(true)
        }
        PropertyType::Text | PropertyType::List => arg.value_name(value_name(property)),
    }
}

fn value_name(property: &Property) -> &'static str {
    match property.name.as_str() {
        name if name.ends_with("_dir") || name.ends_with("_dirs") || name == "images" => "PATH",
        name if name.ends_with("_id") || name.ends_with("_ids") => "ID",
        _ if property.has(&Marker::Command) => "COMMAND",
        _ if property.has(&Marker::Follower) => "TEXT|JSON",
        _ => "VALUE",
    }
}

fn value_hint(property: &Property) -> ValueHint {
    match property.name.as_str() {
        name if name.ends_with("_dir") || name.ends_with("_dirs") => ValueHint::DirPath,
        name if name.ends_with("_file") || ["images", "rollout", "bundle"].contains(&name) => {
            ValueHint::FilePath
        }
        _ if property.has(&Marker::Source) || property.kind == PropertyType::Object => ValueHint::FilePath,
        _ => ValueHint::Unknown,
    }
}

fn value_parser(property: &Property) -> LenientParser {
    match property.kind {
        PropertyType::Flag => lenient_choices(&["true", "false"]),
        _ => lenient_choices(&property.choices()),
    }
}

fn positional_arg(property: &Property) -> Arg {
    let note = match (property.has(&Marker::Stdin), property.has(&Marker::Source)) {
        (true, _) => "; - reads standard input (one argument is limited to 128 KiB)",
        (_, true) => "; - or no value reads standard input",
        _ => "",
    };
    let arg = Arg::new(positional_id(&property.name))
        .value_name(property.name.to_uppercase())
        .help(format!("{}{note}", description_with_bounds(property)))
        .value_hint(value_hint(property))
        .value_parser(value_parser(property));
    match property.kind {
        _ if property.several().is_some() => arg.num_args(1..).action(ArgAction::Append),
        PropertyType::List => arg.num_args(1..).action(ArgAction::Append),
        _ => arg,
    }
}

fn help_text(property: &Property) -> String {
    if property.has(&Marker::Positional) {
        let name = property.name.to_uppercase();
        return if property.required { format!("Same as <{name}>") } else { format!("Same as [{name}]") };
    }
    let text = description_with_bounds(property);
    match property.kind {
        _ if property.required => format!("{text} [required]"),
        _ if property.has(&Marker::Command) => format!("{text} [a list: repeat it for each word]"),
        PropertyType::List | PropertyType::Pairs => format!("{text} [repeatable]"),
        _ => text,
    }
}
