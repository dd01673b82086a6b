//! Stores a stream in bounded space, readable at any time.
//!
//! Part 0 is the beginning and grows by whole lines. When it is full, the stream continues in numbered parts,
//! of which the last two are retained; at the end they are appended to part 0, after a line with the number
//! of omitted bytes. So every file is complete up to its end at any moment, nothing is held in memory, and no
//! line is split.
//!
//! ```text
//! unit = max_bytes / 8     part 0: 3..4 units     two parts: 1..4 units     a line: at most 1 unit
//! ```
//!
//! A line longer than [`LineLimits::whole`] is stored as its head and tail with the number of omitted bytes
//! between them; inside a JSON string the line remains valid JSON.
//!
//! Storage errors never end a task: the rest is counted and dropped, and the error is reported.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use delegator_transcript::LineLimits;

use super::ports::{Ports, Stream, StreamSummary};

pub(crate) struct StreamStore<'a> {
    ports: &'a dyn Ports,
    stream: Stream,
    unit: u64,
    line: LineLimits,
    head: Option<File>,
    head_size: u64,
    previous: Option<Part>,
    current: Option<Part>,
    /// Length of the unfinished line at the end of the current file.
    line_length: usize,
    truncated_line: Option<TruncatedLine>,
    appended: u64,
    dropped: u64,
    problem: Option<String>,
}

struct Part {
    number: u32,
    file: File,
    size: u64,
}

struct TruncatedLine {
    omitted: u64,
    tail: Vec<u8>,
}

