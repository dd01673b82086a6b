//! Runs a script: one step after the other, on one thread.
//!
//! A step either does what it describes or ends the agent. The only state is what Codex itself would have: the
//! number of the next item, the open plan, whether the last turn failed.

mod actions;
mod bulk_output;
mod children;
mod codex_events;
mod pace;
mod signals;
mod test_files;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::process_context::ProcessContext;
use crate::script::{Choice, RawBytes, Repeat, Script, StdinRead, Step, Stream};

/// The script contains a step that cannot be executed.
const EXIT_SCRIPT_ERROR: u8 = 2;
/// Codex panics when its stdout is closed.
const EXIT_OUTPUT_CLOSED: u8 = 101;

/// Why the script ended before its last step.
#[derive(Debug)]
enum RunEnd {
    /// An `exit` step.
    Exit(u8),
    /// The reader closed the output.
    OutputClosed,
    /// The script contains a step that cannot be executed.
    ScriptError(String),
}

type StepResult = Result<(), RunEnd>;

/// Converts an I/O error, with a description of what failed.
fn script_error(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> RunEnd {
    move |error| RunEnd::ScriptError(format!("{what}: {error}"))
}

/// Runs a script to its end and returns the exit code. It takes over the process: steps may trap signals, end the
/// process or have it killed.
pub fn run(script: &Script, context: ProcessContext) -> u8 {
    let mut runner = Runner::new(script, context);
    match runner.steps(&script.steps) {
        Ok(()) => runner.exit_code,
        Err(RunEnd::Exit(code)) => code,
        Err(RunEnd::OutputClosed) => EXIT_OUTPUT_CLOSED,
        Err(RunEnd::ScriptError(message)) => {
            // If stderr is closed, the exit code still reports the error.
            let _ = writeln!(runner.stderr, "scripted-agent: {message}");
            EXIT_SCRIPT_ERROR
        }
    }
}

/// A running script.
#[derive(Debug)]
struct Runner {
    started_at: Instant,
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    /// The directory of `--cd`; empty for the current directory.
    directory: PathBuf,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: File,
    /// Other open descriptors, for `record`: listed before the agent opens any itself.
    inherited: serde_json::Map<String, serde_json::Value>,
    /// Bytes read from stdin so far.
    stdin_bytes: Vec<u8>,
    stdin_ended: bool,
    random: fastrand::Rng,
    next_item: u64,
    plan: Option<codex_events::OpenPlan>,
    exit_code: u8,
    /// Started processes that were not waited for.
    children: Vec<std::process::Child>,
}

impl Runner {
    fn new(script: &Script, context: ProcessContext) -> Self {
        let ProcessContext { argv, env, cwd, stdin, stdout, stderr } = context;
        Self {
            started_at: Instant::now(),
            inherited: test_files::inherited_descriptors([&stdin, &stdout, &stderr]),
            directory: codex_events::requested_directory(&argv),
            argv,
            env,
            cwd,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr,
            stdin_bytes: Vec::new(),
            stdin_ended: false,
            random: script.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            next_item: 0,
            plan: None,
            exit_code: 0,
            children: Vec::new(),
        }
    }

    fn steps(&mut self, steps: &[Step]) -> StepResult {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> StepResult {
        match step {
            Step::ThreadStarted(which) => self.thread_started(which),
            Step::TurnStarted => self.turn_started(),
            Step::Message(text) => self.message(text),
            Step::Reasoning(text) => self.reasoning(text),
            Step::Plan(plan) => self.plan(plan),
            Step::PlanDone(done) => self.plan_done(*done),
            Step::Warning(text) => self.warning(text),
            Step::Error(text) => self.error(text),
            Step::Command(command) => self.command(command),
            Step::WriteFile(file) => self.write_file(file),
            Step::ReplaceInFile(replacement) => self.replace_in_file(replacement),
            Step::DeleteFile(path) => self.delete_file(path),
            Step::TurnCompleted(usage) => self.turn_completed(*usage),
            Step::TurnFailed(text) => self.turn_failed(text),
            Step::Event(value) => self.line(&value.to_string()),
            Step::Line(text) => self.line(text),
            Step::StderrLine(text) => self.write(Stream::Stderr, format!("{text}\n").as_bytes()),
            Step::Raw(raw) => self.raw(raw),
            Step::BigLine(line) => self.big_line(*line),
            Step::Flood(flood) => self.flood(*flood),
            Step::Events(events) => self.events(*events),
            Step::CloseStdout => {
                self.stdout = None;
                Ok(())
            }
            Step::ReadStdin(read) => self.read_stdin(*read),
            Step::Record(record) => self.record(record),
            Step::TouchFile(path) => self.touch_file(path),
            Step::WaitForFile(path) => self.wait_for_file(path),
            Step::DelayMs(time) => Self::delay(*time),
            Step::DelayBetweenMs(min, max) => self.delay_between(*min, *max),
            Step::SpinMs(time) => Self::spin(*time),
            Step::Silent => loop {
                pace::sleep(Duration::from_secs(3600));
            },
            Step::Trap(trap) => self.trap(trap),
            Step::Child(child) => self.child(child),
            Step::ForkTree(tree) => self.fork_tree(*tree),
            Step::Exit(code) => Err(RunEnd::Exit(*code)),
            Step::Raise(signal) => signals::raise(*signal),
            Step::Choose(choice) => self.choose(choice),
            Step::Repeat(repeat) => self.repeat(repeat),
        }
    }

    /// Writes a line to stdout in one write, because Codex never splits a line either.
    fn line(&mut self, text: &str) -> StepResult {
        self.write(Stream::Stdout, format!("{text}\n").as_bytes())
    }

    fn write(&mut self, stream: Stream, bytes: &[u8]) -> StepResult {
        let written = match (stream, &mut self.stdout) {
            (Stream::Stderr, _) => self.stderr.write_all(bytes),
            (Stream::Stdout, Some(stdout)) => stdout.write_all(bytes),
            (Stream::Stdout, None) => return Err(RunEnd::OutputClosed),
        };
        written.map_err(|_| RunEnd::OutputClosed)
    }

    fn raw(&mut self, raw: &RawBytes) -> StepResult {
        let mut bytes = raw.text.clone().into_bytes();
        let digits: Vec<char> = raw.hex.chars().filter(|digit| !digit.is_whitespace()).collect();
        for pair in digits.chunks(2) {
            let byte = u8::from_str_radix(&String::from_iter(pair), 16);
            let byte = byte.ok().filter(|_| pair.len() == 2);
            bytes.push(byte.ok_or_else(|| RunEnd::ScriptError(format!("not bytes in hex: {}", raw.hex)))?);
        }
        self.write(raw.stream, &bytes)
    }

    fn read_stdin(&mut self, read: StdinRead) -> StepResult {
        let Some(stdin) = &mut self.stdin else {
            return Err(RunEnd::ScriptError("stdin is closed already".to_owned()));
        };
        let failed = script_error("cannot read stdin");
        match read {
            StdinRead::Never => {}
            StdinRead::Close => self.stdin = None,
            StdinRead::All => {
                stdin.read_to_end(&mut self.stdin_bytes).map_err(failed)?;
                self.stdin_ended = true;
            }
            StdinRead::OneByte => {
                stdin.take(1).read_to_end(&mut self.stdin_bytes).map_err(failed)?;
                self.stdin = None;
            }
            // Byte by byte, so that the text after the line stays unread.
            StdinRead::Line => loop {
                let before = self.stdin_bytes.len();
                stdin
                    .take(1)
                    .read_to_end(&mut self.stdin_bytes)
                    .map_err(script_error("cannot read stdin"))?;
                self.stdin_ended = self.stdin_bytes.len() == before;
                if self.stdin_ended || self.stdin_bytes.last() == Some(&b'\n') {
                    break;
                }
            },
        }
        Ok(())
    }

    fn choose(&mut self, choice: &Choice) -> StepResult {
        if choice.among.is_empty() {
            return Ok(());
        }
        let index = match choice.seed {
            Some(seed) => fastrand::Rng::with_seed(seed).usize(..choice.among.len()),
            None => self.random.usize(..choice.among.len()),
        };
        self.steps(&choice.among[index])
    }

    fn repeat(&mut self, repeat: &Repeat) -> StepResult {
        let mut completed = 0;
        while repeat.times.is_none_or(|times| completed < times) {
            self.steps(&repeat.steps)?;
            completed += 1;
        }
        Ok(())
    }

    /// Resolves a path of the script.
    fn path(&self, text: &str) -> PathBuf {
        self.directory.join(text.replace("{pid}", &std::process::id().to_string()))
    }
}
