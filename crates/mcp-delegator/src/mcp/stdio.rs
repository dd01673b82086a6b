//! The server on standard input and output.
//!
//! A line is a message. One that is too long is dropped without being held, one that is no message is answered with an
//! error, and the next one is read as if nothing had been. The end of the input is the end of the server, and so is an
//! output nobody reads any more; tasks go on. While a client does not read its responses, no further request is
//! dispatched (see [`super::backlog`]).
//!
//! Where the host gave us pipes, as most do, they are waited for together with everything else the server waits for.
//! They are opened anew for that, because whether reading waits is a property of what is open, not of our end of it, and
//! the host's other children may have inherited the same. Anything else is read and written by threads of its own.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use delegator_transcript::{Framer, Line, LineBody, LineLimits};
use rmcp::model::{ClientNotification, GetExtensions, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;

use super::backlog::{Backlog, BacklogEntry};
use super::decode::{DecodedMessage, decode_line, decode_text};
use crate::error::{AppError, ErrorCode};

/// The longest message that is taken: a task of 100,000 characters fits many times over. Of a longer one enough is kept to
/// find its id.
const LINES: LineLimits = LineLimits { whole: 16 << 20, head: 256, tail: 256 };
const READ_BYTES: usize = 16 << 10;
/// Bytes of messages that are read before they can be dispatched: a client may write this much before it reads.
const READ_AHEAD: usize = 1 << 20;
/// How long calls that are still at work may hold up the end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

type Input = Box<dyn AsyncRead + Send + Unpin>;

/// Where messages go, one whole line after the other.
#[derive(Clone)]
struct Output {
    sink: Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>,
    /// Told when nobody reads any more.
    reader_gone: Arc<Notify>,
    backlog: Arc<Backlog>,
}

/// Until the input ends, or nobody reads the output.
pub fn serve(server: impl ServerHandler) -> Result<(), AppError> {
    let runtime = super::runtime()?;
    let served = runtime.block_on(async {
        let (hung_up, reader_gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let output = Output {
            sink: Arc::new(Mutex::new(output())),
            reader_gone: Arc::clone(&reader_gone),
            backlog: Arc::default(),
        };
        let transport = StdioTransport::new(input(), output, Arc::clone(&hung_up));
        let serving = async {
            match server.serve(transport).await {
                Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
                // Whoever connects and says nothing has not failed.
                Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        };
        tokio::select! {
            served = serving => served,
            () = reader_gone.notified() => Ok(()),
            () = async { hung_up.notified().await; tokio::time::sleep(SHUTDOWN_GRACE).await } => Ok(()),
        }
    });
    // What is stuck by now, a write to somebody who does not read for one, is not waited for.
    runtime.shutdown_background();
    served.map_err(|error| AppError::new(ErrorCode::IoError, format!("Serving ended: {error}.")))
}

fn input() -> Input {
    match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

/// Messages in lines. What the library asks for may be dropped half-way and asked for again, so everything that has
/// begun is kept here.
struct StdioTransport {
    input: Input,
    buffer: Vec<u8>,
    framer: Framer,
    /// What was read and not yet handed on.
    pending: VecDeque<PendingLine>,
    /// Bytes of it.
    pending_bytes: usize,
    is_input_closed: bool,
    output: Output,
    /// The answer to the last line that was no message, while it is written. One at a time: somebody who talks nonsense
    /// and does not listen is not read on.
    error_write: Option<JoinHandle<io::Result<()>>>,
    has_first_request: bool,
    /// Told at the end of the input, because the library then waits for calls that may take long.
    input_closed: Arc<Notify>,
}

/// A line that was read. It is parsed when it is handed on: parsed JSON may take a hundred times its length.
enum PendingLine {
    Whole(Vec<u8>),
    TooLong(DecodedMessage),
}

impl PendingLine {
    fn from_line(line: &Line<'_>) -> Option<PendingLine> {
        match line.body {
            LineBody::Whole(text) => {
                let text = text.trim_ascii();
                (!text.is_empty()).then(|| PendingLine::Whole(text.to_vec()))
            }
            LineBody::Truncated { .. } => decode_line(line).map(PendingLine::TooLong),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            PendingLine::Whole(text) => text.len(),
            PendingLine::TooLong(_) => 0,
        }
    }
}

impl StdioTransport {
    fn new(input: Input, output: Output, hung_up: Arc<Notify>) -> StdioTransport {
        StdioTransport {
            input,
            buffer: vec![0; READ_BYTES],
            framer: Framer::new(LINES),
            pending: VecDeque::new(),
            pending_bytes: 0,
            is_input_closed: false,
            output,
            error_write: None,
            has_first_request: false,
            input_closed: hung_up,
        }
    }

    /// Reads until there is something to hear, or nothing will come any more.
    async fn next_message(&mut self) -> Option<DecodedMessage> {
        loop {
            if let Some(unread) = self.pending.pop_front() {
                self.pending_bytes -= unread.bytes();
                let decoded = match unread {
                    PendingLine::Whole(text) => decode_text(&text),
                    PendingLine::TooLong(message) => Some(message),
                };
                match decoded {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            if self.is_input_closed {
                return None;
            }
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let read = self.input.read(&mut self.buffer).await.unwrap_or_else(|error| {
            tracing::error!(%error, "standard input cannot be read");
            0
        });
        let note = |line: Line<'_>| {
            let unread = PendingLine::from_line(&line);
            self.pending_bytes += unread.as_ref().map_or(0, PendingLine::bytes);
            self.pending.extend(unread);
        };
        match read {
            0 => {
                self.is_input_closed = true;
                self.framer.finish(note);
            }
            read => self.framer.push(&self.buffer[..read], note),
        }
    }

    /// Waits until another message may be dispatched, and reads ahead meanwhile. False if that does not happen: the
    /// client has closed its end and does not read either.
    async fn wait_for_capacity(&mut self) -> bool {
        let backlog = Arc::clone(&self.output.backlog);
        loop {
            let may_read = !self.is_input_closed && self.pending_bytes < READ_AHEAD;
            let is_over = self.is_input_closed;
            tokio::select! {
                biased;
                () = backlog.wait_for_capacity() => return true,
                () = self.read(), if may_read => {}
                () = tokio::time::sleep(SHUTDOWN_GRACE), if is_over => return false,
            }
        }
    }

    /// Counts a request, and tells it where it stands in the backlog.
    fn dispatch(&self, message: &mut RxJsonRpcMessage<RoleServer>) {
        let backlog = &self.output.backlog;
        match message {
            JsonRpcMessage::Request(request) => {
                backlog.dispatch(&request.id);
                let place = BacklogEntry { backlog: Arc::clone(backlog), id: request.id.clone() };
                request.request.extensions_mut().insert(place);
            }
            // The library drops the response of a cancelled request.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    cancelled.params.request_id.iter().for_each(|id| backlog.leave(id));
                }
            }
            _ => {}
        }
    }
}

/// Serialises a message at once, so that what waits for the client is its bytes alone, and are counted.
fn write(
    output: Output,
    message: TxJsonRpcMessage<RoleServer>,
) -> impl Future<Output = io::Result<()>> + Send + 'static {
    let line = serde_json::to_vec(&message).map(|mut line| {
        line.push(b'\n');
        line
    });
    let bytes = line.as_ref().map_or(0, Vec::len);
    output.backlog.queue(response_id(&message), bytes);
    drop(message);
    async move {
        let written = write_line(&output, line?).await;
        output.backlog.written(bytes);
        written
    }
}

/// The request a message responds to.
fn response_id(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

async fn write_line(output: &Output, line: Vec<u8>) -> io::Result<()> {
    let written = {
        let mut sink = output.sink.lock().await;
        match sink.write_all(&line).await {
            Ok(()) => sink.flush().await,
            failed => failed,
        }
    };
    match written {
        // Not a failure, and nobody is left to tell of one: the server ends meanwhile.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            output.reader_gone.notify_one();
            std::future::pending().await
        }
        written => written,
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        write(self.output.clone(), item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusing) = &mut self.error_write {
                let _ = refusing.await;
                self.error_write = None;
            }
            let decoded = if self.wait_for_capacity().await { self.next_message().await } else { None };
            match decoded {
                None => {
                    self.input_closed.notify_one();
                    return None;
                }
                Some(DecodedMessage::Invalid(answer)) => {
                    self.error_write = Some(tokio::spawn(write(self.output.clone(), *answer)));
                }
                Some(DecodedMessage::Message(mut message)) => {
                    // The library gives up when the first message is no request.
                    self.has_first_request |= matches!(*message, JsonRpcMessage::Request(_));
                    if self.has_first_request {
                        self.dispatch(&mut message);
                        return Some(*message);
                    }
                }
            }
        }
    }

    /// There is nothing to close: output that was begun is written to its end or to the end of the process.
    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}
