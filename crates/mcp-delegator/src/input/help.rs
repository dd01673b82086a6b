//! Renders help from the same clap tree that parses the command line.

use std::ffi::OsString;

use clap::Command;

use crate::error::AppError;
use crate::input::tree;
use crate::input::unknown_command::{self, UnknownWord};
use crate::spec::catalog::Catalog;
use crate::spec::version::PROGRAM;

/// The command or group at this path; `caller` is the command that received the path (`help` or `man`).
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

/// Renders the short help, one line per flag, with the long description of the command.
pub fn render_help(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let text = command.clone().about(about).render_help().to_string();
    if command.is_hide_set() {
        return format!("Not available in this version.\n\n{text}");
    }
    text
}