impl<'a> StreamStore<'a> {
    pub(crate) fn open(ports: &'a dyn Ports, stream: Stream, max_bytes: u64) -> StreamStore<'a> {
        let unit = (max_bytes / 8).max(1024);
        let whole = usize::try_from(unit).unwrap_or(usize::MAX).min(LineLimits::STANDARD.whole);
        let line = LineLimits {
            whole,
            head: LineLimits::STANDARD.head.min(whole / 2),
            tail: LineLimits::STANDARD.tail.min(whole / 4),
        };
        let (head, problem) = match ports.create(stream, 0) {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error.to_string())),
        };
        StreamStore {
            ports,
            stream,
            unit,
            line,
            head,
            head_size: 0,
            previous: None,
            current: None,
            line_length: 0,
            truncated_line: None,
            appended: 0,
            dropped: 0,
            problem,
        }
    }

    /// The length of what readers see; `None` once the stream is so long that a part of it may be omitted.
    pub(crate) fn stored(&self) -> Option<u64> {
        self.current.is_none().then_some(self.head_size)
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.appended += bytes.len() as u64;
        let result = self.try_append(bytes);
        self.record_error(result);
    }

    fn record_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.problem.get_or_insert_with(|| error.to_string());
        }
    }

    fn try_append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.problem.is_some() {
            return Ok(());
        }
        // Everything from `unwritten` to `at` is written at once.
        let (mut unwritten, mut at) = (0, 0);
        while at < bytes.len() {
            let line_end = memchr::memchr(b'\n', &bytes[at..]).map(|offset| at + offset);
            let next = line_end.map_or(bytes.len(), |end| end + 1);
            let mut content = &bytes[at..line_end.unwrap_or(next)];
            if self.truncated_line.is_none() && self.line_length + content.len() > self.line.whole {
                // Its head may not be complete yet.
                let missing = self.line.head.saturating_sub(self.line_length).min(content.len());
                self.write(&bytes[unwritten..at + missing])?;
                self.line_length += missing;
                content = &content[missing..];
                self.begin_truncation()?;
            }
            if let Some(line) = &mut self.truncated_line {
                line.push(content, self.line.tail);
                unwritten = next;
                if line_end.is_some() {
                    self.finish_truncation()?;
                    self.write(b"\n")?;
                }
            }
            self.line_length = if line_end.is_some() { 0 } else { self.line_length + content.len() };
            if line_end.is_some() && self.size() + (next - unwritten) as u64 >= self.capacity() {
                self.write(&bytes[unwritten..next])?;
                unwritten = next;
                self.next_part()?;
            }
            at = next;
        }
        self.write(&bytes[unwritten..])
    }

    fn size(&self) -> u64 {
        self.current.as_ref().map_or(self.head_size, |part| part.size)
    }

    /// How much the current file takes, give or take a line.
    fn capacity(&self) -> u64 {
        if self.current.is_some() { self.unit } else { 3 * self.unit }
    }

    fn file(&mut self) -> Option<(&File, &mut u64)> {
        match (&mut self.current, &self.head) {
            (Some(part), _) => Some((&part.file, &mut part.size)),
            (None, Some(head)) => Some((head, &mut self.head_size)),
            (None, None) => None,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some((file, size)) = self.file().filter(|_| !bytes.is_empty()) {
            file.write_all_at(bytes, *size)?;
            *size += bytes.len() as u64;
        }
        Ok(())
    }

    fn next_part(&mut self) -> io::Result<()> {
        let number = self.current.as_ref().map_or(1, |part| part.number + 1);
        let file = self.ports.create(self.stream, number)?;
        let full = self.current.replace(Part { number, file, size: 0 });
        if let Some(oldest) = std::mem::replace(&mut self.previous, full) {
            self.dropped += oldest.size;
            self.ports.remove(self.stream, oldest.number)?;
        }
        Ok(())
    }

    /// The unfinished line exceeds its limit: its head stays in the file, its end becomes the start of the
    /// tail.
    fn begin_truncation(&mut self) -> io::Result<()> {
        let (length, limits) = (self.line_length, self.line);
        let mut line = TruncatedLine { omitted: 0, tail: Vec::new() };
        if let Some((file, size)) = self.file() {
            let start = size.saturating_sub(length as u64);
            let mut head_end = [0; 32];
            let head = length.min(limits.head);
            let checked = head_end.len().min(head);
            file.read_exact_at(&mut head_end[..checked], start + (head - checked) as u64)?;
            let head = head - incomplete_suffix(&head_end[..checked]);
            let mut tail = vec![0; (length - head).min(limits.tail)];
            let tail_at = *size - tail.len() as u64;
            file.read_exact_at(&mut tail, tail_at)?;
            file.set_len(start + head as u64)?;
            *size = start + head as u64;
            line.omitted = (length - head - tail.len()) as u64;
            line.push(&tail, limits.tail);
        }
        self.truncated_line = Some(line);
        Ok(())
    }

    fn finish_truncation(&mut self) -> io::Result<()> {
        let Some(line) = self.truncated_line.take() else { return Ok(()) };
        let excess = line.tail.len().saturating_sub(self.line.tail);
        let mut tail = &line.tail[excess..];
        tail = &tail[incomplete_prefix(tail)..];
        let omitted = line.omitted + (line.tail.len() - tail.len()) as u64;
        let gap = format!(" [{omitted} bytes omitted] ");
        self.write(gap.as_bytes())?;
        self.write(tail)
    }

    /// End of the stream: merges the parts into one file.
    pub(crate) fn finish(&mut self) {
        let result = self.merge_parts();
        self.record_error(result);
    }

    fn merge_parts(&mut self) -> io::Result<()> {
        if self.truncated_line.is_some() && self.problem.is_none() {
            self.finish_truncation()?;
        }
        let parts = [self.previous.take(), self.current.take()];
        if self.dropped > 0 {
            self.write(gap_line(self.stream, self.dropped).as_bytes())?;
        }
        for part in parts.into_iter().flatten() {
            let Part { number, mut file, .. } = part;
            file.seek(SeekFrom::Start(0))?;
            let mut buffer = [0; 8192];
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => self.write(&buffer[..count])?,
                }
            }
            self.ports.remove(self.stream, number)?;
        }
        Ok(())
    }

    /// The last bytes that are stored, starting at a character boundary.
    pub(crate) fn tail(&self, max_bytes: usize) -> String {
        let Some(file) = &self.head else { return String::new() };
        let length = usize::try_from(self.head_size).unwrap_or(usize::MAX).min(max_bytes);
        let mut bytes = vec![0; length];
        if file.read_exact_at(&mut bytes, self.head_size - length as u64).is_err() {
            return String::new();
        }
        let is_partial = self.head_size > length as u64;
        let continuation_bytes =
            bytes.iter().take(3).take_while(|&&byte| is_partial && byte & 0xC0 == 0x80).count();
        String::from_utf8_lossy(&bytes[continuation_bytes..]).into_owned()
    }

    pub(crate) fn summary(&self, received: u64) -> StreamSummary {
        StreamSummary {
            received,
            stored: self.head_size,
            truncated: self.dropped > 0 || self.head_size < self.appended,
            problem: self.problem.clone(),
        }
    }
}

