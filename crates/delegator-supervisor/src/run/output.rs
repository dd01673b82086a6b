//! Reads the agent's two streams: decodes them in memory and stores them redacted.
//!
//! Decoding sees the original bytes, so decisions do not depend on redaction; the store only ever gets
//! redacted bytes.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};

use delegator_domain::agents::AgentProtocol;
use delegator_domain::redact::RedactStream;
use delegator_transcript::{
    Effect, Framer, ItemDetails, ItemPhase, Line, LineBody, LineLimits, LineSummarizer, LineText, ThreadEvent,
};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::ioctl_fionread;

use super::dialogue::Dialogue;
use super::ports::{ActionPhase, AgentAction, Ports, RunSpec, Stream, StreamSummary};
use super::sentinel::SentinelFilter;
use super::stream_store::StreamStore;
use crate::verdict::StderrDigest;

/// A read that fills the buffer doubles it, up to this size. Redaction has buffers of the same size, so each
/// supervisor needs this memory several times.
const MAX_READ_BUFFER: usize = 32 << 10;
const INITIAL_READ_BUFFER: usize = 8 << 10;
/// A larger buffer is shrunk to this size after use.
const MAX_RETAINED_BUFFER: usize = 128 << 10;

/// The reading end of a pipe; reads never block.
pub(crate) struct Pipe<R> {
    reader: Option<R>,
    pub(crate) received: u64,
}

impl<R: Read + AsFd> Pipe<R> {
    pub(crate) fn new(reader: Option<R>) -> io::Result<Pipe<R>> {
        if let Some(reader) = &reader {
            fcntl_setfl(reader, OFlags::NONBLOCK)?;
        }
        Ok(Pipe { reader, received: 0 })
    }

    /// `None` after the end of the stream.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn available(&self) -> u64 {
        self.reader.as_ref().and_then(|reader| ioctl_fionread(reader).ok()).unwrap_or(0)
    }

    /// The next bytes, if any are available now.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let reader = self.reader.as_mut()?;
        if buffer.is_empty() {
            buffer.resize(INITIAL_READ_BUFFER, 0);
        }
        loop {
            match reader.read(buffer) {
                Ok(0) => {
                    self.reader = None;
                    return None;
                }
                Ok(count) => {
                    self.received += count as u64;
                    if count == buffer.len() && count < MAX_READ_BUFFER {
                        buffer.resize(count * 2, 0);
                    }
                    return Some(&buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => {
                    self.reader = None;
                    return None;
                }
            }
        }
    }
}

pub(crate) struct RedactingStore<'a> {
    redact: RedactStream,
    redacted: Vec<u8>,
    pub(crate) store: StreamStore<'a>,
}

impl<'a> RedactingStore<'a> {
    fn new(ports: &'a dyn Ports, stream: Stream, spec: &RunSpec) -> RedactingStore<'a> {
        let store = StreamStore::open(ports, stream, spec.max_stream_bytes);
        RedactingStore { redact: spec.redactor.stream(), redacted: Vec::new(), store }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.redact.push(bytes, &mut self.redacted);
        self.flush();
    }

    fn finish(&mut self) {
        self.redact.finish(&mut self.redacted);
        self.flush();
        self.store.finish();
    }

    fn flush(&mut self) {
        self.store.append(&self.redacted);
        self.redacted.clear();
        self.redacted.shrink_to(MAX_RETAINED_BUFFER);
    }
}

pub(crate) struct EventReader<'a, R> {
    pub(crate) pipe: Pipe<R>,
    pub(crate) summarizer: LineSummarizer,
    framer: Framer,
    pub(crate) sink: RedactingStore<'a>,
    ports: &'a dyn Ports,
    /// When the pipe was last empty: later events were printed after that.
    empty_at_ms: i64,
}

impl<'a, R: Read + AsFd> EventReader<'a, R> {
    pub(crate) fn new(pipe: Pipe<R>, ports: &'a dyn Ports, spec: &RunSpec) -> EventReader<'a, R> {
        EventReader {
            pipe,
            summarizer: LineSummarizer::new(spec.fold.clone()),
            framer: Framer::new(LineLimits::STANDARD),
            sink: RedactingStore::new(ports, Stream::Events, spec),
            ports,
            empty_at_ms: ports.now_ms(),
        }
    }

    pub(crate) fn record_empty(&mut self) {
        self.empty_at_ms = self.ports.now_ms();
    }

    /// Reads once. Returns the number of bytes, and whether they count as activity. What the conversation
    /// wants to send is stored between two lines of the agent.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, dialogue: &mut Dialogue) -> (u64, bool) {
        let Some(bytes) = self.pipe.read(buffer) else {
            self.record_empty();
            return (0, false);
        };
        if let Some(stored) = self.sink.store.stored() {
            self.ports.record_event_time(stored);
        }
        let lines_before = self.framer.lines();
        let (lines, rest) = bytes.split_at(memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1));
        let mut is_activity = self.process(lines, dialogue);
        // In the middle of a long line, the agent is still writing it.
        is_activity |= self.framer.lines() == lines_before;
        self.send_pending(dialogue);
        self.process(rest, dialogue);
        (bytes.len() as u64, is_activity)
    }

    /// Stores and decodes bytes of the agent. Returns whether one of their lines counts as activity.
    fn process(&mut self, bytes: &[u8], dialogue: &mut Dialogue) -> bool {
        let EventReader { summarizer, framer, sink, ports, empty_at_ms, .. } = self;
        let mut is_activity = false;
        let on_action = |item: &str, action: AgentAction, phase: ActionPhase| {
            ports.on_action(item, action, phase, *empty_at_ms);
        };
        framer.push(bytes, |line| {
            is_activity |= is_activity_line(summarizer, &line, on_action);
            dialogue.on_line(&line);
        });
        sink.append(bytes);
        is_activity
    }

    /// Stores what the conversation wants to send and passes it on to be written. Waits for the end of the
    /// agent's current line, so that the stored lines stay whole.
    pub(crate) fn send_pending(&mut self, dialogue: &mut Dialogue) {
        let EventReader { summarizer, framer, sink, .. } = self;
        if framer.is_mid_line() {
            return;
        }
        dialogue.flush(|line| {
            framer.push(line, |line| {
                summarizer.push_line(&line);
            });
            sink.append(line);
        });
    }

    pub(crate) fn lines(&self) -> u64 {
        self.framer.lines()
    }

    pub(crate) fn finish(&mut self) {
        let EventReader { summarizer, framer, sink, .. } = self;
        framer.finish(|line| {
            summarizer.push_line(&line);
        });
        summarizer.finish();
        sink.finish();
    }
}

