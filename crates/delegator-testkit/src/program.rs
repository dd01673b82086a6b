//! The program in a world of its own: an empty home, a clean environment, no configuration but what a test gives it.

#![expect(clippy::disallowed_methods, reason = "tests start the program they test")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// How one run ended.
#[derive(Debug)]
pub struct RunOutput {
    /// The exit code, or `None` after a death by signal.
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl RunOutput {
    /// The one line of JSON on stdout.
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.trim_end().lines().count(), 1, "not one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The one JSON document on stdout, however many lines it has.
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

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
        World { program: program.into(), root, variables: Vec::new() }
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

    /// The directory the program runs in.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        self.command_as(&self.program, args)
    }

    /// Another program in the same world, to the end.
    pub fn run_as<S: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = S>) -> RunOutput {
        let mut command = self.command_as(program, args);
        wait_for_output(
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        )
    }

    /// Another program in the same world.
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

    pub fn run_with_input<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> RunOutput {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that refuses early does not read its input; that is its right.
        let _ = child.stdin.take().expect("stdin is piped").write_all(input);
        wait_for_output(child)
    }

    /// Runs with a reader that has gone away before the first byte.
    pub fn run_without_reader<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> RunOutput {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        wait_for_output(child)
    }
}

/// Waits for a child whose output is piped.
pub fn wait_for_output(child: Child) -> RunOutput {
    let output = child.wait_with_output().unwrap();
    RunOutput {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// A file's text, where a test wrote or expects one.
pub fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
