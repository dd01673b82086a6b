//! The server over HTTP: MCP, the API and the pages of the dashboard, for clients on the same machine.
//!
//! ```text
//!                                                        ┌ api, pages
//! accept (▸ TLS) ▸ connections ▸ serve_connection ▸ gate ┴ body_reader ▸ protocol_version ▸ rmcp ▸ sessions
//! ```
//!
//! All clients share one process, and any of them may be slow, greedy or hostile. So every resource that a
//! client can occupy is bounded: connections, the time for headers and body, the time a response stays
//! unread, the memory of bodies, sessions. The duration of a call has no bound, because the server waits
//! then, not the client.

mod access_check;
mod body_reader;
mod bounds;
mod connections;
mod event_log;
mod protocol_version;
mod responses;
mod session_store;
mod session_table;
mod sessions;
mod tls;
pub mod token;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::Scheme;
use http::{Method, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutWriter;
use tokio_rustls::TlsAcceptor;

use crate::commands::sign_in::{Scope, Sessions as BrowserSessions};
use crate::error::{AppError, io_error};
use crate::mcp::api::{self, Api};
use crate::mcp::pages::{Pages, paths};
use crate::mcp::server::Server;
use crate::mcp::sign_in::{CallerSession, SessionCookie};
use crate::mcp::transport::decode::{DecodedMessage, decode_body};
use crate::mcp::transport::http::token::Token;
use access_check::{Admission, Gate};
pub use access_check::{parse_address, sends_json};
use body_reader::BodyReader;
use bounds::Bounds;
pub use connections::IsInTask;
use connections::{Connection, Connections};
pub use responses::Body;
use responses::{PlainResponse, protocol_error};
use sessions::Sessions;
pub use tls::load as load_tls;

const SESSION: &str = "mcp-session-id";
const HEADER_BYTES: usize = 64 << 10;
/// Time limit for writing the status line of a connection that timed out.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after a failed accept, which would otherwise fail again at once.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

type Service<S> = StreamableHttpService<S, Sessions>;

struct HttpServer<S> {
    faces: Option<Faces>,
    gate: Gate,
    connections: Connections,
    body_reader: BodyReader,
    sessions: Arc<Sessions>,
    service: Service<S>,
    tls: Option<TlsAcceptor>,
    bounds: Bounds,
}

/// What is served beside MCP.
struct Faces {
    api: Api,
    pages: Pages,
}

/// How a server is reached.
#[expect(missing_debug_implementations, reason = "the acceptor has none")]
pub struct Listen {
    pub address: SocketAddr,
    pub token: Token,
    pub scope: Scope,
    pub tls: Option<TlsAcceptor>,
    /// Another name under which browsers reach it, and the scheme of its pages.
    pub public_name: Option<(String, Scheme)>,
    /// Browsers can sign in.
    pub has_pages: bool,
    /// A loopback address that only browsers of this dashboard use. A browser sends a cookie to all ports of a host, so
    /// under the usual address it would also reach what a task serves there.
    pub own_address: Option<Ipv4Addr>,
}

/// The addresses with the port that was chosen.
#[derive(Debug, Clone, Copy)]
pub struct Listening {
    pub address: SocketAddr,
    /// That which browsers open.
    pub pages_address: SocketAddr,
}

/// Serves until the process ends.
pub fn serve(
    handler: impl ServerHandler + Clone,
    (server, api): (Server, Api),
    browsers: &BrowserSessions,
    listen: Listen,
    is_in_task: IsInTask,
    on_listening: impl FnOnce(Listening) -> Result<(), AppError>,
) -> Result<(), AppError> {
    crate::mcp::runtime()?.block_on(async move {
        let Listen { address, token, scope, tls, public_name, has_pages, own_address } = listen;
        let listener = TcpListener::bind(address).await.map_err(|error| listen_error(address, &error))?;
        let address = listener.local_addr().map_err(|error| io_error("Listening", &error))?;
        let own = match own_address {
            Some(own) => listener_of_browsers((own, address.port()).into()).await?,
            None => None,
        };
        let pages_address = own.as_ref().and_then(|own| own.local_addr().ok()).unwrap_or(address);
        let bounds = Bounds::default().limited_by_open_files(getrlimit(Resource::Nofile).current);
        let scheme = if tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let is_secure = public_name.as_ref().map_or(&scheme, |(_, scheme)| scheme) == &Scheme::HTTPS;
        let cookie = SessionCookie::new(address.port(), is_secure);
        let mut gate = Gate::new(address.ip(), scheme.clone(), token, scope);
        if own.is_some() {
            gate = gate.with_name(&pages_address.ip().to_string(), scheme);
        }
        if let Some((name, scheme)) = public_name {
            gate = gate.with_name(&name, scheme).for_browsers_only();
        }
        if has_pages {
            gate = gate.with_sign_in(browsers.clone(), cookie.clone());
        }
        let pages = Pages::new(server, &api, browsers.clone(), cookie);
        on_listening(Listening { address, pages_address })?;
        let server = HttpServer::new(handler, gate, is_in_task, bounds);
        let server = Arc::new(HttpServer { faces: Some(Faces { api, pages }), tls, ..server });
        let on_own = async {
            match own {
                Some(own) => accept(own, Arc::clone(&server)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = accept(listener, Arc::clone(&server)) => ended,
            ended = on_own => ended,
        }
    })
}

/// `None` if this machine has no such address. If another program uses it, that program may want the sessions of
/// browsers, so the usual address is no way out.
async fn listener_of_browsers(address: SocketAddr) -> Result<Option<TcpListener>, AppError> {
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => Ok(None),
        bound => bound.map(Some).map_err(|error| listen_error(address, &error)),
    }
}

fn listen_error(address: SocketAddr, error: &std::io::Error) -> AppError {
    let failed = io_error(&format!("Listening on {address}"), error);
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            failed.suggest("Another program uses this port. Choose another one, or 0 for any that is free.")
        }
        _ => failed,
    }
}

