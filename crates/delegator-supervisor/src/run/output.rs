//! The agent's two streams, from the pipe to the disk.
//!
//! Every byte goes two ways. The account reads it as it is, in memory, so that what is decided does not depend on what
//! is hidden; the store gets it redacted.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};

use delegator_domain::redact::{RedactStream, Redactor};
use delegator_transcript::{
    Account, Effect, FoldOptions, Framer, Line, LineBody, LineLimits, LineText, ThreadEvent,
};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::ioctl_fionread;

use super::ports::{Ports, Stream};
use super::store::Store;
use super::witness::Witness;
use crate::verdict::StderrDigest;

/// A read that fills the buffer makes it grow, up to this.
const MOST_BUFFER: usize = 64 << 10;
const FIRST_BUFFER: usize = 8 << 10;
/// A buffer that one big piece made bigger than this is given back.
const KEPT_BUFFER: usize = 128 << 10;

/// The end of a pipe that never blocks.
pub(crate) struct Pipe<R> {
    reader: Option<R>,
    received: u64,
}

impl<R: Read + AsFd> Pipe<R> {
    pub(crate) fn new(reader: Option<R>) -> io::Result<Pipe<R>> {
        if let Some(reader) = &reader {
            fcntl_setfl(reader, OFlags::NONBLOCK)?;
        }
        Ok(Pipe { reader, received: 0 })
    }

    /// Nothing once the stream is over.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// How much lies in the pipe now.
    pub(crate) fn waiting(&self) -> u64 {
        self.reader.as_ref().and_then(|reader| ioctl_fionread(reader).ok()).unwrap_or(0)
    }

    /// The next bytes, if there are any now.
    fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let reader = self.reader.as_mut()?;
        if buffer.is_empty() {
            buffer.resize(FIRST_BUFFER, 0);
        }
        loop {
            match reader.read(buffer) {
                Ok(0) => {
                    self.reader = None;
                    return None;
                }
                Ok(count) => {
                    self.received += count as u64;
                    if count == buffer.len() && count < MOST_BUFFER {
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

/// Redacts and stores.
struct Keeper<'a> {
    redact: RedactStream,
    decided: Vec<u8>,
    store: Store<'a>,
}

impl<'a> Keeper<'a> {
    fn new(ports: &'a dyn Ports, stream: Stream, most: u64, redactor: &Redactor) -> Keeper<'a> {
        let store = Store::open(ports, stream, most);
        Keeper { redact: redactor.stream(), decided: Vec::new(), store }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.redact.push(bytes, &mut self.decided);
        self.flush();
    }

    fn finish(&mut self) {
        self.redact.finish(&mut self.decided);
        self.flush();
        self.store.finish();
    }

    fn flush(&mut self) {
        self.store.append(&self.decided);
        self.decided.clear();
        self.decided.shrink_to(KEPT_BUFFER);
    }
}

/// Standard output: events.
pub(crate) struct Events<'a, R> {
    pub(crate) pipe: Pipe<R>,
    pub(crate) account: Account,
    framer: Framer,
    keeper: Keeper<'a>,
}

impl<'a, R: Read + AsFd> Events<'a, R> {
    pub(crate) fn new(
        pipe: Pipe<R>,
        ports: &'a dyn Ports,
        most: u64,
        redactor: &Redactor,
        fold: FoldOptions,
    ) -> Events<'a, R> {
        let keeper = Keeper::new(ports, Stream::Events, most, redactor);
        Events { pipe, account: Account::new(fold), framer: Framer::new(LineLimits::STANDARD), keeper }
    }

    /// Takes what is there, one read of it. Says how much, and whether it was a sign of work.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> (u64, bool) {
        let Events { pipe, account, framer, keeper } = self;
        let Some(bytes) = pipe.read(buffer) else { return (0, false) };
        let mut worked = false;
        let lines_before = framer.lines();
        framer.push(bytes, |line| worked |= is_work(account, &line));
        // In the middle of a long line it works on that.
        worked |= framer.lines() == lines_before;
        keeper.keep(bytes);
        (bytes.len() as u64, worked)
    }

    pub(crate) fn lines(&self) -> u64 {
        self.framer.lines()
    }

    pub(crate) fn finish(&mut self) {
        let Events { account, framer, keeper, .. } = self;
        framer.finish(|line| {
            account.line(&line);
        });
        account.finish();
        keeper.finish();
    }

    pub(crate) fn store(&self) -> &Store<'a> {
        &self.keeper.store
    }
}

/// Everything an agent says is work, but for empty lines and the news that it tries to connect once more.
fn is_work(account: &mut Account, line: &Line<'_>) -> bool {
    let is_blank = matches!(line.body, LineBody::Whole(bytes) if bytes.trim_ascii().is_empty());
    let mut is_retry = false;
    let seen = account.line_with(line, |effect| {
        is_retry |= matches!(effect, Effect::Emit(ThreadEvent::Error { .. }));
    });
    seen.is_activity || !(is_retry || is_blank)
}

/// Standard error: complaints. Or all that a check prints.
pub(crate) struct Complaints<'a, R> {
    pub(crate) pipe: Pipe<R>,
    pub(crate) digest: StderrDigest,
    pub(crate) witness: Witness,
    framer: Framer,
    keeper: Keeper<'a>,
}

