//! The user's command that answers the tool calls of an agent: one process per call.
//!
//! It reads the call as a line of JSON. Its standard output is the output of the tool; if it does not exit
//! with 0, its standard error is the error. It may take as long as a user may take to answer. It runs outside
//! the agent's enclosure, but belongs to the task: whatever it leaves behind is swept with the agent's
//! processes.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use delegator_domain::question::{Answer, QuestionNumber};
use delegator_domain::task::ExitStatus;
use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use super::super::dialogue::StdinWriter;
use super::super::output::Pipe;
use super::super::spawn::spawn_tool;
use super::RunContext;
use crate::conversation::TOOL_ERROR;

const MAX_OUTPUT_BYTES: usize = 1 << 20;

struct ToolCommand {
    question: QuestionNumber,
    pid: i32,
    deadline: Duration,
    stdin: StdinWriter,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    output: Vec<u8>,
    errors: Vec<u8>,
    exit: Option<ExitStatus>,
}

impl ToolCommand {
    fn start(
        question: QuestionNumber,
        command: &[OsString],
        call: &str,
        run: &RunContext<'_>,
    ) -> io::Result<ToolCommand> {
        let (program, args) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let child = spawn_tool(program, args, &run.spec, run.ports)?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let mut stdin = StdinWriter::new(child.stdin)?;
        stdin.push(format!("{call}\n").into_bytes());
        stdin.close_when_written();
        Ok(ToolCommand {
            question,
            pid,
            deadline: run.now() + run.spec.answer_timeout,
            stdin,
            stdout: Pipe::new(child.stdout)?,
            stderr: Pipe::new(child.stderr)?,
            output: Vec::new(),
            errors: Vec::new(),
            exit: None,
        })
    }

    fn sources(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let input = self.stdin.pending_fd().map(|fd| (fd, PollFlags::OUT));
        let outputs = [self.stdout.fd(), self.stderr.fd()].into_iter().flatten();
        input.into_iter().chain(outputs.map(|fd| (fd, PollFlags::IN)))
    }

    fn exchange(&mut self, buffer: &mut Vec<u8>) {
        self.stdin.write_some();
        while let Some(bytes) = self.stdout.read(buffer).filter(|_| self.output.len() <= MAX_OUTPUT_BYTES) {
            self.output.extend_from_slice(bytes);
        }
        while let Some(bytes) = self.stderr.read(buffer).filter(|_| self.errors.len() <= MAX_OUTPUT_BYTES) {
            self.errors.extend_from_slice(bytes);
        }
    }

    /// The answer to the call, once the command has ended or has to be.
    fn answer(&self, now: Duration, timeout: Duration) -> Option<Answer> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.output.len() > MAX_OUTPUT_BYTES || self.errors.len() > MAX_OUTPUT_BYTES {
            return Some(failed(format!("the tool command printed more than {MAX_OUTPUT_BYTES} bytes")));
        }
        match self.exit {
            Some(ExitStatus::Code(0)) => Some(Answer { option: None, text: Some(text(&self.output)) }),
            Some(exit) => {
                let printed = [&self.errors, &self.output].map(|bytes| text(bytes).trim().to_owned());
                let error = printed.into_iter().find(|text| !text.is_empty());
                Some(failed(error.unwrap_or_else(|| match exit {
                    ExitStatus::Code(code) => format!("the tool command ended with exit code {code}"),
                    ExitStatus::Signal(signal) => format!("the tool command was killed by signal {signal}"),
                })))
            }
            None if now >= self.deadline => {
                Some(failed(format!("the tool command took longer than {} s", timeout.as_secs())))
            }
            None => None,
        }
    }

    /// Kills it and what it started, unless it has ended.
    fn kill(&self) {
        if let (None, Some(pid)) = (self.exit, Pid::from_raw(self.pid)) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[derive(Default)]
pub(super) struct ToolCommands(Vec<ToolCommand>);

impl ToolCommands {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Starts a command for a call; returns the answer if that fails.
    pub(super) fn start(
        &mut self,
        question: QuestionNumber,
        command: &[OsString],
        call: &str,
        run: &RunContext<'_>,
    ) -> Result<(), Answer> {
        let started = ToolCommand::start(question, command, call, run);
        let command =
            started.map_err(|error| failed(format!("the tool command could not be started: {error}")))?;
        self.0.push(command);
        Ok(())
    }

    /// Exchanges data with the commands. Returns the answers of those that have ended.
    pub(super) fn exchange(
        &mut self,
        now: Duration,
        timeout: Duration,
        buffer: &mut Vec<u8>,
    ) -> Vec<(QuestionNumber, Answer)> {
        let mut answers = Vec::new();
        self.0.retain_mut(|command| {
            command.exchange(buffer);
            let Some(answer) = command.answer(now, timeout) else { return true };
            command.kill();
            answers.push((command.question, answer));
            false
        });
        answers
    }

    pub(super) fn end(&mut self, question: QuestionNumber) {
        for command in self.0.extract_if(.., |command| command.question == question) {
            command.kill();
        }
    }

    pub(super) fn record_exit(&mut self, pid: i32, exit: Option<ExitStatus>) {
        if let Some(command) = self.0.iter_mut().find(|command| command.pid == pid) {
            command.exit = exit;
        }
    }

    pub(super) fn deadlines(&self) -> impl Iterator<Item = Duration> {
        self.0.iter().map(|command| command.deadline)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.0.iter().flat_map(ToolCommand::sources)
    }
}

fn failed(error: String) -> Answer {
    Answer { option: Some(TOOL_ERROR.to_owned()), text: Some(error) }
}
