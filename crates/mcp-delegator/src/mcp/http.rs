//! The server over streamable HTTP, for hosts on the same machine.
//!
//! Every request has to pass the gate before the protocol sees it: a `Host` that is ours (or a page elsewhere could reach
//! us through a name that leads here), no `Origin` but our own (pages elsewhere send theirs, hosts send none), and the
//! token. Headers, bodies, and the number of connections are bounded, so that whoever is slow or rude keeps nobody else
//! out for long.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::token::Token;
use crate::fault::{AppError, ErrorCode, io_error};
use crate::stdout::Printer;

const CONNECTIONS: usize = 512;
const HEADERS_MAY_TAKE: Duration = Duration::from_secs(10);
const HEADER_BYTES: usize = 64 << 10;
const BODY_BYTES: usize = 4 << 20;
/// Where the protocol is spoken, and where somebody may ask whether we are there.
const ENDPOINT: &str = "/mcp";
const HEALTH: &str = "/healthz";

type Body = BoxBody<Bytes, Infallible>;
type Service<S> = StreamableHttpService<S, LocalSessionManager>;

/// What every request is held to.
#[derive(Debug)]
struct Gate {
    hosts: Vec<String>,
    /// A server on all addresses of its machine is meant by each of them. A page elsewhere can make a name lead here, but
    /// not an address.
    takes_addresses: bool,
    token: Token,
}

/// Until the process is ended.
pub fn serve(
    server: impl ServerHandler + Clone,
    address: SocketAddr,
    token: Token,
    printer: &Printer,
) -> Result<(), AppError> {
    super::runtime()?.block_on(async move {
        let binding = TcpListener::bind(address).await;
        let listener = binding.map_err(|error| io_error(&format!("Listening on {address}"), &error))?;
        let address = listener.local_addr().map_err(|error| io_error("Listening", &error))?;
        printer.remark(&format!("Serving on http://{address}{ENDPOINT}"));
        let gate = Arc::new(Gate::of(address.ip(), token));
        let config = StreamableHttpServerConfig::default()
            // The gate has looked at it.
            .disable_allowed_hosts()
            .with_max_request_body_bytes(BODY_BYTES);
        let service = Service::new(move || Ok(server.clone()), Arc::default(), config);
        accept(listener, service, gate).await
    })
}

/// The names under which a server at this address is meant.
fn hosts(address: IpAddr) -> Vec<String> {
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_loopback() && !address.is_unspecified() {
        hosts.push(address.to_string());
    }
    hosts
}

async fn accept<S: ServerHandler>(
    listener: TcpListener,
    service: Service<S>,
    gate: Arc<Gate>,
) -> Result<(), AppError> {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Out of descriptors, or the peer is gone again: the next one may have more luck.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let (service, gate) = (service.clone(), Arc::clone(&gate));
                tokio::spawn(async move {
                    connection(stream, service, gate).await;
                    drop(place);
                });
            }
            Err(_) => drop(tokio::spawn(refuse(stream))),
        }
    }
}

async fn refuse(mut stream: TcpStream) {
    let words = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(words)).await;
}

