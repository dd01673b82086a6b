//! Renders help from the same clap tree that parses the command line.

use std::ffi::OsString;

use clap::Command;
use textwrap::core::{Word, display_width};
use textwrap::wrap_algorithms::wrap_first_fit;

use crate::error::AppError;
use crate::input::guess::UnknownWord;
use crate::input::{globals, tree, unknown_command};
use crate::spec::catalog::Catalog;
use crate::spec::formats::HelpLength;
use crate::spec::version::PROGRAM;

pub fn command_at(catalog: Catalog, caller: &str, path: &[String]) -> Result<Command, AppError> {
    // `build` fills in usage lines and inherited flags.
    let mut command = tree::root(catalog);
    command.build();
    for (at, word) in path.iter().enumerate() {
        match command.find_subcommand(word) {
            Some(subcommand) => command = subcommand.clone(),
            None => {
                let given = path.iter().map(String::as_str);
                let path_indexes: Vec<usize> = (2..at + 2).collect();
                let args: Vec<OsString> =
                    [PROGRAM, caller].into_iter().chain(given).map(Into::into).collect();
                return Err(unknown_command::error_for(
                    catalog,
                    UnknownWord {
                        args: &args,
                        path: &path[..at],
                        path_indexes: &path_indexes,
                        index: at + 2,
                    },
                ));
            }
        }
    }
    Ok(command)
}

/// The widest help, also on a wide terminal: longer lines are hard to read.
const MAX_COLUMNS: usize = 100;

/// Renders help with one line per flag, without the output options, which every command has. On a terminal no
/// line is longer than `columns`.
pub fn render_help(command: &Command, length: HelpLength, columns: Option<usize>) -> String {
    let long_about = command.get_long_about().filter(|_| length == HelpLength::Long);
    let about = long_about.or(command.get_about()).cloned().unwrap_or_default();
    let columns = columns.unwrap_or(MAX_COLUMNS).min(MAX_COLUMNS);
    let usage = command.clone().render_usage().to_string();
    let usage = wrap_usage(usage.trim_start_matches(USAGE), columns);
    let mut shown = command.clone().about(about).override_usage(usage).term_width(columns);
    shown = shown.mut_args(|arg| {
        let is_rare = arg.is_hide_short_help_set();
        let is_hidden =
            arg.is_hide_set() || globals::is_global(&arg) || (length == HelpLength::Short && is_rare);
        arg.hide(is_hidden).hide_short_help(false)
    });
    if command.get_name() == PROGRAM {
        shown = shown.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}",
            groups(command, columns)
        ));
    } else if let Some(examples) = command.get_after_help() {
        shown = match length {
            HelpLength::Short => {
                shown.after_help(format!("More: {} --help", command.get_bin_name().unwrap_or_default()))
            }
            HelpLength::Long => shown.after_help(wrap_examples(&examples.to_string(), columns)),
        };
    }
    shown.render_help().to_string()
}

/// The options that every command has.
pub fn output_options(columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(MAX_COLUMNS).min(MAX_COLUMNS);
    let mut shown = Command::new(PROGRAM)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(globals::args())
        .help_template("{options}")
        .term_width(columns);
    format!("Options of every command:\n{}", shown.render_help().to_string().trim_end())
}

/// The commands as the help of the program lists them: what matters every day first.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Every day", &["run", "exec", "status", "wait", "results", "diff", "apply", "undo", "resume", "logs"]),
    (
        "Tasks",
        &[
            "watch",
            "dashboard",
            "show",
            "history",
            "retry",
            "review",
            "cancel",
            "send",
            "answer",
            "discard",
            "restore",
            "queue",
            "read",
        ],
    ),
    (
        "Setup and upkeep",
        &[
            "init",
            "agents",
            "config",
            "setup",
            "doctor",
            "demo",
            "notify",
            "usage",
            "worktrees",
            "import",
            "cleanup-registry",
        ],
    ),
    ("Other machines", &["cloud", "env", "fleet", "worker"]),
    (
        "For programs",
        &["serve", "local", "events", "schema", "manifest", "completions", "man", "version", "help"],
    ),
];

