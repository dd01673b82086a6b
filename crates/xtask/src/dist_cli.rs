//! The command lines of `cargo xtask dist`, `release-check` and `publish`.

#![expect(clippy::print_stdout, reason = "a developer tool prints what it wrote")]
#![expect(clippy::disallowed_methods, reason = "a developer tool reads its environment and runs git")]

use std::path::{Path, PathBuf};
use std::process;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::dist::build::build;
use crate::dist::publish::publish;
use crate::dist::release_check::ReleaseCheck;
use crate::dist::{Output, PLATFORMS, Platform};
use crate::error::LoadError;
use crate::programs::workspace;

/// Below the target directory.
const FOLDER: &str = "target/dist-out";
/// The best that the formats have.
const COMPRESSION: u32 = 9;

pub(crate) fn commands() -> [Command; 3] {
    let path = |name: &'static str| {
        Arg::new(name).long(name).value_name("PATH").value_parser(value_parser!(PathBuf))
    };
    let out = path("out").help("Folder of the packages (default: target/dist-out)");
    let platform = Arg::new("platform")
        .long("platform")
        .value_parser(PLATFORMS.each_ref().map(|platform| platform.name))
        .help("Platform of the packages (default: that of this machine)");
    let profile = Arg::new("profile").long("profile").default_value("dist").help("Profile of the build");
    let dist = Command::new("dist")
        .about("Build the program for a release and write its packages, catalogues and checksums")
        .args([out.clone(), platform.clone(), profile.clone()])
        .arg(path("program").help("Pack this program instead of building one"))
        .arg(
            Arg::new("index")
                .long("index")
                .action(ArgAction::SetTrue)
                .help("Only write what names the packages that are already in the folder"),
        )
        .arg(
            Arg::new("complete")
                .long("complete")
                .action(ArgAction::SetTrue)
                .help("Exit with 1 if a package of a platform is missing"),
        );
    let check = Command::new("release-check")
        .about("Do every step of docs/releasing.md up to publishing; exits with 1 if one fails")
        .args([out.clone(), platform, profile])
        .arg(
            Arg::new("skip-tests")
                .long("skip-tests")
                .action(ArgAction::SetTrue)
                .help("Leave out scripts/test, which has passed already"),
        );
    let publish = Command::new("publish")
        .about("Publish the packages in npm and PyPI; refuses if one of a platform is missing")
        .arg(out);
    [dist, check, publish]
}

pub(crate) fn dist(args: &ArgMatches) -> Result<bool, LoadError> {
    let workspace = workspace()?;
    let seconds = release_time(&workspace)?;
    let output = Output::new(&workspace, &folder(args, &workspace), seconds, COMPRESSION)?;
    if !args.get_flag("index") {
        let platform = platform(args)?;
        let program = match args.get_one::<PathBuf>("program") {
            Some(program) => program.clone(),
            None => build(&workspace, platform, profile(args), seconds)?,
        };
        output.pack(platform, &program)?;
    }
    output.index()?;
    print!("{}", output.listing()?);
    let missing = output.missing_files();
    missing.iter().for_each(|name| println!("   missing  {name}"));
    Ok(missing.is_empty() || !args.get_flag("complete"))
}

pub(crate) fn release_check(args: &ArgMatches) -> Result<bool, LoadError> {
    let workspace = workspace()?;
    let seconds = release_time(&workspace)?;
    let output = Output::new(&workspace, &folder(args, &workspace), seconds, COMPRESSION)?;
    let check = ReleaseCheck {
        workspace: &workspace,
        output: &output,
        platform: platform(args)?,
        profile: profile(args),
        seconds,
        runs_tests: !args.get_flag("skip-tests"),
    };
    Ok(check.run())
}

pub(crate) fn publish_all(args: &ArgMatches) -> Result<bool, LoadError> {
    let workspace = workspace()?;
    let output = Output::new(&workspace, &folder(args, &workspace), 0, COMPRESSION)?;
    publish(&output).map(|()| true)
}

fn folder(args: &ArgMatches, workspace: &Path) -> PathBuf {
    args.get_one::<PathBuf>("out").cloned().unwrap_or_else(|| workspace.join(FOLDER))
}

fn profile(args: &ArgMatches) -> &str {
    args.get_one::<String>("profile").map_or("dist", String::as_str)
}

fn platform(args: &ArgMatches) -> Result<&'static Platform, LoadError> {
    let named = args.get_one::<String>("platform").map(|name| Platform::named(name));
    named.unwrap_or_else(Platform::of_this_machine).ok_or(LoadError::UnknownPlatform)
}

/// The time of the commit, or `SOURCE_DATE_EPOCH`.
fn release_time(workspace: &Path) -> Result<u64, LoadError> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let output = process::Command::new("git")
                .args(["log", "-1", "--format=%ct"])
                .current_dir(workspace)
                .output()
                .map_err(LoadError::io("run git"))?;
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
    };
    text.trim().parse().map_err(|_| LoadError::NoReleaseTime)
}