async fn connection<S: ServerHandler>(stream: TcpStream, service: Service<S>, gate: Arc<Gate>) {
    let answer = service_fn(move |request| {
        let (service, gate) = (service.clone(), Arc::clone(&gate));
        async move { Ok::<_, Infallible>(gate.pass(request, service).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_MAY_TAKE)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
}

impl Gate {
    fn of(address: IpAddr, token: Token) -> Gate {
        Gate { hosts: hosts(address), takes_addresses: address.is_unspecified(), token }
    }

    async fn pass<S: ServerHandler>(
        &self,
        request: Request<Incoming>,
        service: Service<S>,
    ) -> Response<Body> {
        match self.judge(request.method(), request.uri().path(), request.headers()) {
            Verdict::Protocol => service.handle(request).await,
            Verdict::Answer(status, text) => plain(status, text),
        }
    }

    fn judge(&self, method: &Method, path: &str, headers: &HeaderMap) -> Verdict {
        if !self.knows_host(headers) {
            return Verdict::Answer(StatusCode::FORBIDDEN, "This is not the host that was asked for.\n");
        }
        if !is_ours(headers) {
            return Verdict::Answer(StatusCode::FORBIDDEN, "Pages are not served.\n");
        }
        match path {
            HEALTH if method == Method::GET => Verdict::Answer(StatusCode::OK, "ok\n"),
            ENDPOINT => match self
                .token
                .admits(headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()))
            {
                true => Verdict::Protocol,
                false => Verdict::Answer(StatusCode::UNAUTHORIZED, "The bearer token is missing or wrong.\n"),
            },
            _ => Verdict::Answer(StatusCode::NOT_FOUND, "There is nothing here.\n"),
        }
    }

    fn knows_host(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else { return false };
        let Ok(host) = host.to_str() else { return false };
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let is_address = || name.parse::<IpAddr>().is_ok();
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
            || (self.takes_addresses && is_address())
    }
}

/// Whether a page that asks is one this very server would have sent. The gate is strict so that the library need not be.
fn is_ours(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(|host| host.as_bytes()).unwrap_or_default();
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.all(|origin| origin.as_bytes().strip_prefix(b"http://") == Some(host))
}

/// Who answers.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Protocol,
    Answer(StatusCode, &'static str),
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    response
}

/// Where to listen, refused where anybody could knock.
pub fn address(given: &str, has_token_file: bool) -> Result<SocketAddr, AppError> {
    let address: SocketAddr = given.replace("localhost", "127.0.0.1").parse().map_err(|_| {
        AppError::new(ErrorCode::InvalidValue, format!("{given} is not an address with a port."))
            .context("field", "http")
            .suggest("Give it as in 127.0.0.1:7777.")
    })?;
    if !address.ip().is_loopback() && !has_token_file {
        return Err(AppError::new(
            ErrorCode::PolicyBlocked,
            format!("{address} can be reached from other machines."),
        )
        .suggest("Serve on 127.0.0.1, or say with --token-file which token others have to know."));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> (Gate, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::at(&path).unwrap();
        let header = format!("Bearer {}", std::fs::read_to_string(&path).unwrap().trim());
        (Gate::of("127.0.0.1".parse().unwrap(), token), header)
    }

    fn judged(gate: &Gate, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(header::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        match gate.judge(&Method::GET, path, &map) {
            Verdict::Protocol => 200,
            Verdict::Answer(status, _) => status.as_u16(),
        }
    }

    #[test]
    fn only_a_caller_who_means_us_and_knows_the_token_gets_through() {
        let (gate, token) = gate();
        let ours = ("host", "127.0.0.1:7777");
        let known = ("authorization", token.as_str());
        for (path, headers, status) in [
            ("/mcp", vec![ours, known], 200),
            ("/mcp", vec![("host", "LocalHost"), known], 200),
            ("/mcp", vec![("host", "[::1]:7777"), known], 200),
            ("/mcp", vec![ours], 401),
            ("/mcp", vec![ours, ("authorization", "Bearer nonsense")], 401),
            ("/mcp", vec![known], 403),
            ("/mcp", vec![("host", "evil.com"), known], 403),
            ("/mcp", vec![("host", "127.0.0.1.nip.io:7777"), known], 403),
            ("/mcp", vec![ours, ("host", "evil.com"), known], 403),
            ("/mcp", vec![ours, ("origin", "https://evil.com"), known], 403),
            ("/mcp", vec![ours, ("origin", "null"), known], 403),
            ("/mcp", vec![ours, ("origin", "http://localhost:7777"), known], 403),
            ("/mcp", vec![ours, ("origin", "http://127.0.0.1:7777"), known], 200),
            ("/healthz", vec![ours], 200),
            ("/healthz", vec![("host", "evil.com")], 403),
            ("/", vec![ours, known], 404),
        ] {
            assert_eq!(judged(&gate, path, &headers), status, "{path} {headers:?}");
        }
    }

    #[test]
    fn other_machines_need_a_token_they_were_given() {
        assert!(address("127.0.0.1:0", false).is_ok());
        assert!(address("localhost:7777", false).is_ok());
        assert!(address("[::1]:7777", false).is_ok());
        assert_eq!(address("0.0.0.0:7777", false).unwrap_err().code, ErrorCode::PolicyBlocked);
        assert!(address("0.0.0.0:7777", true).is_ok());
        assert_eq!(address("nonsense", false).unwrap_err().code, ErrorCode::InvalidValue);
    }
}
