//! The output streams of a run.

use std::io;
use std::process::{ChildStderr, ChildStdout};

use super::super::dialogue::Dialogue;
use super::super::output::{EventReader, Pipe, StderrReader};
use super::super::ports::{Ports, RunSpec, Stream};

/// Reads of one stream per round, so that the other sources get their turn.
const MAX_READS_PER_ROUND: usize = 8;

pub(super) enum Role {
    Agent,
    /// A command that verifies the agent's work, and the sentinel line it prints first.
    Verification {
        sentinel: Option<String>,
    },
}

pub(super) struct Streams<'a> {
    /// `None` for a verification: it prints everything to one pipe, read as `stderr`.
    pub(super) stdout: Option<EventReader<'a, ChildStdout>>,
    pub(super) stderr: StderrReader<'a, ChildStderr>,
    pub(super) buffer: Vec<u8>,
    /// Whether the last round read everything that was available.
    pub(super) is_drained: bool,
}

impl<'a> Streams<'a> {
    pub(super) fn open(
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
        role: &Role,
        spec: &RunSpec,
        ports: &'a dyn Ports,
    ) -> io::Result<Streams<'a>> {
        let (stdout, stderr) = (Pipe::new(stdout)?, Pipe::new(stderr)?);
        let (stdout, stream, sentinel) = match role {
            Role::Agent => (Some(EventReader::new(stdout, ports, spec)), Stream::Stderr, None),
            Role::Verification { sentinel } => (None, Stream::Verify, sentinel.as_deref()),
        };
        let stderr = StderrReader::new(stderr, ports, spec, stream, sentinel);
        Ok(Streams { stdout, stderr, buffer: Vec::new(), is_drained: false })
    }

    pub(super) fn read_ready(&mut self, stdout: bool, stderr: bool, dialogue: &mut Dialogue) -> bool {
        let mut is_activity = false;
        self.is_drained = true;
        if let Some(events) = self.stdout.as_mut().filter(|_| stdout) {
            self.is_drained = false;
            for _ in 0..MAX_READS_PER_ROUND {
                let (count, is_active) = events.read(&mut self.buffer, dialogue);
                is_activity |= is_active;
                if count == 0 {
                    self.is_drained = true;
                    break;
                }
            }
        }
        if stderr {
            is_activity |= self.stderr.read(&mut self.buffer).1;
        }
        is_activity
    }

    /// Reads the bytes that are in the pipes now, and no more.
    pub(super) fn drain(&mut self, dialogue: &mut Dialogue) {
        if let Some(events) = &mut self.stdout {
            let available = events.pipe.available();
            drain(available, || events.read(&mut self.buffer, dialogue).0);
        }
        let available = self.stderr.pipe.available();
        drain(available, || self.stderr.read(&mut self.buffer).0);
    }

    pub(super) fn send_pending(&mut self, dialogue: &mut Dialogue) {
        match &mut self.stdout {
            Some(events) => events.send_pending(dialogue),
            None => dialogue.flush(|_| {}),
        }
    }
}

fn drain(mut remaining: u64, mut read: impl FnMut() -> u64) {
    while remaining > 0 {
        let count = read();
        remaining = if count == 0 { 0 } else { remaining.saturating_sub(count) };
    }
}
