//! The packages of a release, made from the program of the tests: package managers install them, and what they install runs.
//!
//! Nothing is built or downloaded. The packages are made once and used by all tests; the first test that needs them makes
//! them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::disallowed_methods, reason = "the tests run package managers")]

mod catalogues;
mod get;
mod npm;
mod wheel;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::{RunOutput, World, output_of};
use xtask::dist::{Output, Platform};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The time of all files in the packages.
const SECONDS: u64 = 1_700_000_000;
/// Compression would take most of the time of these tests.
const STORED: u32 = 0;

fn platform() -> &'static Platform {
    Platform::of_this_machine().unwrap()
}

/// The folder with the packages of this platform.
fn packages() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    // The packages of an older program, or of other code that makes them, are made again.
    let state = [Path::new(PROGRAM), &std::env::current_exe().unwrap(), &workspace().join("scripts/get")]
        .map(|path| format!("{:?}", path.metadata().unwrap().modified().unwrap()));
    let (made, out) = (folder.join("made-from"), folder.join("out"));
    if fs::read_to_string(&made).ok() != Some(state.concat()) {
        let _ = fs::remove_dir_all(&out);
        let program = folder.join("stripped");
        let mut strip = Command::new("strip");
        succeed(strip.arg("-o").arg(&program).arg(PROGRAM));
        pack(&program, &out);
        fs::write(made, state.concat()).unwrap();
    }
    out
}

fn pack(program: &Path, out: &Path) {
    let output = Output::new(&workspace(), out, SECONDS, STORED).unwrap();
    output.pack(platform(), program).unwrap();
    output.index().unwrap();
}

fn archive_name() -> String {
    format!("mcp-delegator-{VERSION}-{}", platform().name)
}

#[track_caller]
fn succeed(command: &mut Command) -> RunOutput {
    let run = output_of(command);
    assert_eq!(run.exit, Some(0), "{command:?}: {run:?}");
    run
}

/// Whether an installed program is this one and works.
#[track_caller]
fn assert_runs(world: &World, program: &Path) {
    let version = succeed(&mut world.command_as(program, ["--version"]));
    assert_eq!(version.stdout, format!("mcp-delegator {VERSION}\n"));
    let demo = succeed(&mut world.command_as(program, ["demo"]));
    assert!(demo.stdout.contains("leap.sh"), "{demo:?}");
}

/// Something that a script in scripts/ installs.
fn tool(path: &str, script: &str) -> PathBuf {
    let path = workspace().join(".tools").join(path);
    assert!(path.exists(), "{} is missing: run scripts/{script}", path.display());
    path
}

/// A container often has no git.
#[test]
fn the_demo_without_git_names_it() {
    let world = World::new(PROGRAM).variable("PATH", "/nonexistent");
    let run = world.run(["demo"]);
    assert_eq!(run.exit, Some(1), "{run:?}");
    let message = run.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("git was not found. Install git"), "{message}");
}
