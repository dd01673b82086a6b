//! Responses with the headers that keep a page to itself.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};

use crate::mcp::pages::request::accepts_gzip;
use crate::mcp::transport::http::Body;

/// Only our own files, no script or style in the page itself, and no other site may embed it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A shorter body is not worth compressing.
const MIN_COMPRESSED: usize = 1_000;

pub(super) fn html(status: StatusCode, html: String, head: &Parts) -> Response<Body> {
    let mut response = of(status, "text/html; charset=utf-8", html.into_bytes(), head);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    with_headers(response)
}

/// Compressed if the client takes that.
pub(super) fn of(status: StatusCode, kind: &'static str, body: Vec<u8>, head: &Parts) -> Response<Body> {
    let compressed =
        (body.len() >= MIN_COMPRESSED && accepts_gzip(&head.headers)).then(|| gzip(&body)).flatten();
    let is_compressed = compressed.is_some();
    let mut response = Response::new(Full::new(Bytes::from(compressed.unwrap_or(body))).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    with_headers(response)
}

fn with_headers(mut response: Response<Body>) -> Response<Body> {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(super) fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}