/// Processes a line. All output counts as activity, except blank lines and reconnect messages.
fn is_activity_line(
    summarizer: &mut LineSummarizer,
    line: &Line<'_>,
    on_action: impl Fn(&str, AgentAction, ActionPhase),
) -> bool {
    let is_blank = matches!(line.body, LineBody::Whole(bytes) if bytes.trim_ascii().is_empty());
    let mut is_retry = false;
    let observed = summarizer.push_line_with(line, |effect| {
        is_retry |= matches!(effect, Effect::Emit(ThreadEvent::Error { .. }));
        if let Effect::Emit(ThreadEvent::Item { phase, item }) = effect
            && let Some(action) = action_of(&item.details)
        {
            match phase {
                ItemPhase::Started => on_action(&item.id.resolve(), action, ActionPhase::Started),
                ItemPhase::Completed => on_action(&item.id.resolve(), action, ActionPhase::Ended),
                ItemPhase::Updated => {}
            }
        }
    });
    observed.is_activity || !(is_retry || is_blank)
}

fn action_of(details: &ItemDetails<'_>) -> Option<AgentAction> {
    match details {
        ItemDetails::CommandExecution(_) => Some(AgentAction::Command),
        ItemDetails::FileChange { .. } => Some(AgentAction::Patch),
        _ => None,
    }
}

/// Standard error of an agent, or the whole output of a verification.
pub(crate) struct StderrReader<'a, R> {
    pub(crate) pipe: Pipe<R>,
    pub(crate) digest: StderrDigest,
    pub(crate) sentinel: SentinelFilter,
    framer: Framer,
    pub(crate) sink: RedactingStore<'a>,
}

/// Longer lines are truncated before they are classified.
const STDERR_LINE_LIMITS: LineLimits = LineLimits { whole: 8 << 10, head: 4 << 10, tail: 1 << 10 };

impl<'a, R: Read + AsFd> StderrReader<'a, R> {
    /// Removes the sentinel line, if there is one.
    pub(crate) fn new(
        pipe: Pipe<R>,
        ports: &'a dyn Ports,
        spec: &RunSpec,
        stream: Stream,
        sentinel: Option<&str>,
    ) -> StderrReader<'a, R> {
        let is_verification = stream == Stream::Verify;
        let protocol = if is_verification { AgentProtocol::Plain } else { spec.protocol };
        StderrReader {
            pipe,
            digest: StderrDigest::new(protocol),
            sentinel: SentinelFilter::new(sentinel),
            framer: Framer::new(STDERR_LINE_LIMITS),
            sink: RedactingStore::new(ports, stream, spec),
        }
    }

    /// Reads once. Returns the number of bytes, and whether they count as activity.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> (u64, bool) {
        let StderrReader { pipe, digest, sentinel, framer, sink } = self;
        let Some(bytes) = pipe.read(buffer) else { return (0, false) };
        let mut is_activity = false;
        let lines_before = framer.lines();
        framer.push(bytes, |line| is_activity |= digest.push_line(&text_of(&line)));
        is_activity |= framer.lines() == lines_before;
        sentinel.push(bytes, &mut |output| sink.append(output));
        (bytes.len() as u64, is_activity)
    }

    pub(crate) fn finish(&mut self) {
        let StderrReader { digest, sentinel, framer, sink, .. } = self;
        framer.finish(|line| {
            digest.push_line(&text_of(&line));
        });
        sentinel.finish(&mut |output| sink.append(output));
        sink.finish();
    }

    /// The sizes of the stream, without the sentinel.
    pub(crate) fn summary(&self) -> StreamSummary {
        let printed = self.pipe.received.saturating_sub(self.sentinel.removed_bytes);
        self.sink.store.summary(printed)
    }
}

fn text_of(line: &Line<'_>) -> String {
    match line.text() {
        LineText::Whole(text) => text.into_owned(),
        LineText::Truncated { head, .. } => head.into_owned(),
    }
}
