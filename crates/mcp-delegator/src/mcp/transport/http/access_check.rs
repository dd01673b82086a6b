//! The access check of every request, before its body is read: host, origin, token or session, media types.
//!
//! `Host` and the request target must name this server, or a web page could reach it through a DNS name that
//! resolves here (DNS rebinding). `Origin` must be absent, as in MCP clients, or our own; web pages send
//! theirs. Then the token or the session, and the media types are checked.
//!
//! A browser sends its session with every request to this server, whichever page caused it. So a request that is no
//! `GET` counts only with an `Origin`, which is ours then, and with a token that only our own pages can read.

use std::net::{IpAddr, SocketAddr};

use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use crate::commands::sign_in::{Scope, Sessions};
use crate::error::{AppError, ErrorCode};
use crate::mcp::api;
use crate::mcp::pages::paths;
use crate::mcp::sign_in::{Caller, SessionCookie};
use crate::mcp::transport::http::responses::PlainResponse;
use crate::mcp::transport::http::token::Token;

pub(super) const ENDPOINT: &str = "/mcp";
const HEALTH: &str = "/healthz";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const CSRF_TOKEN: &str = "x-csrf-token";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

#[derive(Debug)]
pub(super) struct Gate {
    /// The names of this server, each with the scheme of its own web pages.
    hosts: Vec<(String, Scheme)>,
    /// A server that listens on all addresses accepts each of them as host. DNS rebinding needs a name, not
    /// an address.
    allows_any_address: bool,
    scheme: Scheme,
    token: Token,
    /// What the token permits, and each session at most.
    scope: Scope,
    /// `None`: no browser can sign in.
    sign_in: Option<(Sessions, SessionCookie)>,
    /// The token counts for nothing: behind a proxy it is unknown whether a task has sent it.
    is_for_browsers_only: bool,
}

/// A request that is forwarded.
#[derive(Debug, Clone)]
pub(super) enum Admission {
    Caller(Caller),
    /// It may see nothing but the way to sign in.
    SignedOut,
}

impl Gate {
    pub(super) fn new(address: IpAddr, scheme: Scheme, token: Token, scope: Scope) -> Gate {
        let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !address.is_unspecified() {
            hosts.push(address.to_string());
        }
        let hosts = hosts.into_iter().map(|host| (host, scheme.clone())).collect();
        let allows_any_address = address.is_unspecified();
        Gate { hosts, allows_any_address, scheme, token, scope, sign_in: None, is_for_browsers_only: false }
    }

    pub(super) fn with_sign_in(self, sessions: Sessions, cookie: SessionCookie) -> Gate {
        Gate { sign_in: Some((sessions, cookie)), ..self }
    }

    /// Also accepts this name of the server, whose pages have this scheme, whatever theirs was before.
    pub(super) fn with_name(mut self, host: &str, scheme: Scheme) -> Gate {
        self.hosts.insert(0, (host.to_owned(), scheme));
        self
    }

    pub(super) fn for_browsers_only(self) -> Gate {
        Gate { is_for_browsers_only: true, ..self }
    }

    /// The error is the response to a request that is not forwarded.
    pub(super) fn check(
        &self,
        method: &Method,
        target: &Uri,
        headers: &HeaderMap,
    ) -> Result<Admission, PlainResponse> {
        let refuse = |status, text| Err(PlainResponse::new(status, text));
        let Some(scheme) = self.scheme_of(target, headers) else {
            return refuse(StatusCode::FORBIDDEN, "The Host header does not name this server.\n");
        };
        if !is_origin_allowed(headers, &scheme) {
            return refuse(StatusCode::FORBIDDEN, "Requests from web pages are refused.\n");
        }
        let path = target.path();
        let (is_api, is_page) = (api::routes::serves(path), self.sign_in.is_some() && paths::serves(path));
        match path {
            HEALTH if method == Method::GET || method == Method::HEAD => refuse(StatusCode::OK, "ok\n"),
            _ if path != ENDPOINT && !is_api && !is_page => {
                refuse(StatusCode::NOT_FOUND, "Not found. The endpoints are /mcp and /api/v1.\n")
            }
            _ if headers.contains_key(header::AUTHORIZATION) || path == ENDPOINT => {
                if self.is_for_browsers_only {
                    let text = "With --public-url only browsers are served. Programs use 'serve --http'.\n";
                    return refuse(StatusCode::FORBIDDEN, text);
                }
                if !self.has_valid_token(headers) {
                    return refuse(StatusCode::UNAUTHORIZED, "The bearer token is missing or wrong.\n");
                }
                if path == ENDPOINT {
                    check_media_types(method, headers)?;
                }
                Ok(Admission::Caller(Caller::with_token(self.scope)))
            }
            _ => match self.session(headers)? {
                Some(caller) => {
                    check_write(&caller, method, headers)?;
                    Ok(Admission::Caller(caller))
                }
                None if is_page => Ok(Admission::SignedOut),
                None => refuse(StatusCode::UNAUTHORIZED, "The bearer token is missing or wrong.\n"),
            },
        }
    }

