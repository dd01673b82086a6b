//! Selects the script from the command line and the environment, and runs it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::{ProcessContext, Script, ScriptError, demo, hello, run};

/// Default output of `--version`: that of the Codex version we test with.
const VERSION: &str = "codex-cli 0.166.0";
/// Output of `login status`: a scripted agent needs no credentials.
const LOGIN_STATUS: &str = "Logged in as a scripted agent";
const SCRIPT_ARGUMENT: &str = "--script";
const SCRIPT_VARIABLE: &str = "SCRIPTED_AGENT_SCRIPT";
/// Exit code of an invalid command line or script.
const EXIT_USAGE: u8 = 2;

/// Why no script can be run.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    /// No script was selected.
    #[error(
        "no script: name one with --script demo|hello|FILE as the first argument, with SCRIPTED_AGENT_SCRIPT, \
         or create {beside}"
    )]
    NoScript {
        /// Where one would have been found.
        beside: String,
    },
    /// `--script` is the last argument.
    #[error("--script needs a value: demo, hello or a file")]
    NoValue,
    /// The script cannot be read or is invalid.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// The whole program: selects the script by these arguments and the process environment, runs it, and returns the
/// exit code.
pub fn start(argv: Vec<OsString>) -> u8 {
    let Ok(mut context) = ProcessContext::from_current_process(argv) else { return EXIT_USAGE };
    let found = find_script(&mut context);
    if wants_version(&context.argv) {
        let version = found.ok().and_then(|script| script.version).unwrap_or_else(|| VERSION.to_owned());
        return u8::from(writeln!(context.stdout, "{version}").is_err());
    }
    match context.argv.get(1).and_then(|arg| arg.to_str()) {
        Some("login") => return u8::from(writeln!(context.stdout, "{LOGIN_STATUS}").is_err()),
        // There is no sandbox, and the script must not be run in its place.
        Some("sandbox") => return EXIT_USAGE,
        _ => {}
    }
    match found {
        Ok(script) => run(&script, context),
        Err(error) => {
            // If stderr is closed, the exit code still reports the error.
            let _ = writeln!(context.stderr, "scripted-agent: {error}");
            EXIT_USAGE
        }
    }
}

fn wants_version(argv: &[OsString]) -> bool {
    argv.get(1).is_some_and(|arg| arg == "--version" || arg == "-V")
}

/// Selects the script, and removes its arguments from `argv`, so that the remaining ones are those of Codex.
fn find_script(context: &mut ProcessContext) -> Result<Script, InvocationError> {
    if context.argv.get(1).is_some_and(|arg| arg == SCRIPT_ARGUMENT) {
        if context.argv.len() < 3 {
            return Err(InvocationError::NoValue);
        }
        let args: Vec<OsString> = context.argv.drain(1..3).collect();
        return Ok(script_by_name(&args[1])?);
    }
    if let Some(name) = context.variable(SCRIPT_VARIABLE) {
        return Ok(script_by_name(name)?);
    }
    let beside = script_paths_beside_program(context.argv.first());
    match beside.iter().find(|path| path.is_file()) {
        Some(path) => Ok(Script::load(path)?),
        None => {
            let beside =
                beside.first().map_or_else(|| "codex.json".into(), |path| path.display().to_string());
            Err(InvocationError::NoScript { beside })
        }
    }
}

fn script_by_name(name: &OsStr) -> Result<Script, ScriptError> {
    match name.to_str() {
        Some("demo") => demo::script(),
        Some("hello") => hello(),
        _ => Script::load(Path::new(name)),
    }
}

/// Scripts next to the program: under the name it was called by, then under its own name. A link keeps the first, a
/// resolved link the second.
fn script_paths_beside_program(called: Option<&OsString>) -> Vec<PathBuf> {
    let called = called.map(PathBuf::from).filter(|path| path.components().count() > 1);
    let own = std::env::current_exe().ok();
    let with_json_suffix = |path: PathBuf| {
        let mut name = path.into_os_string();
        name.push(".json");
        PathBuf::from(name)
    };
    called.into_iter().chain(own).map(with_json_suffix).collect()
}