fn groups(root: &Command, columns: usize) -> String {
    const INDENT: usize = 20;
    let indent = " ".repeat(INDENT);
    let entry = |name: &&str| {
        let about = root.find_subcommand(name)?.get_about()?.to_string();
        let options = textwrap::Options::new(columns).subsequent_indent(&indent);
        Some(textwrap::fill(&format!("  {name:<width$}{about}", width = INDENT - 2), options) + "\n")
    };
    let group = |(title, names): &(&str, &[&str])| {
        let entries: String = names.iter().filter_map(entry).collect();
        format!("{title}:\n{entries}\n")
    };
    GROUPS.iter().map(group).collect::<String>().trim_end().to_owned()
}

/// clap writes it before the usage.
const USAGE: &str = "Usage: ";

/// clap does not wrap the usage. Arguments stay whole; only alternatives that do not fit in a line are split,
/// behind `|`.
fn wrap_usage(usage: &str, columns: usize) -> String {
    let width = columns.saturating_sub(USAGE.len());
    let mut words: Vec<Word<'_>> = Vec::new();
    for argument in split_after(usage, ' ', 0) {
        if argument.len() > width {
            words.extend(split_after(argument, '|', 1).into_iter().map(Word::from))
        } else {
            words.push(Word::from(argument))
        }
    }
    let indent = format!("\n{}", " ".repeat(USAGE.len()));
    fill(&words, width).join(&indent)
}

fn fill(words: &[Word<'_>], columns: usize) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a terminal has few columns")]
    let lines = wrap_first_fit(words, &[columns as f64]);
    let text = |line: &[Word<'_>]| {
        let text: String = line.iter().flat_map(|word| [word.word, word.whitespace]).collect();
        text.trim_end().to_owned()
    };
    lines.into_iter().map(text).collect()
}

/// The indent of the command of an example; what it shows is indented more.
const EXAMPLE_INDENT: &str = "  ";

/// A command that does not fit in a line continues in the next one as a shell reads it, so that it can be
/// copied.
fn wrap_examples(examples: &str, columns: usize) -> String {
    const CONTINUATION: &str = " \\\n      ";
    let wrap = |line: &str| {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if display_width(line) > columns && indent == EXAMPLE_INDENT {
            let words: Vec<Word<'_>> = split_words(text).into_iter().map(Word::from).collect();
            let longest_line = columns.saturating_sub(CONTINUATION.len());
            format!("{indent}{}", fill(&words, longest_line).join(CONTINUATION))
        } else {
            line.to_owned()
        }
    };
    examples.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// Splits behind each space that is not quoted.
fn split_words(text: &str) -> Vec<&str> {
    let mut is_quoted = false;
    text.split_inclusive(|letter: char| {
        is_quoted ^= letter == '\'';
        letter == ' ' && !is_quoted
    })
    .collect()
}

/// Splits behind each `separator` that is inside this many brackets.
fn split_after(text: &str, separator: char, depth: usize) -> Vec<&str> {
    let (mut parts, mut start, mut open) = (Vec::new(), 0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '[' => open += 1,
            '>' | ']' => open = open.saturating_sub(1),
            _ if letter == separator && open == depth => {
                parts.push(&text[start..=at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let root = tree::root(crate::app::command_list::catalog());
        let visible = root.get_subcommands().filter(|command| !command.is_hide_set());
        let mut commands: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(commands, grouped);
        assert_eq!(GROUPS[0].1.len(), 10, "the first group is short");
    }

    #[test]
    fn usage_is_wrapped_between_arguments() {
        let usage = "p wait [OPTIONS] <ID|--ids <ID>|--last> [X]";
        assert_eq!(wrap_usage(usage, 100), usage);
        let wrapped = "p wait [OPTIONS]\n       <ID|--ids <ID>|--last>\n       [X]";
        assert_eq!(wrap_usage(usage, 30), wrapped);
        let split = "p wait [OPTIONS]\n       <ID|--ids <ID>|\n       --last> [X]";
        assert_eq!(wrap_usage(usage, 23), split);
    }

    #[test]
    fn a_long_example_continues_as_a_shell_reads_it() {
        let examples =
            "Examples:\n  mcp-delegator run 'fix the test' --mode workspace-write\n      what it shows";
        assert_eq!(wrap_examples(examples, 80), examples);
        let wrapped = "Examples:\n  mcp-delegator run 'fix the test' \\\n      --mode workspace-write\n      what it shows";
        assert_eq!(wrap_examples(examples, 44), wrapped);
    }
}
