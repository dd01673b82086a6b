//! Words nobody knows: what was probably meant, and whether that may be said as a redirect.
//!
//! A redirect (exit 13) is announced, never run, and only when the replacement is unique and harmless to name;
//! otherwise the same finding is a plain suggestion (exit 2). That it must not repeat a secret is checked where the
//! secrets are known.

use std::ffi::OsString;

use delegator_domain::names;

use super::path::locate;
use super::tree;
use crate::fault::{AppError, ErrorCode, Redirect, clipped};
use crate::registry::{self, CommandSpec, Danger, PROGRAM};
use crate::requests::{other_words, snake_case};
use crate::views::shell_word;

/// Every flag the command at this path takes, as typed.
pub fn flags_of(path: &[String]) -> Vec<String> {
    let mut level = tree::root();
    let mut flags = long_flags(&level);
    for name in path {
        if let Some(below) = level.find_subcommand(name) {
            level = below.clone();
            flags.extend(long_flags(&level));
        }
    }
    flags
}

/// The flag somebody means who calls it as another program does.
pub fn meant_flag(typed: &str, path: &[String]) -> Option<String> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let inputs = registry::find(&path)?.inputs();
    let meant = other_words::meant(&snake_case(typed.trim_start_matches('-')), &inputs)?;
    inputs.get(meant).map(|property| format!("--{}", property.flag()))
}

fn long_flags(command: &clap::Command) -> Vec<String> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
        .collect()
}

/// A word of a line that stands where a command should.
#[derive(Debug, Clone, Copy)]
pub struct Stray<'a> {
    pub line: &'a [OsString],
    /// The known words before it, and where they stand.
    pub path: &'a [String],
    pub places: &'a [usize],
    pub place: usize,
}

impl Stray<'_> {
    fn word(&self) -> String {
        self.line.get(self.place).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// The error for a word that stands where a command should.
pub fn command(stray: Stray<'_>) -> AppError {
    let word = stray.word();
    let typed: Vec<&str> = stray.path.iter().map(String::as_str).chain([word.as_str()]).collect();
    let shown = clipped(&typed.join(" "));
    if let Some((spec, code)) = renamed(&typed) {
        return moved(spec, code, &shown, stray);
    }
    let unknown = format!("There is no command '{shown}'.");
    let error = |suggestion: String| {
        AppError::new(ErrorCode::ArgError, unknown.clone())
            .context("typed", shown.clone())
            .suggest(suggestion)
    };
    let full = |name: &str| stray.path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" ");
    let offered = names_below(stray.path, true);
    if let Some(name) = names::nearest(&word, offered.iter().copied()) {
        return typo(&unknown, &full(name), name, stray);
    }
    match names::near(&word, offered.iter().copied()).as_slice() {
        [] => {}
        several => return error(format!("Did you mean one of {}?", several.join(", "))),
    }
    match (names::nearest(&word, names_below(stray.path, false)), offered.as_slice()) {
        (Some(name), _) => error(format!("'{}' is planned, but not available in this version.", full(name))),
        (None, []) => {
            error("Nothing is available here in this version; 'mcp-delegator help' shows what is.".into())
        }
        (None, offered) => error(format!("Known here: {}.", offered.join(", "))),
    }
}

/// The names one step below a path, each once.
fn names_below(path: &[String], only_available: bool) -> Vec<&'static str> {
    let mut seen: Vec<&'static str> = Vec::new();
    for spec in registry::all() {
        let below = spec.path.len() > path.len() && spec.path.iter().zip(path).all(|(a, b)| a == b);
        let name = spec.path.get(path.len()).copied();
        if let (true, Some(name)) = (below && (spec.is_available() || !only_available), name)
            && !seen.contains(&name)
        {
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

fn moved(spec: &CommandSpec, code: ErrorCode, typed: &str, stray: Stray<'_>) -> AppError {
    let message = format!("'{typed}' is now '{}'.", spec.words());
    let reason = match code {
        ErrorCode::CommandMoved => "restructured",
        ErrorCode::CommandDeprecated => "deprecated",
        _ => "renamed",
    };
    match rebuilt(stray, stray.places, spec.path) {
        Some(command) if spec.is_available() && spec.danger != Danger::Destructive => {
            AppError::new(code, message).suggest(format!("Run: {command}")).redirect(Redirect {
                command,
                permanent: true,
                reason,
            })
        }
        _ => AppError::new(ErrorCode::ArgError, message).suggest(format!("Use '{}'.", spec.words())),
    }
}

fn typo(unknown: &str, meant: &str, name: &'static str, stray: Stray<'_>) -> AppError {
    let suggestion = format!("Did you mean '{meant}'?");
    match rebuilt(stray, &[], &[name]) {
        Some(command) => AppError::new(ErrorCode::TypoCorrected, unknown)
            .suggest(suggestion)
            .redirect(Redirect { command, permanent: false, reason: "typo_corrected" }),
        None => AppError::new(ErrorCode::ArgError, unknown).suggest(suggestion),
    }
}

/// The line with the stray word (and the words `dropped`) replaced, quoted for a shell. Nothing where that would lead
/// nowhere, or to something that destroys: naming a guess for such a command is how things get destroyed by accident.
fn rebuilt(stray: Stray<'_>, dropped: &[usize], replacement: &[&str]) -> Option<String> {
    let mut line = vec![OsString::from(PROGRAM)];
    for (place, word) in stray.line.iter().enumerate().skip(1) {
        if place == stray.place {
            line.extend(replacement.iter().map(OsString::from));
        } else if !dropped.contains(&place) {
            line.push(word.clone());
        }
    }
    let leads_to = locate(&line);
    let dangerous = leads_to.spec().is_some_and(|spec| spec.danger == Danger::Destructive);
    if line.get(1..) == stray.line.get(1..) || dangerous {
        return None;
    }
    line.iter()
        .map(|word| word.to_str().map(shell_word))
        .collect::<Option<Vec<_>>>()
        .map(|words| words.join(" "))
}
