//! Starts the program with a script in a temporary directory.

#![allow(clippy::disallowed_methods, reason = "tests start programs and wait for conditions")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_scripted-agent");

/// A directory with a script in it.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(crate) fn with(steps: Value) -> Self {
        Self::with_script(&json!({"steps": steps}).to_string())
    }

    pub(crate) fn with_script(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("script.json"), script).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// The program with piped streams and the script in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.folder.path());
        command.env("SCRIPTED_AGENT_SCRIPT", self.path("script.json"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self) -> Child {
        self.command(&["exec", "--json", "-"]).spawn().unwrap()
    }

    pub(crate) fn run(&self) -> Output {
        self.command(&["exec", "--json", "-"]).output().unwrap()
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Output {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.to_vec();
        let writer = std::thread::spawn(move || pipe.write_all(&stdin).is_ok());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// The process id in a file, after waiting for it.
    pub(crate) fn pid_in(&self, name: &str) -> u32 {
        wait_until(name, || std::fs::read_to_string(self.path(name)).is_ok_and(|text| text.ends_with('\n')));
        self.read(name).trim().parse().unwrap()
    }
}

pub(crate) fn run_steps(steps: Value) -> Output {
    Stage::with(steps).run()
}

pub(crate) fn json_lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

pub(crate) fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}

/// Waits for a condition; panics after 20 seconds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started_at = Instant::now();
    while !condition() {
        assert!(started_at.elapsed() < Duration::from_secs(20), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A field of `/proc/PID/stat` after the program name: 0 is the state, 1 the parent, 2 the group, 3 the session.
pub(crate) fn stat(pid: u32, field: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}

pub(crate) fn is_alive(pid: u32) -> bool {
    stat(pid, 0).is_some_and(|state| state != "Z" && state != "X")
}

/// Kills a process when it is dropped.
pub(crate) struct KillOnDrop(pub(crate) u32);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", &self.0.to_string()]).stderr(Stdio::null()).status();
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}
