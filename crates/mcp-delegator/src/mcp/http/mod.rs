//! The server over streamable HTTP, for hosts on the same machine.
//!
//! ```text
//! accept ▸ connection ▸ gate ▸ intake ▸ era ▸ the protocol (rmcp) ▸ sessions
//! ```
//!
//! Whoever connects may be slow, greedy or rude, and everybody shares one process. So everything a peer can hold is
//! bounded: how many connections there are, how long headers and a body may take, how long an answer may lie unread, how
//! much of bodies is in memory, how many sessions there are. What takes long because the work does, a `wait` for one, has
//! no bound here: its request has been read, and its answer is being waited for by us, not by the peer.

mod body_reader;
mod client_stream;
mod event_log;
mod gate;
#[cfg(test)]
mod hostile_clients;
mod media_types;
mod protocol_version;
mod session_table;
mod sessions;
mod write_timeout;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rustix::process::{Resource, getrlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::decode::{DecodedMessage, decode_body};
use super::token::Token;
use crate::error::{AppError, io_error};
use crate::screen::Screen;
use body_reader::BodyReader;
pub use gate::parse_address;
use gate::{ENDPOINT, Gate, Verdict, plain};
use sessions::Sessions;
use write_timeout::WriteTimeout;

const SESSION: &str = "mcp-session-id";
const HEADER_BYTES: usize = 64 << 10;
/// How long somebody who is not served may take to hear so.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);
/// After an accept that failed, and would at once again.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

type Body = BoxBody<Bytes, Infallible>;
type Service<S> = StreamableHttpService<S, Sessions>;

/// What peers may have.
#[derive(Debug, Clone)]
struct Bounds {
    connections: usize,
    /// From one request's end, or the connection's beginning, until the next one's headers are there: a connection nobody
    /// uses is closed, too.
    header_timeout: Duration,
    /// From its headers' end to its own.
    body_timeout: Duration,
    /// Without a byte of it being taken.
    write_timeout: Duration,
    body_bytes: usize,
    /// Of all bodies that are being read.
    buffered_body_bytes: usize,
    sessions: usize,
    /// A session nobody has said anything in. Longer than the longest wait.
    session_idle_timeout: Duration,
    /// An answer of a session that nobody listens to any more. A connection that broke is resumed in this time.
    reconnect_window: Duration,
    /// Of all answers somebody may come back for.
    stored_response_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 512,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            body_bytes: 4 << 20,
            buffered_body_bytes: 16 << 20,
            sessions: 256,
            session_idle_timeout: Duration::from_secs(2 * 60 * 60),
            reconnect_window: Duration::from_secs(30),
            stored_response_bytes: 16 << 20,
        }
    }
}

impl Bounds {
    /// At most half of the files that may be open: calls need some, too.
    fn limited_by_open_files(self, max_files: Option<u64>) -> Bounds {
        let half = max_files.map_or(usize::MAX, |files| usize::try_from(files / 2).unwrap_or(usize::MAX));
        Bounds { connections: self.connections.min(half).max(1), ..self }
    }
}

/// What all connections share.
struct HttpServer<S> {
    gate: Gate,
    body_reader: BodyReader,
    sessions: Arc<Sessions>,
    service: Service<S>,
    bounds: Bounds,
}

/// Until the process is ended.
pub fn serve(
    server: impl ServerHandler + Clone,
    address: SocketAddr,
    token: Token,
    screen: Screen<'_>,
) -> Result<(), AppError> {
    super::runtime()?.block_on(async move {
        let binding = TcpListener::bind(address).await;
        let listener = binding.map_err(|error| io_error(&format!("Listening on {address}"), &error))?;
        let address = listener.local_addr().map_err(|error| io_error("Listening", &error))?;
        screen.announce(&format!("Serving on http://{address}{ENDPOINT}"));
        let bounds = Bounds::default().limited_by_open_files(getrlimit(Resource::Nofile).current);
        accept(listener, HttpServer::new(server, Gate::new(address.ip(), token), bounds)).await
    })
}

