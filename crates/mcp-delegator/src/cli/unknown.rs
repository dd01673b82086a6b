//! Words nobody knows: what was probably meant, and whether that may be said as a redirect.
//!
//! A redirect (exit 13) is announced, never run, and only when the replacement is unique, harmless to name and free of
//! secrets; otherwise the same finding is a plain suggestion (exit 2).

use std::ffi::OsString;

use delegator_domain::names;
use delegator_domain::redact::Redactor;

use super::tree;
use crate::fault::{AppError, ErrorCode, Redirect};
use crate::registry::{self, CommandSpec, Danger, PROGRAM};

/// How many leading words of the line name a known group or command, and where they stand.
fn known_path(words: &[OsString], before: usize) -> (Vec<String>, Vec<usize>) {
    let mut level = tree::root();
    let (mut path, mut places) = (Vec::new(), Vec::new());
    for (at, word) in words.iter().enumerate().take(before).skip(1) {
        let Some(name) = word.to_str() else { continue };
        if let Some(below) = level.find_subcommand(name) {
            let below = below.clone();
            path.push(name.to_owned());
            places.push(at);
            level = below;
        }
    }
    (path, places)
}

/// Whether the word at this place stands where a command is expected.
pub fn is_command_position(words: &[OsString], at: usize) -> bool {
    let (path, _) = known_path(words, at);
    registry::find(&path.iter().map(String::as_str).collect::<Vec<_>>()).is_none()
}

/// Every flag the command on this line takes, as typed.
pub fn flags_of(words: &[OsString]) -> Vec<String> {
    let (path, _) = known_path(words, words.len());
    let mut level = tree::root();
    let mut flags = long_flags(&level);
    for name in path {
        if let Some(below) = level.find_subcommand(&name) {
            level = below.clone();
            flags.extend(long_flags(&level));
        }
    }
    flags
}

fn long_flags(command: &clap::Command) -> Vec<String> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
        .collect()
}

/// The error for a word that stands where a command should.
pub fn command(word: &str, words: &[OsString]) -> AppError {
    let at = words
        .iter()
        .skip(1)
        .position(|candidate| candidate.to_str() == Some(word))
        .map_or(words.len(), |at| at + 1);
    let (path, _) = known_path(words, at);
    let typed: Vec<&str> = path.iter().map(String::as_str).chain([word]).collect();
    if let Some((spec, code)) = renamed(&typed) {
        return moved(spec, code, &typed, words, at);
    }
    let below: Vec<&CommandSpec> = registry::all()
        .iter()
        .copied()
        .filter(|spec| spec.path.len() > path.len() && spec.path.iter().zip(&path).all(|(a, b)| a == b))
        .collect();
    let name_of = |spec: &&CommandSpec| spec.path[path.len()];
    let offered: Vec<&str> = distinct(below.iter().filter(|spec| spec.is_available()).map(name_of));
    let full = |name: &str| path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" ");
    let error = |code, message: String| AppError::new(code, message).context("typed", typed.join(" "));
    let unknown = format!("There is no command '{}'.", typed.join(" "));
    match names::nearest(word, offered.iter().copied()) {
        Some(name) => typo(&unknown, &full(name), words, at, name, &below),
        None => match names::near(word, offered.iter().copied()).as_slice() {
            [] => match names::nearest(word, below.iter().map(name_of)) {
                Some(name) => error(ErrorCode::ArgError, unknown)
                    .suggest(format!("'{}' is planned, but not available in this version.", full(name))),
                None => error(ErrorCode::ArgError, unknown)
                    .suggest(format!("Known here: {}.", offered.join(", "))),
            },
            several => error(ErrorCode::ArgError, unknown)
                .suggest(format!("Did you mean one of {}?", several.join(", "))),
        },
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn renamed(typed: &[&str]) -> Option<(&'static CommandSpec, ErrorCode)> {
    registry::all().iter().find_map(|spec| {
        spec.former_names.iter().find(|former| former.path == typed).map(|former| (*spec, former.code))
    })
}

fn moved(spec: &CommandSpec, code: ErrorCode, typed: &[&str], words: &[OsString], at: usize) -> AppError {
    let message = format!("'{}' is now '{}'.", typed.join(" "), spec.words());
    let reason = match code {
        ErrorCode::CommandMoved => "restructured",
        ErrorCode::CommandDeprecated => "deprecated",
        _ => "renamed",
    };
    match rebuilt(words, at, typed.len() - 1, spec.path) {
        Some(command) if spec.is_available() => AppError::new(code, message)
            .suggest(format!("Run: {command}"))
            .redirect(Redirect { command, permanent: true, reason }),
        _ => AppError::new(ErrorCode::ArgError, message).suggest(format!("Use '{}'.", spec.words())),
    }
}

fn typo(
    unknown: &str,
    meant: &str,
    words: &[OsString],
    at: usize,
    name: &'static str,
    below: &[&CommandSpec],
) -> AppError {
    // Naming the guess for something that destroys is how things get destroyed by accident.
    let destructive = below.iter().any(|spec| spec.danger == Danger::Destructive && spec.words() == meant);
    match rebuilt(words, at, 0, &[name]) {
        Some(command) if !destructive => AppError::new(ErrorCode::TypoCorrected, unknown)
            .suggest(format!("Did you mean '{meant}'?"))
            .redirect(Redirect { command, permanent: false, reason: "typo_corrected" }),
        _ => AppError::new(ErrorCode::ArgError, unknown).suggest(format!("Did you mean '{meant}'?")),
    }
}

/// The line with the wrong words replaced, quoted for a shell; nothing if it would repeat a secret.
fn rebuilt(words: &[OsString], at: usize, words_before: usize, replacement: &[&str]) -> Option<String> {
    let mut line = vec![PROGRAM.to_owned()];
    for (place, word) in words.iter().enumerate().skip(1) {
        if place == at {
            line.extend(replacement.iter().map(|word| (*word).to_owned()));
        } else if !(at - words_before..at).contains(&place) {
            line.push(word.to_str()?.to_owned());
        }
    }
    let redactor = Redactor::builder().build();
    if line.iter().any(|word| redactor.contains_secret(word)) {
        return None;
    }
    Some(line.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" "))
}

fn shell_quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,+%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
