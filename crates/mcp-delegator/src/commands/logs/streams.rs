//! The streams of a task, each read from where the reading stopped.

use delegator_registry::{NewBytes, ReadPosition, TaskDir, TaskFile};

use crate::commands::prelude::*;

/// Bytes of a stream that are read at once.
const CHUNK: u64 = 4 << 20;

#[derive(Debug)]
pub struct LogStreams {
    dir: TaskDir,
    streams: [(TaskFile, ReadPosition); 4],
}

impl LogStreams {
    pub fn new(dir: TaskDir) -> LogStreams {
        let streams = [TaskFile::Setup, TaskFile::Events, TaskFile::Stderr, TaskFile::Verify];
        LogStreams { dir, streams: streams.map(|file| (file, ReadPosition::default())) }
    }

    /// Passes on what is new, chunk by chunk in whole lines. The last line of an ended task may have no line
    /// end.
    pub fn read_new<E: From<EngineError>>(
        &mut self,
        has_ended: bool,
        mut on_lines: impl FnMut(TaskFile, NewBytes) -> Result<(), E>,
    ) -> Result<(), E> {
        for (file, position) in &mut self.streams {
            loop {
                let before = *position;
                let read = |position: &mut ReadPosition, limit| {
                    self.dir.read_new(*file, position, limit).map_err(EngineError::from)
                };
                let mut new = read(position, CHUNK)?;
                let has_more = new.bytes.len() as u64 == CHUNK;
                if has_more && !new.bytes.contains(&b'\n') {
                    *position = before;
                    new = read(position, u64::MAX)?;
                }
                if has_more || !has_ended {
                    let complete = new.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    position.offset -= (new.bytes.len() - complete) as u64;
                    new.bytes.truncate(complete);
                }
                if !new.bytes.is_empty() || new.is_restarted {
                    on_lines(*file, new)?;
                }
                if !has_more {
                    break;
                }
            }
        }
        Ok(())
    }
}