/// Nothing longer is looked at.
const COMPLAINT: LineLimits = LineLimits { whole: 8 << 10, head: 4 << 10, tail: 1 << 10 };

impl<'a, R: Read + AsFd> Complaints<'a, R> {
    pub(crate) fn new(
        pipe: Pipe<R>,
        ports: &'a dyn Ports,
        most: u64,
        redactor: &Redactor,
    ) -> Complaints<'a, R> {
        let keeper = Keeper::new(ports, Stream::Stderr, most, redactor);
        Complaints::keeping(pipe, keeper, Witness::waiting_for(None))
    }

    /// What a check prints, without the word that tells that it began.
    pub(crate) fn of_check(
        pipe: Pipe<R>,
        ports: &'a dyn Ports,
        most: u64,
        redactor: &Redactor,
        witness: Option<&str>,
    ) -> Complaints<'a, R> {
        let keeper = Keeper::new(ports, Stream::Verify, most, redactor);
        Complaints::keeping(pipe, keeper, Witness::waiting_for(witness))
    }

    fn keeping(pipe: Pipe<R>, keeper: Keeper<'a>, witness: Witness) -> Complaints<'a, R> {
        Complaints { pipe, digest: StderrDigest::default(), witness, framer: Framer::new(COMPLAINT), keeper }
    }

    /// Takes what is there, one read of it. Says how much, and whether it was a sign of work.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> (u64, bool) {
        let Complaints { pipe, digest, witness, framer, keeper } = self;
        let Some(bytes) = pipe.read(buffer) else { return (0, false) };
        let mut worked = false;
        let lines_before = framer.lines();
        framer.push(bytes, |line| worked |= digest.line(&text_of(&line)));
        worked |= framer.lines() == lines_before;
        witness.pass(bytes, &mut |kept| keeper.keep(kept));
        (bytes.len() as u64, worked)
    }

    pub(crate) fn finish(&mut self) {
        let Complaints { digest, witness, framer, keeper, .. } = self;
        framer.finish(|line| {
            digest.line(&text_of(&line));
        });
        witness.finish(&mut |kept| keeper.keep(kept));
        keeper.finish();
    }

    pub(crate) fn store(&self) -> &Store<'a> {
        &self.keeper.store
    }
}

fn text_of(line: &Line<'_>) -> String {
    match line.text() {
        LineText::Whole(text) => text.into_owned(),
        LineText::Cut { head, .. } => head.into_owned(),
    }
}
