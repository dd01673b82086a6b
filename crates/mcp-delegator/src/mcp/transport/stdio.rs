//! The server on standard input and output: one message per line.
//!
//! A line that is too long is discarded while it is read, and a line that is not a message gets an error
//! response; neither affects the next line. The server ends when its input ends or when the client closes the
//! output; tasks continue. While a client does not read its responses, no further request is dispatched (see
//! [`super::backlog`]).
//!
//! Pipes, the usual case, are polled by the runtime. They are reopened through `/proc` for that, because
//! `O_NONBLOCK` belongs to the open file description, which the client's other children may have inherited.
//! Anything else is read and written by separate threads.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use delegator_transcript::{Framer, Line, LineBody, LineLimits};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;

use crate::error::{AppError, ErrorCode};
use crate::mcp::transport::backlog::{Backlog, BacklogEntry};
use crate::mcp::transport::decode::{DecodedMessage, decode_text, refuse_too_long};

/// The longest message that is accepted: a task of 100,000 characters fits many times over. Head and tail of
/// a longer one are retained to find its id.
const LINES: LineLimits = LineLimits { whole: 16 << 20, head: 256, tail: 256 };
const READ_BYTES: usize = 16 << 10;
/// Bytes of messages that are read before they can be dispatched. A client may write this much before it
/// reads.
const READ_AHEAD: usize = 1 << 20;
/// How long active calls may delay the shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

type Input = Box<dyn AsyncRead + Send + Unpin>;

/// The output, shared by all writers; each writes one whole line at a time.
#[derive(Clone)]
struct Output {
    sink: Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>,
    /// Notified when the client has closed the output.
    reader_gone: Arc<Notify>,
    backlog: Arc<Backlog>,
}

pub fn serve(server: impl ServerHandler) -> Result<(), AppError> {
    let runtime = crate::mcp::runtime()?;
    let served = runtime.block_on(async {
        let (input_closed, reader_gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let output = Output {
            sink: Arc::new(Mutex::new(output())),
            reader_gone: Arc::clone(&reader_gone),
            backlog: Arc::default(),
        };
        let transport = StdioTransport::new(input(), output, Arc::clone(&input_closed));
        let serving = async {
            match server.serve(transport).await {
                Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
                // A client that disconnects before it initializes is not an error.
                Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        };
        tokio::select! {
            served = serving => served,
            () = reader_gone.notified() => Ok(()),
            () = async { input_closed.notified().await; tokio::time::sleep(SHUTDOWN_GRACE).await } => Ok(()),
        }
    });
    // Do not wait for blocked operations, such as a write to a client that does not read.
    runtime.shutdown_background();
    served.map_err(|error| AppError::new(ErrorCode::IoError, format!("The server stopped: {error}.")))
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

/// Messages as lines. rmcp may drop the future of `receive` half-way and call it again, so all partial state
/// is stored here.
struct StdioTransport {
    input: Input,
    buffer: Vec<u8>,
    framer: Framer,
    /// Lines that were read and not yet dispatched, or the responses to lines that are too long. A line is
    /// parsed only when it is dispatched: parsed JSON may take a hundred times its length.
    pending: VecDeque<Result<Vec<u8>, DecodedMessage>>,
    pending_bytes: usize,
    is_input_closed: bool,
    output: Output,
    /// The write of the last error response. At most one at a time: while a client that sends invalid lines
    /// does not read, no further line is read from it.
    error_write: Option<JoinHandle<io::Result<()>>>,
    has_first_request: bool,
    /// Notified at the end of the input, because rmcp then waits for calls that may take long.
    input_closed: Arc<Notify>,
}

impl StdioTransport {
    fn new(input: Input, output: Output, input_closed: Arc<Notify>) -> StdioTransport {
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
            input_closed,
        }
    }

    async fn next_message(&mut self) -> Option<DecodedMessage> {
        loop {
            if let Some(line) = self.pending.pop_front() {
                self.pending_bytes -= line.as_ref().map_or(0, Vec::len);
                let decoded = line.map_or_else(Some, |text| decode_text(&text));
                if decoded.is_some() {
                    return decoded;
                }
                continue;
            }
            if self.is_input_closed {
                return None;
            }
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let read = self.input.read(&mut self.buffer).await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not read standard input");
            0
        });
        let queue = |line: Line<'_>| match line.body {
            LineBody::Whole(text) if text.trim_ascii().is_empty() => {}
            LineBody::Whole(text) => {
                self.pending.push_back(Ok(text.trim_ascii().to_vec()));
                self.pending_bytes += text.trim_ascii().len();
            }
            LineBody::Truncated { head, tail, .. } => {
                self.pending.push_back(Err(refuse_too_long(line.length, head, tail)));
            }
        };
        if read == 0 {
            self.is_input_closed = true;
            self.framer.finish(queue);
        } else {
            self.framer.push(&self.buffer[..read], queue);
        }
    }

    /// Waits until another message may be dispatched, and reads ahead meanwhile. Returns false if that cannot
    /// happen: the client has closed the input and does not read the output.
    async fn wait_for_capacity(&mut self) -> bool {
        let backlog = Arc::clone(&self.output.backlog);
        loop {
            let may_read = !self.is_input_closed && self.pending_bytes < READ_AHEAD;
            let is_input_closed = self.is_input_closed;
            tokio::select! {
                biased;
                () = backlog.wait_for_capacity() => return true,
                () = self.read(), if may_read => {}
                () = tokio::time::sleep(SHUTDOWN_GRACE), if is_input_closed => return false,
            }
        }
    }

    /// Adds a request to the backlog, and its backlog entry to the request.
    fn dispatch(&self, message: &mut ClientJsonRpcMessage) {
        let backlog = &self.output.backlog;
        match message {
            JsonRpcMessage::Request(request) => {
                backlog.dispatch(&request.id);
                let entry = BacklogEntry { backlog: Arc::clone(backlog), id: request.id.clone() };
                request.request.extensions_mut().insert(entry);
            }
            // rmcp drops the response of a cancelled request.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    cancelled.params.request_id.iter().for_each(|id| backlog.leave(id));
                }
            }
            _ => {}
        }
    }
}

/// Serialises a message at once, so that only its bytes wait for the client, and the backlog can count them.
fn write(
    output: Output,
    message: ServerJsonRpcMessage,
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

fn response_id(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
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
        // The client has closed the output. That is not an error; the server ends while this future waits.
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
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        write(self.output.clone(), item)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(write) = &mut self.error_write {
                let _ = write.await;
                self.error_write = None;
            }
            let decoded = if self.wait_for_capacity().await { self.next_message().await } else { None };
            match decoded {
                None => {
                    self.input_closed.notify_one();
                    return None;
                }
                Some(DecodedMessage::Invalid(response)) => {
                    self.error_write = Some(tokio::spawn(write(self.output.clone(), *response)));
                }
                Some(DecodedMessage::Message(mut message)) => {
                    // rmcp ends the server if the first message is not a request, so drop everything before
                    // that.
                    self.has_first_request |= matches!(*message, JsonRpcMessage::Request(_));
                    if self.has_first_request {
                        self.dispatch(&mut message);
                        return Some(*message);
                    }
                }
            }
        }
    }

    /// Nothing to close: started writes continue until they finish or the process ends.
    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}
