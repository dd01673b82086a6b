//! What an error message of Codex consists of.
//!
//! Codex puts context before a cause, and quotes causes in each other: `stream disconnected before
//! completion: unexpected status 429 Too Many Requests: {"error":{…}}, request id: …`. Messages come from the
//! agent and may have any length, so only a few levels are read.

use delegator_domain::task::FailureKind;
use delegator_transcript::{ErrorBody, ErrorCode};

/// Context that agents put before the cause, in lower case. The last two are Claude Code's and goose's.
const CONTEXTS: [&str; 15] = [
    "error: ",
    "thread/start: ",
    "thread/start failed: ",
    "thread/resume: ",
    "thread/resume failed: ",
    "turn/start: ",
    "turn/start failed: ",
    "error creating thread: ",
    "error resuming thread: ",
    "fatal error: ",
    "failed to initialize session: ",
    "failed to initialize in-process app-server client: ",
    "stream error: ",
    "api error: ",
    "ran into this error: ",
];

/// Reasons of the statuses that model providers answer with, as Codex prints them.
const REASONS: [&str; 17] = [
    "400 bad request",
    "401 unauthorized",
    "402 payment required",
    "403 forbidden",
    "404 not found",
    "408 request timeout",
    "409 conflict",
    "413 payload too large",
    "422 unprocessable entity",
    "429 too many requests",
    "500 internal server error",
    "501 not implemented",
    "502 bad gateway",
    "503 service unavailable",
    "504 gateway timeout",
    "520 <unknown status code>",
    "529 <unknown status code>",
];

const MAX_LEVELS: usize = 4;

/// An error message, in lower case.
#[derive(Debug)]
pub(crate) struct ErrorMessage {
    /// What quotes the text, from the outside in.
    pub(crate) links: Vec<Link>,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) enum Link {
    /// `unexpected status 401 Unauthorized: …`
    Status(u16),
    /// `stream disconnected before completion: …`
    Disconnected,
    Body(ErrorBody),
}

impl ErrorMessage {
    pub(crate) fn of_event(message: &str) -> ErrorMessage {
        ErrorMessage::split(message, false)
    }

    /// Splits an error on standard error. Other programs print errors there too, so only what they would not
    /// print counts: a status needs its reason, and a response has to be quoted.
    pub(super) fn of_printed_error(message: &str) -> ErrorMessage {
        ErrorMessage::split(message, true)
    }

    fn split(message: &str, is_printed: bool) -> ErrorMessage {
        let mut split = ErrorMessage { links: Vec::new(), text: normalized(message) };
        while split.links.len() < MAX_LEVELS {
            let accepts_body = !is_printed || !split.links.is_empty();
            let cause = without_context(&split.text);
            let (link, text) = if let Some(rest) = after_disconnect(cause) {
                (Some(Link::Disconnected), rest.to_owned())
            } else if let Some((status, rest)) = http_status(cause, is_printed) {
                (Some(Link::Status(status)), rest.to_owned())
            } else if let Some(mut body) = ErrorBody::parse(cause).filter(|_| accepts_body) {
                let text = body.message.take().unwrap_or_default();
                (Some(Link::Body(body)), text)
            } else {
                (None, cause.to_owned())
            };
            split.text = text;
            match link {
                Some(link) => split.links.push(link),
                None => break,
            }
        }
        split
    }
}

pub(super) fn normalized(message: &str) -> String {
    message.trim().replace('\u{2019}', "'").to_lowercase()
}

fn without_context(message: &str) -> &str {
    let mut rest = message;
    while let Some(cause) =
        CONTEXTS.iter().find_map(|context| rest.strip_prefix(context)).or_else(|| after_retry_count(rest))
    {
        rest = cause;
    }
    rest
}

/// The cause in `reconnecting... 2/5 (cause)`.
fn after_retry_count(message: &str) -> Option<&str> {
    let (count, cause) = message.strip_prefix("reconnecting... ")?.split_once(" (")?;
    let (attempt, attempts) = count.split_once('/')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(attempt) && is_number(attempts)).then(|| cause.strip_suffix(')').unwrap_or(cause))
}

fn after_disconnect(message: &str) -> Option<&str> {
    let rest =
        message.strip_prefix("stream disconnected before completion").filter(|rest| ends_clause(rest))?;
    Some(rest.strip_prefix(": ").unwrap_or_default())
}

/// The status, and the text behind it, of `unexpected status 401 unauthorized: text`.
fn http_status(message: &str, needs_reason: bool) -> Option<(u16, &str)> {
    let rest = message
        .strip_prefix("unexpected status ")
        .or_else(|| message.strip_prefix("exceeded retry limit, last status: "))?;
    let digits = rest.get(..3).filter(|_| ends_word(&rest[3..]))?;
    let has_reason = REASONS.iter().any(|reason| rest.strip_prefix(reason).is_some_and(ends_status));
    if needs_reason && !has_reason {
        return None;
    }
    let quoted = rest.split_once(": ").map_or("", |(_, quoted)| quoted);
    Some((digits.parse().ok()?, quoted))
}

/// Whether a status ends here, or Codex continues with the response or with facts about the request.
fn ends_status(rest: &str) -> bool {
    match rest.strip_prefix(", ") {
        Some(fact) => ["url: ", "request id: ", "cf-ray: "].iter().any(|name| fact.starts_with(name)),
        None => ends_clause(rest),
    }
}

/// Whether a sentence or a part of it ends here. Codex appends codes in parentheses, Claude Code advice after
/// a dot.
pub(super) fn ends_clause(rest: &str) -> bool {
    rest.is_empty()
        || rest.starts_with(['.', ':', ',', ';'])
        || [" (os error ", " (code ", " \u{b7} "].iter().any(|code| rest.starts_with(code))
}

pub(super) fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
}

/// What an error is about, by the code that the agent reported.
pub(super) fn kind_of_code(code: ErrorCode) -> Option<FailureKind> {
    match code {
        ErrorCode::UsageLimit => Some(FailureKind::UsageLimit),
        ErrorCode::RateLimit | ErrorCode::Overloaded => Some(FailureKind::RateLimit),
        ErrorCode::Unauthorized => Some(FailureKind::Auth),
        ErrorCode::ModelNotFound => Some(FailureKind::BadModel),
        ErrorCode::Sandbox => Some(FailureKind::Sandbox),
        ErrorCode::Connection { http_status: Some(status) } => kind_of_status(status),
        ErrorCode::Connection { http_status: None } => Some(FailureKind::Network),
    }
}

pub(super) fn kind_of_status(status: u16) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Auth),
        402 => Some(FailureKind::UsageLimit),
        429 | 529 => Some(FailureKind::RateLimit),
        408 | 500..=599 => Some(FailureKind::Network),
        _ => None,
    }
}
