//! The user's command that answers the tool calls of an agent: one process per call.
//!
//! It reads the call as a line of JSON. Its standard output is the output of the tool; if it does not exit with 0, its standard
//! error is the error. It may take as long as a user may take to answer. It runs outside the agent's enclosure, but
//! belongs to the task: whatever it leaves behind is swept with the agent's processes.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use delegator_domain::question::{Answer, QuestionNumber};
use delegator_domain::task::ExitStatus;
use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use super::super::output::Pipe;
use super::super::spawn::spawn_tool;
use super::super::stdin_writer::StdinWriter;
use super::Run;
use crate::conversation::{Control, TOOL_ERROR};

/// Of each of its streams.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

pub(super) struct ToolCommand {
    question: QuestionNumber,
    pub(super) pid: i32,
    deadline: Duration,
    stdin: StdinWriter,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    output: Vec<u8>,
    errors: Vec<u8>,
    pub(super) exit: Option<ExitStatus>,
}

impl ToolCommand {
    /// What to wait for.
    pub(super) fn sources(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let input = self.stdin.pending_fd().map(|fd| (fd, PollFlags::OUT));
        let outputs = [self.stdout.fd(), self.stderr.fd()].into_iter().flatten();
        input.into_iter().chain(outputs.map(|fd| (fd, PollFlags::IN)))
    }

    /// Writes and reads what is possible now.
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
        let failed = |error: String| Answer { option: Some(TOOL_ERROR.to_owned()), text: Some(error) };
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

impl Run<'_> {
    pub(super) fn start_tool_command(
        &mut self,
        question: QuestionNumber,
        command: &[OsString],
        call: String,
    ) {
        match self.spawn_tool_command(question, command, call) {
            Ok(command) => self.tool_commands.push(command),
            Err(error) => {
                let text = Some(format!("the tool command could not be started: {error}"));
                let answer = Answer { option: Some(TOOL_ERROR.to_owned()), text };
                self.control(Control::Answer { question, answer });
            }
        }
    }

    fn spawn_tool_command(
        &self,
        question: QuestionNumber,
        command: &[OsString],
        call: String,
    ) -> io::Result<ToolCommand> {
        let (program, args) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let spawned = spawn_tool(program, args, &self.spec, self.ports)?;
        let pid = i32::try_from(spawned.child.id()).map_err(io::Error::other)?;
        let mut stdin = StdinWriter::new(spawned.stdin)?;
        stdin.push(format!("{call}\n").into_bytes());
        stdin.close_when_written();
        Ok(ToolCommand {
            question,
            pid,
            deadline: self.now() + self.spec.answer_timeout,
            stdin,
            stdout: Pipe::new(spawned.stdout)?,
            stderr: Pipe::new(spawned.stderr)?,
            output: Vec::new(),
            errors: Vec::new(),
            exit: None,
        })
    }

    /// Passes results on to the agent.
    pub(super) fn continue_tool_commands(&mut self, now: Duration) {
        let timeout = self.spec.answer_timeout;
        let mut answers = Vec::new();
        self.tool_commands.retain_mut(|command| {
            command.exchange(&mut self.buffer);
            let Some(answer) = command.answer(now, timeout) else { return true };
            command.kill();
            answers.push((command.question, answer));
            false
        });
        for (question, answer) in answers {
            self.control(Control::Answer { question, answer });
        }
    }

    pub(super) fn end_tool_command(&mut self, question: QuestionNumber) {
        for command in self.tool_commands.extract_if(.., |command| command.question == question) {
            command.kill();
        }
    }

    pub(super) fn tool_command_deadlines(&self) -> impl Iterator<Item = Duration> {
        self.tool_commands.iter().map(|command| command.deadline)
    }
}
