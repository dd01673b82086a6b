//! The files of the pages: style, script, icons. They are part of the program and contain no data, so they need no
//! session.

use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::mcp::pages::{paths, response};
use crate::mcp::transport::http::Body;
use crate::spec::paging::fingerprint;

struct Asset {
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

macro_rules! asset {
    ($path:expr, $kind:literal, $file:literal) => {
        Asset { path: $path, kind: $kind, content: include_bytes!(concat!("../../../assets/", $file)) }
    };
}

const ASSETS: [Asset; 7] = [
    asset!("/ui/assets/dashboard.css", "text/css; charset=utf-8", "dashboard.css"),
    asset!("/ui/assets/dashboard.js", "text/javascript; charset=utf-8", "dashboard.js"),
    asset!("/ui/assets/icon.svg", "image/svg+xml", "icon.svg"),
    asset!("/ui/assets/icon-192.png", "image/png", "icon-192.png"),
    asset!("/ui/assets/icon-512.png", "image/png", "icon-512.png"),
    asset!(paths::MANIFEST, "application/manifest+json", "manifest.webmanifest"),
    asset!(paths::SERVICE_WORKER, "text/javascript; charset=utf-8", "service-worker.js"),
];

pub(super) fn find(head: &Parts) -> Option<Response<Body>> {
    let asset = ASSETS.iter().find(|asset| asset.path == head.uri.path())?;
    if head.method != Method::GET && head.method != Method::HEAD {
        return Some(response::plain(StatusCode::METHOD_NOT_ALLOWED, "This file is only read.\n"));
    }
    let etag = format!("\"{}\"", fingerprint(&String::from_utf8_lossy(asset.content).into()));
    let known = head.headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let (status, content) = match known == Some(etag.as_str()) {
        true => (StatusCode::NOT_MODIFIED, Vec::new()),
        false => (StatusCode::OK, asset.content.to_vec()),
    };
    let mut found = response::of(status, asset.kind, content, head);
    // Another version of the program has other files.
    found.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        found.headers_mut().insert(header::ETAG, etag);
    }
    Some(found)
}
