//! Responses of the transport itself, without rmcp.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use serde::Serialize;

pub type Body = BoxBody<Bytes, Infallible>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlainResponse {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

impl PlainResponse {
    pub(super) const fn new(status: StatusCode, text: &'static str) -> PlainResponse {
        PlainResponse { status, text }
    }
}

impl From<PlainResponse> for Response<Body> {
    fn from(plain: PlainResponse) -> Response<Body> {
        response(plain.status, "text/plain; charset=utf-8", Bytes::from_static(plain.text.as_bytes()))
    }
}

/// A refusal as a JSON-RPC error.
pub(super) fn protocol_error(error: &impl Serialize) -> Response<Body> {
    response(
        StatusCode::BAD_REQUEST,
        "application/json",
        serde_json::to_vec(error).unwrap_or_default().into(),
    )
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    if !status.is_success() {
        // A refused client must not occupy a connection.
        headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    response
}
