//! Checks the media types that a client sends and accepts, parsed as HTTP defines them.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::mcp::transport::http::responses::PlainResponse;

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

pub(super) fn check_media_types(method: &Method, headers: &HeaderMap) -> Result<(), PlainResponse> {
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

fn sends_json(headers: &HeaderMap) -> bool {
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
    let is_family = |family: &str| {
        let of_kind = kind.split('/').next().unwrap_or_default();
        family.eq_ignore_ascii_case(of_kind)
    };
    range == "*/*" || range.strip_suffix("/*").is_some_and(is_family) || range.eq_ignore_ascii_case(kind)
}

/// Whether the range has `q=0`, which excludes it.
fn has_zero_weight(range: &str) -> bool {
    let mut weights = range.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    weights.any(|(name, weight)| {
        name.trim().eq_ignore_ascii_case("q")
            && weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0)
    })
}

/// The media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(method: &Method, accept: &[&'static str], content: &[&'static str]) -> u16 {
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
            assert_eq!(status_of(&Method::POST, &accept, &content), status, "{accept:?} {content:?}");
        }
    }

    #[test]
    fn get_requires_event_stream_and_delete_requires_nothing() {
        assert_eq!(status_of(&Method::GET, &["Text/*"], &[]), 200);
        assert_eq!(status_of(&Method::GET, &["application/json"], &[]), 406);
        assert_eq!(status_of(&Method::DELETE, &[], &[]), 200);
    }
}