async fn accept<S: ServerHandler>(listener: TcpListener, server: Arc<HttpServer<S>>) -> Result<(), AppError> {
    loop {
        let accepted = listener.accept().await.inspect_err(|error| {
            // Out of file descriptors, or the client has disconnected already.
            tracing::warn!(%error, "could not accept a connection");
        });
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let server = Arc::clone(&server);
        let connection = server.connections.add(&stream).await;
        tokio::spawn(async move {
            tokio::select! {
                () = Arc::clone(&server).serve_stream(stream, &connection) => {}
                () = connection.evicted.notified() => {}
            }
            server.connections.remove(&connection);
        });
    }
}

impl<S: ServerHandler> HttpServer<S> {
    fn new(server: S, gate: Gate, is_in_task: IsInTask, bounds: Bounds) -> HttpServer<S>
    where
        S: Clone,
    {
        let config = StreamableHttpServerConfig::default()
            // The gate has checked the host.
            .disable_allowed_hosts()
            .with_max_request_body_bytes(bounds.body_bytes)
            // A response without preceding notifications is sent as plain JSON, not as an event stream.
            .with_json_response(true)
            // `sessions` decides which client gets the retry event.
            .with_sse_retry(None);
        let sessions = Arc::new(Sessions::new(&bounds));
        let service = Service::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
        let connections = Connections::new(bounds.connections, is_in_task);
        let body_reader = BodyReader::new(&bounds);
        HttpServer { faces: None, gate, connections, body_reader, sessions, service, tls: None, bounds }
    }

