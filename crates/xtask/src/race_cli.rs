//! The command line of `cargo xtask race`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer tool prints its tables")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::deadline::Deadline;
use crate::error::LoadError;
use crate::programs::{build_delegator, testbeds};
use crate::race::{self, OUR_NAME, RaceOptions, Results, render};

/// For the installation of the peers, their slow starts and the cancelled tasks.
const BASE_TIME: Duration = Duration::from_secs(45 * 60);
const TIME_PER_ROUND: Duration = Duration::from_secs(90);

pub(crate) fn command() -> Command {
    let path = |name: &'static str| {
        Arg::new(name).long(name).value_name("PATH").value_parser(value_parser!(PathBuf))
    };
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("race")
        .about("Measure this program (profile dist) beside its peers from npm and PyPI, in one run")
        .after_help("Needs cc, git, node, npm and python3 with venv. Without --write, prints the page.")
        .args([
            Arg::new("program").long("program").value_name("LABEL=PATH").action(ArgAction::Append).help(
                "Measure this program instead of building one [repeatable]; the last one is the current one",
            ),
            Arg::new("rounds")
                .long("rounds")
                .default_value("15")
                .value_parser(value_parser!(u16).range(1..=100))
                .help("Number of interleaved rounds; reports medians"),
            Arg::new("only")
                .long("only")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Measure only this participant [repeatable]"),
            flag("offline").help("Install no peers: measure this program alone"),
            path("cache").help("Install the peers into this directory, and use them again in the next run"),
            path("write").help("Write the page to this file, and its figures beside it as .json"),
            path("render").help("Render these figures instead of measuring"),
            flag("keep").help("Keep the temporary directory below /var/tmp/mcp-delegator-load-UID"),
            flag("json").help("Print the figures as JSON instead of the page"),
        ])
}

pub(crate) fn race(args: &ArgMatches) -> Result<bool, LoadError> {
    let results = match args.get_one::<PathBuf>("render") {
        Some(figures) => read_figures(figures)?,
        None => measure(args)?,
    };
    match args.get_one::<PathBuf>("write") {
        Some(page) => write(page, &results)?,
        None if args.get_flag("json") => println!("{}", to_json(&results)),
        None => println!("{}", render(&results)),
    }
    Ok(true)
}

fn measure(args: &ArgMatches) -> Result<Results, LoadError> {
    let given: Vec<&String> = args.get_many("program").into_iter().flatten().collect();
    let mut programs = Vec::new();
    for argument in given {
        programs.push(parse_program(argument)?);
    }
    if programs.is_empty() {
        programs.push((OUR_NAME.to_owned(), build_delegator()?));
    }
    let rounds = args.get_one::<u16>("rounds").copied().unwrap_or(15);
    let options = RaceOptions {
        programs,
        rounds: rounds.into(),
        only: args.get_many("only").into_iter().flatten().cloned().collect(),
        offline: args.get_flag("offline"),
        keep: args.get_flag("keep"),
        cache: args.get_one("cache").cloned(),
        parent: testbeds(),
    };
    let deadline = Deadline::new(BASE_TIME + TIME_PER_ROUND * u32::from(rounds))?;
    race::run(&options, &deadline)
}

/// `before=/path/to/program`, or a path alone.
fn parse_program(argument: &str) -> Result<(String, PathBuf), LoadError> {
    let (label, path) = argument.split_once('=').unwrap_or((OUR_NAME, argument));
    let not_a_program = || LoadError::NotAProgram { argument: argument.to_owned() };
    // Tasks run in other directories.
    let path = Path::new(path).canonicalize().map_err(|_| not_a_program())?;
    match path.is_file() && !label.is_empty() {
        true => Ok((label.to_owned(), path)),
        false => Err(not_a_program()),
    }
}

fn read_figures(path: &Path) -> Result<Results, LoadError> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(LoadError::io(format!("read {name}")))?;
    serde_json::from_str(&text).map_err(|error| LoadError::Refused { response: format!("{name}: {error}") })
}

fn write(page: &Path, results: &Results) -> Result<(), LoadError> {
    let figures = page.with_extension("json");
    fs::write(&figures, to_json(results) + "\n").map_err(LoadError::io("write the figures"))?;
    fs::write(page, render(results)).map_err(LoadError::io("write the page"))?;
    eprintln!("race: wrote {} and {}", page.display(), figures.display());
    Ok(())
}

fn to_json(results: &Results) -> String {
    serde_json::to_string_pretty(results).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_a_label_or_the_usual_name() {
        let program = PathBuf::from("/bin/sh").canonicalize().unwrap();
        assert_eq!(parse_program("before=/bin/sh").unwrap(), ("before".to_owned(), program.clone()));
        assert_eq!(parse_program("/bin/sh").unwrap(), (OUR_NAME.to_owned(), program));
        assert!(parse_program("before=/no/such/program").is_err());
        assert!(parse_program("=/bin/sh").is_err());
        assert!(parse_program("/bin").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
