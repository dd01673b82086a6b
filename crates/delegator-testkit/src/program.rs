//! Runs the program in an isolated world: an empty home, a clean environment, no configuration except what a test
//! writes.

#![expect(clippy::disallowed_methods, reason = "tests start the program they test")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::answers;

/// Exit code and output of one run of the program.
#[derive(Debug)]
pub struct RunOutput {
    /// The exit code; `None` if a signal killed the process.
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl RunOutput {
    /// Parses stdout, which must be one line of JSON.
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.trim_end().lines().count(), 1, "not one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Parses stdout as one JSON document of any number of lines.
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A temporary home and project directory, and the variables for programs that run in them.
#[derive(Debug)]
pub struct World {
    program: PathBuf,
    root: TempDir,
    variables: Vec<(String, String)>,
}

impl World {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home/.config/mcp-delegator", "project"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let program = program.into();
        answers::validate_against(&program);
        World { program, root, variables: Vec::new() }
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the user's configuration file.
    pub fn config(self, text: &str) -> Self {
        self.write("home/.config/mcp-delegator/config.toml", text);
        self
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Working directory of the program.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        self.command_as(&self.program, args)
    }

    /// Runs another program in the same world to its end.
    pub fn run_as<S: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = S>) -> RunOutput {
        let mut command = self.command_as(program, args);
        wait_for_output(
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        )
    }

    /// A command that runs another program in the same world.
    pub fn command_as<S: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs to the end with stdin closed.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> RunOutput {
        self.run_with_input(args, b"")
    }

    /// The checks of `doctor`, which fails if one of them found a problem.
    pub fn doctor_checks(&self) -> Value {
        let response = self.run(["doctor"]).document();
        let data = if response["ok"] == true { &response["data"] } else { &response["meta"]["failure_data"] };
        assert!(data["checks"].is_array(), "{response}");
        data["checks"].clone()
    }

    pub fn run_with_input<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> RunOutput {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The write fails if the program exits early without reading its input.
        let _ = child.stdin.take().expect("stdin is piped").write_all(input);
        wait_for_output(child)
    }

    /// Runs with stdout closed before the first byte.
    pub fn run_without_reader<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> RunOutput {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        wait_for_output(child)
    }
}

/// A directory that the program does not take for a temporary one, wherever the checkout lies.
#[track_caller]
pub fn durable_dir() -> TempDir {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = [Some("/dev/shm".into()), home, Some(env!("CARGO_MANIFEST_DIR").into())];
    let is_durable =
        |place: &PathBuf| !["/tmp", "/var/tmp"].iter().any(|temporary| place.starts_with(temporary));
    let mut places = places.into_iter().flatten().filter(is_durable);
    places
        .find_map(|place| tempfile::tempdir_in(place).ok())
        .expect("a writable directory that is not temporary")
}

/// Waits for a child whose output is piped.
pub fn wait_for_output(child: Child) -> RunOutput {
    checked_output(child.wait_with_output().unwrap())
}

/// Runs a command to its end.
pub fn output_of(command: &mut Command) -> RunOutput {
    checked_output(command.output().unwrap())
}

fn checked_output(output: Output) -> RunOutput {
    let run = RunOutput {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    };
    answers::check_text(&run.stdout);
    answers::check_text(&run.stderr);
    run
}

/// Reads a file, which may be an answer; panics if that fails.
pub fn read_text(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    answers::check_text(&text);
    text
}

/// The library that gives a process another wall clock: the value of `LD_PRELOAD`.
pub fn faketime_library() -> PathBuf {
    ["x86_64", "aarch64"]
        .map(|machine| PathBuf::from(format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1")))
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("libfaketime is missing: run scripts/install-faketime"))
}
