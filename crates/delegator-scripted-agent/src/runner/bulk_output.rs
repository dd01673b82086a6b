//! Bulk output: long lines, floods, a million events. Memory use stays at one chunk.

use std::io::Write;

use super::pace::Pace;
use super::{Runner, StepResult};
use crate::script::{BigLine, Events, Flood, LineShape, Stream};

/// Bytes per write.
const CHUNK: usize = 64 * 1024;
const LINE_BYTES: usize = 80;

impl Runner {
    pub(super) fn big_line(&mut self, line: BigLine) -> StepResult {
        let (head, tail) = match line.shape {
            LineShape::Plain => (String::new(), String::new()),
            LineShape::Message => (message_head(&self.new_item()), MESSAGE_TAIL.trim_end().to_owned()),
            LineShape::Command => (
                format!(
                    r#"{{"type":"item.completed","item":{{"id":"{}","type":"command_execution","command":"/bin/sh -c 'much'","aggregated_output":""#,
                    self.new_item()
                ),
                r#"","exit_code":7,"status":"failed"}}"#.to_owned(),
            ),
        };
        self.write(line.stream, head.as_bytes())?;
        let mut left = line.bytes.saturating_sub((head.len() + tail.len()) as u64);
        let filler = [b'x'; CHUNK];
        while left > 0 {
            let now = chunk_of(left, CHUNK);
            self.write(line.stream, &filler[..now])?;
            left -= now as u64;
        }
        self.write(line.stream, format!("{tail}\n").as_bytes())
    }

    pub(super) fn flood(&mut self, flood: Flood) -> StepResult {
        let line = match flood.line_bytes.unwrap_or(LINE_BYTES) {
            0 => vec![b'x'],
            length => [vec![b'x'; length - 1], vec![b'\n']].concat(),
        };
        // One line more than a chunk, because a chunk may start anywhere in a line.
        let supply = line.repeat(CHUNK / line.len() + 2);
        let mut pace = Pace::new(flood.bytes_per_second);
        let mut written: u64 = 0;
        while flood.bytes.is_none_or(|bytes| written < bytes) {
            let max = flood.bytes.map_or(CHUNK, |bytes| chunk_of(bytes - written, CHUNK));
            let now = chunk_of(pace.next(max as u64), CHUNK);
            let begin = chunk_of(written % line.len() as u64, line.len());
            self.write(flood.stream, &supply[begin..begin + now])?;
            written += now as u64;
        }
        Ok(())
    }

    pub(super) fn events(&mut self, events: Events) -> StepResult {
        let filler = vec![b'x'; events.bytes];
        let mut pace = Pace::new(events.per_second);
        let mut lines = Vec::with_capacity(CHUNK + events.bytes + LINE_BYTES);
        let mut written: u64 = 0;
        while events.count.is_none_or(|count| written < count) {
            let max = events.count.map_or(u64::MAX, |count| count - written);
            let due = pace.next(max);
            let mut ready = 0;
            while ready < due {
                let begin = lines.len();
                ready += 1;
                // Writing to memory cannot fail.
                let _ =
                    write!(lines, r#"{{"type":"item.completed","item":{{"id":"item_{}","#, self.next_item);
                let _ = write!(lines, r#""type":"agent_message","text":"event {} "#, written + ready);
                if events.timed {
                    let _ = write!(lines, "at {} ", monotonic_us());
                }
                self.next_item += 1;
                let length = lines.len() - begin + MESSAGE_TAIL.len();
                lines.extend_from_slice(&filler[..events.bytes.saturating_sub(length)]);
                lines.extend_from_slice(MESSAGE_TAIL.as_bytes());
                if lines.len() >= CHUNK {
                    self.write(Stream::Stdout, &lines)?;
                    lines.clear();
                }
            }
            self.write(Stream::Stdout, &lines)?;
            lines.clear();
            written += ready;
        }
        Ok(())
    }
}

const MESSAGE_TAIL: &str = "\"}}\n";

fn message_head(id: &str) -> String {
    format!(r#"{{"type":"item.completed","item":{{"id":"{id}","type":"agent_message","text":""#)
}

/// Microseconds of the monotonic clock, which is the same for all processes of the machine.
fn monotonic_us() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// The smaller of the two, as a length in memory.
fn chunk_of(left: u64, max: usize) -> usize {
    usize::try_from(left).map_or(max, |left| left.min(max))
}