async fn accept<S: ServerHandler>(listener: TcpListener, face: HttpServer<S>) -> Result<(), AppError> {
    let room = Arc::new(Semaphore::new(face.bounds.connections));
    let face = Arc::new(face);
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Out of descriptors, or the peer is gone again: the next one may have more luck.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let face = Arc::clone(&face);
                tokio::spawn(async move {
                    face.serve_connection(stream).await;
                    drop(place);
                });
            }
            Err(_) => drop(tokio::spawn(write_status(stream, "503 Service Unavailable"))),
        }
    }
}

/// The last words to a peer whose request is not read, or not read to its end.
async fn write_status(mut stream: impl AsyncWriteExt + Unpin, status: &str) {
    let words = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let _ = tokio::time::timeout(REJECT_TIMEOUT, stream.write_all(words.as_bytes())).await;
}

impl<S: ServerHandler> HttpServer<S> {
    fn new(server: S, gate: Gate, bounds: Bounds) -> HttpServer<S>
    where
        S: Clone,
    {
        let config = StreamableHttpServerConfig::default()
            // The gate has looked at it.
            .disable_allowed_hosts()
            .with_max_request_body_bytes(bounds.body_bytes)
            // An answer nothing was said before is told in one piece.
            .with_json_response(true)
            // The sessions know which host can take it.
            .with_sse_retry(None);
        let sessions = Arc::new(Sessions::new(&bounds));
        let service = Service::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
        HttpServer { gate, body_reader: BodyReader::new(&bounds), sessions, service, bounds }
    }

    async fn serve_connection(self: Arc<Self>, stream: TcpStream) {
        // What is written is complete; waiting for more of it to send at once would only delay it.
        let _ = stream.set_nodelay(true);
        let face = Arc::clone(&self);
        let answer = service_fn(move |request| {
            let face = Arc::clone(&face);
            Box::pin(async move { Ok::<_, Infallible>(face.respond(request).await) })
        });
        let stream = WriteTimeout::new(stream, self.bounds.write_timeout);
        let mut connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.header_timeout)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), answer);
        let Err(error) = (&mut connection).await else { return };
        tracing::debug!(%error, "a connection ended");
        let left = connection.into_parts();
        // A peer that began to ask is told; one that was only silent has nothing to be told.
        if error.is_timeout() && !left.read_buf.is_empty() {
            write_status(left.io.into_inner(), "408 Request Timeout").await;
        }
    }

    async fn respond(&self, request: http::Request<Incoming>) -> http::Response<Body> {
        // Nobody's body is waited for who does not get through.
        let verdict = self.gate.check(request.method(), request.uri(), request.headers());
        if let Verdict::Respond(status, text) = verdict {
            return plain(status, text);
        }
        let (mut head, body) = request.into_parts();
        media_types::normalize_media_types(&mut head.headers);
        match self.body_reader.read(body).await {
            Ok(body) if head.method == Method::POST => match decode_body(&body) {
                Some(DecodedMessage::Invalid(answer)) => gate::protocol_error(&answer),
                heard => {
                    let body = heard
                        .and_then(|heard| protocol_version::without_self_description(&head.headers, heard))
                        .unwrap_or(body);
                    self.forward(head, body).await
                }
            },
            Ok(body) if head.method == Method::DELETE => self.delete_session(head, body).await,
            Ok(body) => self.forward(head, body).await,
            Err(refused) => plain(refused.status(), refused.message()),
        }
    }

    async fn forward(&self, head: Parts, body: Bytes) -> http::Response<Body> {
        let request = http::Request::from_parts(head, Full::new(body));
        self.sessions.map_full_error(self.service.handle(request).await)
    }

    /// The library says goodbye to whoever never was there, too.
    async fn delete_session(&self, head: Parts, body: Bytes) -> http::Response<Body> {
        let id = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let is_known = self.sessions.contains(id).await;
        let answer = self.forward(head, body).await;
        match answer.status() {
            StatusCode::ACCEPTED if !is_known => plain(StatusCode::NOT_FOUND, "There is no such session.\n"),
            _ => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_use_at_most_half_of_the_open_files() {
        let connections = |files| Bounds::default().limited_by_open_files(files).connections;
        assert_eq!(connections(None), 512);
        assert_eq!(connections(Some(1 << 20)), 512);
        assert_eq!(connections(Some(1024)), 512);
        assert_eq!(connections(Some(256)), 128);
        assert_eq!(connections(Some(0)), 1);
    }
}