    fn session(&self, headers: &HeaderMap) -> Result<Option<Caller>, PlainResponse> {
        let Some((sessions, cookie)) = &self.sign_in else { return Ok(None) };
        // A page at another port of this host, which may be that of a task.
        if headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "same-site") {
            return Ok(None);
        }
        let mut found = None;
        for secret in cookie.candidates(headers) {
            let session = sessions.find(secret).map_err(|error| {
                tracing::error!(%error, "could not read a session");
                PlainResponse::new(StatusCode::INTERNAL_SERVER_ERROR, "The session could not be read.\n")
            })?;
            let Some(session) = session else { continue };
            // Of two sessions it is undefined which one counts.
            if found.replace(Caller::with_session(sessions, session, secret, self.scope)).is_some() {
                return Ok(None);
            }
        }
        Ok(found)
    }

    /// Exactly one token: with several it is undefined which one counts.
    fn has_valid_token(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (given.next(), given.next()) else { return false };
        self.token.admits(value.as_bytes())
    }

    /// The scheme of the web pages of the host that the request names; `None` if that is not this server. The request
    /// target may also name a host; proxies use that one instead of `Host`.
    fn scheme_of(&self, target: &Uri, headers: &HeaderMap) -> Option<Scheme> {
        let mut given = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else { return None };
        let scheme = self.scheme_of_authority(&Authority::try_from(host.as_bytes()).ok()?)?;
        target.authority().is_none_or(|target| self.scheme_of_authority(target).is_some()).then_some(scheme)
    }

    fn scheme_of_authority(&self, authority: &Authority) -> Option<Scheme> {
        let name = authority.host();
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let known = self.hosts.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let is_address = || self.allows_any_address && name.parse::<IpAddr>().is_ok();
        known.map(|(_, scheme)| scheme.clone()).or_else(|| is_address().then(|| self.scheme.clone()))
    }
}

/// Whether every `Origin` is this server's own. Strict, so that rmcp's own check is not needed.
fn is_origin_allowed(headers: &HeaderMap, scheme: &Scheme) -> bool {
    let host = headers.get(header::HOST).map(|host| host.as_bytes()).unwrap_or_default();
    let own = [scheme.as_str().as_bytes(), b"://", host].concat();
    headers.get_all(header::ORIGIN).iter().all(|origin| origin.as_bytes() == own)
}

/// What changes something must come from our own pages.
fn check_write(caller: &Caller, method: &Method, headers: &HeaderMap) -> Result<(), PlainResponse> {
    let Some(session) = caller.session.as_ref().filter(|_| !method.is_safe()) else { return Ok(()) };
    let refuse = |text| Err(PlainResponse::new(StatusCode::FORBIDDEN, text));
    if !headers.contains_key(header::ORIGIN) {
        return refuse("A request of a session that changes something needs an Origin.\n");
    }
    let mut given = headers.get_all(CSRF_TOKEN).iter();
    match (given.next(), given.next()) {
        (Some(token), None) if token.as_bytes() == session.csrf_token.as_bytes() => Ok(()),
        _ => refuse("The X-CSRF-Token is missing or wrong; GET /api/v1/session returns it.\n"),
    }
}

fn check_media_types(method: &Method, headers: &HeaderMap) -> Result<(), PlainResponse> {
    let refuse = |status, text| Err(PlainResponse::new(status, text));
    let takes_events = accepts(headers, EVENT_STREAM);
    if *method == Method::GET && !takes_events {
        return refuse(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream.\n");
    }
    if *method != Method::POST {
        return Ok(());
    }
    if !takes_events || !accepts(headers, JSON) {
        let text = "Accept must name application/json and text/event-stream.\n";
        return refuse(StatusCode::NOT_ACCEPTABLE, text);
    }
    if !sends_json(headers) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.\n");
    }
    Ok(())
}

