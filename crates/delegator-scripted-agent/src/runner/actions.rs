//! Steps that do real work: commands and file changes.

#![expect(clippy::disallowed_methods, reason = "the scripted agent runs commands")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command as Process, ExitStatus, Stdio};

use serde_json::{Value, json};

use super::{RunEnd, Runner, StepResult, script_error};
use crate::script::{Command, Program, Replacement, WrittenFile};

/// Codex retains this many bytes of the start of an output, and as many of its end.
const MAX_OUTPUT_HALF: u64 = 512 * 1024;
/// Exit code of shells for a program that cannot be run.
const EXIT_NOT_FOUND: i32 = 127;

impl Runner {
    pub(super) fn command(&mut self, command: &Command) -> StepResult {
        let args = match &command.run {
            Program::Shell(text) => vec!["/bin/sh".to_owned(), "-c".to_owned(), text.clone()],
            Program::Args(args) => args.clone(),
        };
        let Some((program, arguments)) = args.split_first() else {
            return Err(RunEnd::ScriptError("a command without arguments".to_owned()));
        };
        let command_line = args.iter().map(|arg| shell_quote(arg)).collect::<Vec<_>>().join(" ");
        let id = self.new_item();
        let details = |output: &str, code: Option<i32>, status: &str| {
            json!({"type": "command_execution", "command": command_line, "aggregated_output": output,
                   "exit_code": code, "status": status})
        };
        self.item("item.started", &id, details("", None, "in_progress"))?;
        let mut process = self.process(program);
        process.args(arguments);
        let (code, output) =
            match run_and_capture(process).map_err(script_error("cannot store the output of a command"))? {
                Ok((status, output)) => (exit_code_of(status), output),
                Err(error) => (EXIT_NOT_FOUND, format!("{program}: {error}\n")),
            };
        let status = if code == 0 { "completed" } else { "failed" };
        self.item("item.completed", &id, details(&output, Some(code), status))?;
        if code == 0 { Ok(()) } else { self.steps(&command.if_failed) }
    }

    /// A process with the variables and the directory of the agent, but none of its streams.
    pub(super) fn process(&self, program: &str) -> Process {
        let mut process = Process::new(program);
        process.env_clear().envs(self.env.iter().map(|(key, value)| (key, value))).stdin(Stdio::null());
        process.stdout(Stdio::null()).stderr(Stdio::null());
        if !self.directory.as_os_str().is_empty() {
            process.current_dir(&self.directory);
        }
        process
    }

    pub(super) fn write_file(&mut self, file: &WrittenFile) -> StepResult {
        let path = self.path(&file.path);
        let kind = if path.exists() { "update" } else { "add" };
        let failed = &file.if_failed;
        self.change(&path, kind, failed, || {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&path, &file.text)
        })
    }

    pub(super) fn replace_in_file(&mut self, replacement: &Replacement) -> StepResult {
        let path = self.path(&replacement.path);
        self.change(&path, "update", &replacement.if_failed, || {
            let text = std::fs::read_to_string(&path)?;
            if !text.contains(&replacement.old) {
                return Err(io::Error::other("the text to be replaced is not there"));
            }
            std::fs::write(&path, text.replacen(&replacement.old, &replacement.new, 1))
        })
    }

    pub(super) fn delete_file(&mut self, path: &str) -> StepResult {
        let path = self.path(path);
        self.change(&path, "delete", &[], || std::fs::remove_file(&path))
    }

    /// Reports the start of a change, makes it, and reports the result.
    fn change(
        &mut self,
        path: &Path,
        kind: &str,
        if_failed: &[crate::script::Step],
        apply: impl FnOnce() -> io::Result<()>,
    ) -> StepResult {
        let id = self.new_item();
        let display_path = self.cwd.clone().unwrap_or_default().join(path).display().to_string();
        let details = |status: &str| -> Value {
            json!({"type": "file_change", "changes": [{"path": display_path, "kind": kind}], "status": status})
        };
        self.item("item.started", &id, details("in_progress"))?;
        let result = apply();
        self.item("item.completed", &id, details(if result.is_ok() { "completed" } else { "failed" }))?;
        if result.is_ok() { Ok(()) } else { self.steps(if_failed) }
    }
}

/// Quotes a word for a POSIX shell.
fn shell_quote(word: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "+-./:=@_,%".contains(c);
    if !word.is_empty() && word.chars().all(is_bare) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The exit code as shells report it: 128 plus the signal number for a signal.
fn exit_code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Runs the process to its end. The output goes to a file: with a pipe, a process left behind by the command would
/// keep the agent waiting.
fn run_and_capture(mut process: Process) -> io::Result<Result<(ExitStatus, String), io::Error>> {
    let mut output_file = tempfile::tempfile()?;
    process.stdout(output_file.try_clone()?).stderr(output_file.try_clone()?);
    match process.status() {
        Ok(status) => Ok(Ok((status, truncated(&mut output_file)?))),
        Err(error) => Ok(Err(error)),
    }
}

fn truncated(output: &mut File) -> io::Result<String> {
    let length = output.seek(SeekFrom::End(0))?;
    let part = |output: &mut File, from: u64, length: u64| -> io::Result<String> {
        let mut bytes = Vec::new();
        output.seek(SeekFrom::Start(from))?;
        output.take(length).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    if length <= 2 * MAX_OUTPUT_HALF {
        return part(output, 0, length);
    }
    let head = part(output, 0, MAX_OUTPUT_HALF)?;
    let tail = part(output, length - MAX_OUTPUT_HALF, MAX_OUTPUT_HALF)?;
    Ok(format!("{head}\n... {} bytes omitted ...\n{tail}", length - 2 * MAX_OUTPUT_HALF))
}
