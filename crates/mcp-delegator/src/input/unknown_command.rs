//! Errors for unknown commands and flags, with a suggestion or a redirect.
//!
//! A redirect (exit 13) names the command line to run instead; it is never executed. It is given only for a
//! former name, a command of another group and a typo of one letter, if the command is not destructive;
//! otherwise the error is a plain suggestion (exit 2). `app::run` removes a redirect that would repeat a
//! secret.

use std::ffi::OsString;

use delegator_domain::similar_names;

use crate::error::{AppError, ErrorCode, Redirect, truncate_text};
use crate::input::guess::{self, Guess, UnknownWord};
use crate::input::path::locate;
use crate::input::tree;
use crate::input::validation::{snake_case, synonyms};
use crate::spec::catalog::Catalog;
use crate::spec::shell::shell_word;
use crate::spec::version::PROGRAM;
use crate::spec::{CommandSpec, Danger};

pub fn flags_of(catalog: Catalog, path: &[String]) -> Vec<String> {
    let mut level = tree::root(catalog);
    let mut flags = long_flags(&level);
    for name in path {
        if let Some(subcommand) = level.find_subcommand(name) {
            level = subcommand.clone();
            flags.extend(long_flags(&level));
        }
    }
    flags
}

/// The flag for a name that other tools use (see `validation::synonyms`).
pub fn suggest_flag(catalog: Catalog, typed: &str, path: &[String]) -> Option<String> {
    let inputs = catalog.find(path)?.inputs();
    let intended = synonyms::intended_input(&snake_case(typed.trim_start_matches('-')), &inputs)?;
    inputs.get(intended).map(|property| format!("--{}", property.flag()))
}

fn long_flags(command: &clap::Command) -> Vec<String> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
        .collect()
}

pub fn error_for(catalog: Catalog, unknown_word: UnknownWord<'_>) -> AppError {
    let word = unknown_word.word();
    let typed: Vec<&str> = unknown_word.path.iter().map(String::as_str).chain([word.as_str()]).collect();
    let display = truncate_text(&typed.join(" "));
    if let [word] = typed.as_slice()
        && let Some(spec) = catalog.iter().find(|spec| spec.former_names.contains(word))
    {
        return former_name_error(catalog, spec, &display, unknown_word);
    }
    let message = format!("There is no command '{display}'.");
    let error = |suggestion: String| {
        AppError::new(ErrorCode::ArgError, message.clone())
            .context("typed", display.clone())
            .suggest(suggestion)
    };
    match guess::guess(catalog, unknown_word) {
        Guess::Commands(paths) => match paths.as_slice() {
            [only] => typo_error(catalog, &message, only, unknown_word),
            several => {
                let names: Vec<String> = several.iter().map(|path| format!("'{}'", path.join(" "))).collect();
                error(format!("Did you mean {}?", names.join(" or ")))
            }
        },
        Guess::TaskText(text) => error(format!("To delegate a task: {PROGRAM} run {}", shell_word(&text))),
        Guess::TaskId(id) => {
            error(format!("To get the result of a task: {PROGRAM} results {}", shell_word(&id)))
        }
        Guess::Nothing => {
            let offered = catalog.names_below(unknown_word.path);
            error(format!("Known commands: {}.", offered.join(", ")))
        }
    }
}

fn former_name_error(
    catalog: Catalog,
    spec: &CommandSpec,
    typed: &str,
    unknown_word: UnknownWord<'_>,
) -> AppError {
    let message = format!("'{typed}' is now '{}'.", spec.cli_path());
    match corrected_command_line(catalog, unknown_word, unknown_word.path_indexes, spec.path) {
        Some(command) if spec.danger != Danger::Destructive => {
            AppError::new(ErrorCode::CommandRenamed, message)
                .suggest(format!("Run: {command}"))
                .redirect(Redirect { command, permanent: true, reason: "renamed" })
        }
        _ => AppError::new(ErrorCode::ArgError, message).suggest(format!("Use '{}'.", spec.cli_path())),
    }
}

fn typo_error(
    catalog: Catalog,
    message: &str,
    intended: &[String],
    unknown_word: UnknownWord<'_>,
) -> AppError {
    let suggestion = format!("Did you mean '{}'?", intended.join(" "));
    let word = unknown_word.word();
    let (removed, replacement): (&[usize], &[String]) = match intended.strip_prefix(unknown_word.path) {
        Some([name]) if similar_names::is_one_letter_off(&word, name) => (&[], std::slice::from_ref(name)),
        // The same command in another group, or in none.
        None if intended.last() == Some(&word) => (unknown_word.path_indexes, intended),
        _ => return AppError::new(ErrorCode::ArgError, message).suggest(suggestion),
    };
    let replacement: Vec<&str> = replacement.iter().map(String::as_str).collect();
    match corrected_command_line(catalog, unknown_word, removed, &replacement) {
        Some(command) => AppError::new(ErrorCode::TypoCorrected, message)
            .suggest(suggestion)
            .redirect(Redirect { command, permanent: false, reason: "typo_corrected" }),
        None => AppError::new(ErrorCode::ArgError, message).suggest(suggestion),
    }
}

/// The command line with the unknown word (and the arguments in `removed`) replaced, quoted for a shell.
/// `None` if that changes nothing, or if the result is a destructive command: a guess must not lead to one.
fn corrected_command_line(
    catalog: Catalog,
    unknown_word: UnknownWord<'_>,
    removed: &[usize],
    replacement: &[&str],
) -> Option<String> {
    let mut args = vec![OsString::from(PROGRAM)];
    for (index, word) in unknown_word.args.iter().enumerate().skip(1) {
        if index == unknown_word.index {
            args.extend(replacement.iter().map(OsString::from));
        } else if !removed.contains(&index) {
            args.push(word.clone());
        }
    }
    let target = locate(catalog, &args);
    let is_destructive = target.spec(catalog).is_some_and(|spec| spec.danger == Danger::Destructive);
    if args.get(1..) == unknown_word.args.get(1..) || is_destructive {
        return None;
    }
    args.iter()
        .map(|word| word.to_str().map(shell_word))
        .collect::<Option<Vec<_>>>()
        .map(|args| args.join(" "))
}