/// Replaces the headers by the exact spelling that rmcp compares with.
pub(super) fn normalize_media_types(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        (header::CONTENT_TYPE, HeaderValue::from_static(JSON)),
    ] {
        if headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
}

/// Whether the body is JSON, by its header.
pub fn sends_json(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return false };
    value.to_str().is_ok_and(|value| essence(value).eq_ignore_ascii_case(JSON))
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).any(|range| covers(range, kind) && !has_zero_weight(range))
}

fn covers(range: &str, kind: &str) -> bool {
    let range = essence(range);
    let family = kind.split('/').next().unwrap_or_default();
    range == "*/*"
        || range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(family))
        || range.eq_ignore_ascii_case(kind)
}

/// Whether the range has `q=0`, which excludes it.
fn has_zero_weight(range: &str) -> bool {
    let mut parameters = range.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters
        .any(|(name, value)| name.trim().eq_ignore_ascii_case("q") && value.trim().parse() == Ok(0.0_f32))
}

/// The media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

/// The address to listen on. A non-loopback address is refused without a token file.
pub fn parse_address(given: &str, has_token_file: bool) -> Result<SocketAddr, AppError> {
    let address: SocketAddr = given.replace("localhost", "127.0.0.1").parse().map_err(|_| {
        AppError::new(ErrorCode::InvalidValue, format!("{given} is not an address with a port."))
            .context("field", "http")
            .suggest("Use the form 127.0.0.1:7777.")
    })?;
    if !address.ip().is_loopback() && !has_token_file {
        return Err(AppError::new(
            ErrorCode::PolicyBlocked,
            format!("{address} can be reached from other machines."),
        )
        .suggest("Serve on 127.0.0.1, or pass --token-file with the token that clients must send."));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate_at(address: &str, token: Token) -> Gate {
        Gate::new(address.parse().unwrap(), Scheme::HTTP, token, Scope::Write)
    }

    fn gate() -> (Gate, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = Token::load_or_create(&path).unwrap();
        let header = format!("Bearer {}", std::fs::read_to_string(&path).unwrap().trim());
        (gate_at("127.0.0.1", token), header)
    }

    fn status_of(gate: &Gate, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        map.insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        for (name, value) in headers {
            map.append(header::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let checked = gate.check(&Method::GET, &target.parse().unwrap(), &map);
        checked.map_or_else(|response| response.status.as_u16(), |_| 200)
    }

    #[test]
    fn host_origin_and_token_are_all_required() {
        let (gate, token) = gate();
        let ours = ("host", "127.0.0.1:7777");
        let known = ("authorization", token.as_str());
        for (path, headers, status) in [
            ("/mcp", vec![ours, known], 200),
            ("/mcp", vec![("host", "LocalHost"), known], 200),
            ("/mcp", vec![("host", "[::1]:7777"), known], 200),
            ("/mcp", vec![ours], 401),
            ("/mcp", vec![ours, ("authorization", "Bearer nonsense")], 401),
            ("/mcp", vec![ours, known, ("authorization", "Bearer nonsense")], 401),
            ("/mcp", vec![ours, ("authorization", "Bearer nonsense"), known], 401),
            ("/mcp", vec![ours, known, known], 401),
            ("http://localhost:7777/mcp", vec![ours, known], 200),
            ("http://evil.com/mcp", vec![ours, known], 403),
            ("http://127.0.0.1@evil.com/mcp", vec![ours, known], 403),
            ("http://127.0.0.1:7777/mcp", vec![("host", "evil.com"), known], 403),
            ("/mcp", vec![("host", "127.0.0.1:7777@evil.com"), known], 403),
            ("/mcp", vec![("host", "127.0.0.5:7777"), known], 403),
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
            ("/api/v1/tasks", vec![ours, known], 200),
            ("/api/v1/tasks", vec![ours], 401),
            ("/api/v1/tasks", vec![("host", "evil.com"), known], 403),
            ("/api/v1/tasks", vec![ours, ("origin", "https://evil.com"), known], 403),
            ("/api/v10/tasks", vec![ours, known], 404),
        ] {
            assert_eq!(status_of(&gate, path, &headers), status, "{path} {headers:?}");
        }
    }

    #[test]
    fn behind_a_proxy_the_token_counts_for_nothing_and_the_public_scheme_counts() {
        let (gate, token) = gate();
        let gate = gate.with_name("127.0.0.1", Scheme::HTTPS).for_browsers_only();
        let (ours, known) = (("host", "127.0.0.1:7777"), ("authorization", token.as_str()));
        for (path, headers, status) in [
            ("/mcp", vec![ours, known], 403),
            ("/api/v1/tasks", vec![ours, known], 403),
            ("/api/v1/tasks", vec![ours, ("origin", "https://127.0.0.1:7777")], 401),
            ("/api/v1/tasks", vec![ours, ("origin", "http://127.0.0.1:7777")], 403),
        ] {
            assert_eq!(status_of(&gate, path, &headers), status, "{path} {headers:?}");
        }
    }

    #[test]
    fn the_listening_address_is_an_allowed_host() {
        for (address, host, others) in [
            ("127.0.0.5", "127.0.0.5:7777", "127.0.0.6:7777"),
            ("192.0.2.7", "192.0.2.7:7777", "192.0.2.8:7777"),
            ("::1", "[::1]:7777", "[::2]:7777"),
        ] {
            let (gate, token) = gate();
            let gate = gate_at(address, gate.token);
            let known = ("authorization", token.as_str());
            assert_eq!(status_of(&gate, "/mcp", &[("host", host), known]), 200, "{host}");
            assert_eq!(status_of(&gate, "/mcp", &[("host", others), known]), 403, "{others}");
            assert_eq!(status_of(&gate, "/mcp", &[("host", "localhost:7777"), known]), 200);
        }
    }

    #[test]
    fn non_loopback_addresses_require_a_token_file() {
        assert!(parse_address("127.0.0.1:0", false).is_ok());
        assert!(parse_address("localhost:7777", false).is_ok());
        assert!(parse_address("[::1]:7777", false).is_ok());
        assert_eq!(parse_address("0.0.0.0:7777", false).unwrap_err().code, ErrorCode::PolicyBlocked);
        assert!(parse_address("0.0.0.0:7777", true).is_ok());
        assert_eq!(parse_address("nonsense", false).unwrap_err().code, ErrorCode::InvalidValue);
    }

    fn media_status(method: &Method, accept: &[&'static str], content: &[&'static str]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, values) in [(header::ACCEPT, accept), (header::CONTENT_TYPE, content)] {
            for value in values {
                headers.append(&name, HeaderValue::from_static(value));
            }
        }
        check_media_types(method, &headers).map_or_else(|response| response.status.as_u16(), |()| 200)
    }

    #[test]
    fn media_types_ignore_case_and_parameters() {
        let both = "application/json, text/event-stream";
        for (accept, content, status) in [
            (vec![both], vec!["application/json"], 200),
            (vec!["APPLICATION/JSON;q=0.5,Text/Event-Stream ; q=1"], vec!["Application/Json"], 200),
            (vec!["application/json", "text/event-stream"], vec!["application/json; charset=utf-8"], 200),
            (vec!["*/*"], vec!["application/json"], 200),
            (vec!["application/*, text/*;q=0.1"], vec!["application/json"], 200),
            (vec!["application/*"], vec!["application/json"], 406),
            (vec!["application/json, text/event-stream;q=0"], vec!["application/json"], 406),
            (vec!["application/jsonp, text/event-stream"], vec!["application/json"], 406),
            (vec!["application/json"], vec!["application/json"], 406),
            (vec![], vec!["application/json"], 406),
            (vec![both], vec!["application/jsonp"], 415),
            (vec![both], vec!["application/json-rpc"], 415),
            (vec![both], vec!["text/plain"], 415),
            (vec![both], vec!["application/json", "text/plain"], 415),
            (vec![both], vec![], 415),
        ] {
            assert_eq!(media_status(&Method::POST, &accept, &content), status, "{accept:?} {content:?}");
        }
    }

    #[test]
    fn get_requires_event_stream_and_delete_requires_nothing() {
        assert_eq!(media_status(&Method::GET, &["Text/*"], &[]), 200);
        assert_eq!(media_status(&Method::GET, &["application/json"], &[]), 406);
        assert_eq!(media_status(&Method::DELETE, &[], &[]), 200);
    }
}