const EVENTS_GAP: &str = "{\"type\":\"delegator.omitted\",\"bytes\":";

/// The bytes that are missing where this line of the stored events stands; `None` for a line of the agent.
pub fn omitted_bytes(line: &str) -> Option<u64> {
    line.strip_prefix(EVENTS_GAP)?.strip_suffix('}')?.parse().ok()
}

fn gap_line(stream: Stream, bytes: u64) -> String {
    match stream {
        Stream::Events => format!("{EVENTS_GAP}{bytes}}}\n"),
        Stream::Stderr | Stream::Verify => format!("[{bytes} bytes omitted]\n"),
    }
}

impl TruncatedLine {
    /// Appends to the tail, of which at least the last `keep` bytes are retained.
    fn push(&mut self, bytes: &[u8], keep: usize) {
        let from = bytes.len().saturating_sub(keep);
        if self.tail.len() + bytes.len() - from > 2 * keep {
            let excess = self.tail.len().saturating_sub(keep).min(self.tail.len());
            self.tail.drain(..excess);
            self.omitted += excess as u64;
        }
        self.omitted += from as u64;
        self.tail.extend_from_slice(&bytes[from..]);
    }
}

/// Number of trailing bytes that may be the start of an escape or a character.
fn incomplete_suffix(bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(MAX_ESCAPE_BYTES);
    let mut end = bytes.len();
    if let Some(first) = memchr::memchr(b'\\', &bytes[window..]) {
        end = window + first;
        end -= bytes[..end].iter().rev().take_while(|&&byte| byte == b'\\').count();
        // Half a surrogate pair is no character.
        if end >= 6 && is_surrogate(&bytes[end - 6..end], b"89abAB") {
            end -= 6;
        }
    }
    let last = bytes[..end].iter().rev().take(4).position(|&byte| byte & 0xC0 != 0x80);
    if let Some(back) = last.map(|back| back + 1) {
        let needed = match bytes[end - back] {
            0..=0x7F => 1,
            0x80..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0.. => 4,
        };
        if needed > back {
            end -= back;
        }
    }
    bytes.len() - end
}

/// Number of leading bytes that may be the end of an escape or a character.
fn incomplete_prefix(bytes: &[u8]) -> usize {
    let backslashes = bytes.iter().take_while(|&&byte| byte == b'\\').count();
    // The first byte after the backslashes may be escaped; then follows the rest of its character.
    let first = backslashes + 1;
    let more = bytes.iter().skip(first).take_while(|&&byte| byte & 0xC0 == 0x80).count();
    let start = (first + more).min(bytes.len());
    let second_half = (start..bytes.len().min(start + MAX_ESCAPE_BYTES))
        .find(|&at| bytes.get(at..at + 6).is_some_and(|escape| is_surrogate(escape, b"cdefCDEF")));
    match second_half {
        Some(at) if at < start + 6 || !is_surrogate(&bytes[at - 6..at], b"89abAB") => at + 6,
        _ => start,
    }
}

/// Two escapes of six bytes.
const MAX_ESCAPE_BYTES: usize = 12;

fn is_surrogate(escape: &[u8], halves: &[u8]) -> bool {
    escape.len() == 6
        && escape.starts_with(b"\\u")
        && matches!(escape[2], b'd' | b'D')
        && halves.contains(&escape[3])
}

#[cfg(test)]
mod tests;
