//! Help texts, from the same tree that reads the words.

use std::ffi::OsString;

use clap::Command;

use super::tree;
use super::unknown::{self, Stray};
use crate::fault::AppError;
use crate::registry::PROGRAM;

/// The command or group these words name; `asked_by` is the command they were given to.
pub fn command_at(asked_by: &str, words: &[String]) -> Result<Command, AppError> {
    // Building fills in usage lines and inherited flags.
    let mut command = tree::root();
    command.build();
    for (at, word) in words.iter().enumerate() {
        match command.find_subcommand(word) {
            Some(below) => command = below.clone(),
            None => {
                let given = words.iter().map(String::as_str);
                let line: Vec<OsString> =
                    [PROGRAM, asked_by].into_iter().chain(given).map(Into::into).collect();
                return Err(unknown::command(Stray {
                    line: &line,
                    path: &words[..at],
                    places: &[],
                    place: at + 2,
                }));
            }
        }
    }
    Ok(command)
}

/// One line a flag: long enough to choose by, short enough to be read.
pub fn text(command: &Command) -> String {
    let whole = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let text = command.clone().about(whole).render_help().to_string();
    if command.is_hide_set() {
        return format!("Not available in this version.\n\n{text}");
    }
    text
}
