//! The command line of `cargo xtask`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer tool prints its tables")]

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::book_pages;
use crate::deadline::Deadline;
use crate::dist_cli;
use crate::error::LoadError;
use crate::figures::Report;
use crate::kills;
use crate::programs::{Programs, workspace};
use crate::race::{REAP, reap};
use crate::race_cli;
use crate::server::process::{SERVE, serve};
use crate::tiers::{LoadOptions, TIERS, Tier};
use crate::weight;

/// Runs the program. Exit code 0: every bound is met; 1: one is missed; 2: nothing could be measured.
pub fn run(argv: Vec<OsString>) -> ExitCode {
    if argv.get(1).is_some_and(|arg| arg == SERVE) {
        return serve();
    }
    if argv.get(1).is_some_and(|arg| arg == REAP) {
        return reap(argv.get(2..).unwrap_or_default());
    }
    let matches = cli_command().get_matches_from(argv);
    let result = match matches.subcommand() {
        Some(("load", args)) => load(args),
        Some(("kills", args)) => kill_loop(args),
        Some(("race", args)) => race_cli::race(args),
        Some(("weight", _)) => print_weight(),
        Some(("book-pages", args)) => print_book(args),
        Some(("dist", args)) => dist_cli::dist(args),
        Some(("release-check", args)) => dist_cli::release_check(args),
        Some(("publish", args)) => dist_cli::publish_all(args),
        _ => return ExitCode::from(2),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

fn cli_command() -> Command {
    let tiers: Vec<String> = TIERS.iter().map(|tier| format!("  {:<4} {}", tier.name, tier.about)).collect();
    let seed = Arg::new("seed")
        .long("seed")
        .default_value("1")
        .value_parser(value_parser!(u64))
        .help("Seed of the random choices; the same seed repeats them");
    let keep = Arg::new("keep")
        .long("keep")
        .action(ArgAction::SetTrue)
        .help("Keep the state directory below /var/tmp/mcp-delegator-load-UID");
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of tables");
    let load = Command::new("load")
        .about(
            "Run a load tier against the shipped program (profile dist); exits with 1 if a bound is missed",
        )
        .after_help(format!("Tiers:\n{}", tiers.join("\n")))
        .arg(
            Arg::new("tier")
                .required(true)
                .value_name("TIER")
                .help("L1, L2, L3, L4, L5, L9, L10, F58, F61 or all"),
        )
        .arg(
            Arg::new("runs")
                .long("runs")
                .default_value("1")
                .value_parser(value_parser!(u16).range(1..=99))
                .help("Number of runs; reports the median of each figure"),
        )
        .arg(
            Arg::new("scale")
                .long("scale")
                .default_value("1")
                .value_parser(value_parser!(f64))
                .help("Size relative to the full tier, such as 0.1"),
        )
        .args([seed.clone(), keep.clone(), json.clone()]);
    let kills = Command::new("kills")
        .about("Kill servers, supervisors and command-line calls at random moments and count what was lost")
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .default_value("200")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .help("Number of rounds; each submits tasks and kills processes"),
        )
        .args([seed, keep, json]);
    let weight = Command::new("weight")
        .about("Print how large the program is, by crate, without tests and without development crates");
    let book_pages = Command::new("book-pages")
        .about("Prepare the pages of the site: mdBook runs this")
        .arg(Arg::new("question").num_args(0..).help("`supports RENDERER`: every renderer is supported"));
    Command::new("xtask")
        .about("Load tests, the kill loop, the race with the peers, the weight of the program, its site and its packages")
        .subcommand_required(true)
        .subcommands([load, kills, race_cli::command(), weight, book_pages])
        .subcommands(dist_cli::commands())
}

fn load(args: &ArgMatches) -> Result<bool, LoadError> {
    let name = args.get_one::<String>("tier").map_or("", String::as_str);
    let tiers = match Tier::named(name) {
        Some(tier) => vec![tier],
        None if name == "all" => TIERS.to_vec(),
        None => {
            let known = TIERS.iter().map(|tier| tier.name).chain(["all"]).collect();
            return Err(LoadError::UnknownTier { given: name.to_owned(), known });
        }
    };
    let scale = args.get_one::<f64>("scale").copied().unwrap_or(1.0);
    let options = LoadOptions {
        runs: args.get_one::<u16>("runs").copied().unwrap_or(1).into(),
        scale: scale.clamp(0.001, 10.0),
        seed: args.get_one("seed").copied().unwrap_or(1),
        keep: args.get_flag("keep"),
    };
    let programs = Programs::build()?;
    let mut all_met = true;
    for tier in tiers {
        match tier.report(&programs, options) {
            Ok(report) => {
                print(&report, args.get_flag("json"));
                all_met &= report.is_met();
            }
            Err(LoadError::Interrupted) => return Err(LoadError::Interrupted),
            // The other tiers can still be measured.
            Err(error) => {
                eprintln!("xtask: could not measure {}: {error}", tier.name);
                all_met = false;
            }
        }
    }
    Ok(all_met)
}

fn kill_loop(args: &ArgMatches) -> Result<bool, LoadError> {
    let rounds = args.get_one::<u32>("rounds").copied().unwrap_or(200);
    let options = kills::KillOptions {
        rounds,
        seed: args.get_one("seed").copied().unwrap_or(1),
        keep: args.get_flag("keep"),
    };
    // Three seconds per round, plus time for the last recovery.
    let deadline = Deadline::new(Duration::from_secs(3 * u64::from(rounds) + 180))?;
    let report = kills::run(&Programs::build()?, options, &deadline)?;
    print(&report, args.get_flag("json"));
    Ok(report.is_met())
}

fn print_weight() -> Result<bool, LoadError> {
    print!("{}", weight::table(&workspace()?)?);
    Ok(true)
}

fn print_book(args: &ArgMatches) -> Result<bool, LoadError> {
    if !args.contains_id("question") {
        let failed = |source| LoadError::Io { doing: "read the book that mdBook sends".to_owned(), source };
        let input = io::read_to_string(io::stdin()).map_err(failed)?;
        print!("{}", book_pages::preprocess(&input).map_err(|error| failed(error.into()))?);
    }
    Ok(true)
}

fn print(report: &Report, as_json: bool) {
    if as_json {
        println!("{}", serde_json::to_string(report).unwrap_or_default());
    } else {
        println!("{}", report.table());
    }
}