    async fn serve_stream(self: Arc<Self>, stream: TcpStream, connection: &Arc<Connection>) {
        // Messages are written completely at once; Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = self.tls.clone() else {
            return self.serve_connection(stream, connection).await;
        };
        match tokio::time::timeout(self.bounds.header_timeout, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve_connection(stream, connection).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection did not begin with TLS"),
            Err(_) => {}
        }
    }

    async fn serve_connection(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        connection: &Arc<Connection>,
    ) {
        let (server, accepted) = (Arc::clone(&self), Arc::clone(connection));
        let respond = service_fn(move |request| {
            let (server, accepted) = (Arc::clone(&server), Arc::clone(&accepted));
            Box::pin(async move {
                let is_api = api::routes::serves(request.uri().path());
                let refuse = |refusal: PlainResponse| {
                    if is_api && !refusal.status.is_success() {
                        api::refusal(refusal.status, refusal.text)
                    } else {
                        refusal.into()
                    }
                };
                let response = server.check_and_forward(&accepted, request).await;
                Ok::<_, Infallible>(response.unwrap_or_else(refuse))
            })
        });
        // Runs only while a write is blocked: during a call nothing is written, and there is no timeout.
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(self.bounds.write_timeout));
        let mut connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.header_timeout)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(Box::pin(stream)), respond);
        let Err(error) = (&mut connection).await else { return };
        tracing::debug!(%error, "a connection ended");
        let parts = connection.into_parts();
        // A client that sent part of a request gets 408; one that sent nothing is just disconnected.
        if error.is_timeout() && !parts.read_buf.is_empty() {
            let mut stream = parts.io.into_inner();
            let response = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            let _ = tokio::time::timeout(REJECT_TIMEOUT, stream.write_all(response)).await;
        }
    }

    async fn check_and_forward(
        &self,
        connection: &Arc<Connection>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Body>, PlainResponse> {
        // The body of a refused request is not read.
        let admission = self.gate.check(request.method(), request.uri(), request.headers())?;
        let (mut head, body) = request.into_parts();
        if let Some(faces) = self.faces.as_ref().filter(|_| paths::serves(head.uri.path())) {
            // A code authorises like a token, so its sender is checked in the same way.
            let refused = || async { self.connections.authorise(connection).await.err().map(Into::into) };
            let signed_in = match &admission {
                Admission::Caller(caller) => Some(caller),
                Admission::SignedOut => None,
            };
            if let Some(response) = faces.pages.sign_in(&head, signed_in, refused).await {
                return Ok(response);
            }
            let Admission::Caller(caller) = admission else {
                return Ok(faces.pages.respond_signed_out(&head));
            };
            self.connections.authorise(connection).await?;
            return Ok(faces.pages.respond(&head, caller).await);
        }
        let Admission::Caller(caller) = admission else {
            return Err(PlainResponse::new(StatusCode::UNAUTHORIZED, "Sign in first.\n"));
        };
        self.connections.authorise(connection).await?;
        let body = self.body_reader.read(body).await?;
        // The body may have taken long.
        if caller.session.as_ref().is_some_and(CallerSession::has_ended) {
            return Err(PlainResponse::new(StatusCode::UNAUTHORIZED, "The session has ended.\n"));
        }
        if let Some(faces) = self.faces.as_ref().filter(|_| api::routes::serves(head.uri.path())) {
            return Ok(faces.api.respond(&head, body, &caller).await);
        }
        access_check::normalize_media_types(&mut head.headers);
        if head.method == Method::DELETE {
            return self.delete_session(head, body).await;
        }
        if head.method != Method::POST {
            return Ok(self.forward(head, body).await);
        }
        let decoded = match decode_body(&body) {
            Some(DecodedMessage::Invalid(response)) => return Ok(protocol_error(&response)),
            decoded => decoded,
        };
        let described =
            decoded.and_then(|decoded| protocol_version::without_self_description(&head.headers, decoded));
        Ok(self.forward(head, described.unwrap_or(body)).await)
    }

    async fn forward(&self, head: Parts, body: Bytes) -> http::Response<Body> {
        let request = http::Request::from_parts(head, Full::new(body));
        self.sessions.map_full_error(self.service.handle(request).await)
    }

    /// rmcp responds with success even if the session does not exist.
    async fn delete_session(&self, head: Parts, body: Bytes) -> Result<http::Response<Body>, PlainResponse> {
        let id = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let is_known = self.sessions.contains(id).await;
        let response = self.forward(head, body).await;
        if response.status() == StatusCode::ACCEPTED && !is_known {
            return Err(PlainResponse::new(StatusCode::NOT_FOUND, "Unknown session.\n"));
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests;
