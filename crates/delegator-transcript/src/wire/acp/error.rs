//! Errors of the agent: what they are about, and their message.
//!
//! JSON-RPC has one code for nearly all of them (-32603). What an error is about stands in `data`
//! (claude-acp, both codex-acp) or, in Gemini CLI, in the code, which is the HTTP status of the model
//! provider. Goose, Copilot and Qwen Code write the status into the text, each in its own way.

use crate::error_body::ErrorBody;
use crate::event::ErrorCode;
use crate::json::{Object, Text, Value};
use crate::values::codex_error_code;
use crate::wire::json_rpc::RpcError;

use super::AUTHENTICATION_REQUIRED;

/// Begins messages that say nothing but the code.
const INTERNAL_ERROR: &str = "Internal error";
/// What Claude Code and goose put before the cause, in lower case.
const CONTEXTS: [&str; 2] = ["api error: ", "ran into this error: "];

pub(crate) fn error_code(error: &RpcError<'_>) -> Option<ErrorCode> {
    let message = error.message.resolve().to_lowercase();
    if error.code == AUTHENTICATION_REQUIRED {
        return Some(ErrorCode::Unauthorized);
    }
    let data = Object::read(error.data);
    code_of_kind(&data, &message)
        .or_else(|| codex_error_code(&data))
        .or_else(|| status_code(u16::try_from(error.code).ok()?, &message))
        .or_else(|| code_of_text(&error_message(error)))
}

/// What an error is about of which only the text is known, whichever agent wrote it.
pub fn code_of_text(message: &str) -> Option<ErrorCode> {
    let lowered = message.to_ascii_lowercase();
    let text = CONTEXTS.iter().find_map(|context| lowered.strip_prefix(context)).unwrap_or(&lowered);
    let begins_with_status = begins_with_status(&message[message.len() - text.len()..]);
    // Goose without any configuration, and OpenAI's words, which Cline passes on without a status.
    if text == "missing provider" || text.starts_with("incorrect api key provided") {
        return Some(ErrorCode::Unauthorized);
    }
    status_in(text, begins_with_status).and_then(|status| status_code(status, text)).or_else(|| {
        Some(match text.split_once(": ")?.0 {
            "authentication error" => ErrorCode::Unauthorized,
            "credits exhausted" => ErrorCode::UsageLimit,
            "rate limit exceeded" if names_usage_limit(text) => ErrorCode::UsageLimit,
            "rate limit exceeded" => ErrorCode::RateLimit,
            "cannot connect to api" => ErrorCode::Connection { http_status: None },
            _ => return None,
        })
    })
}

/// The HTTP status in `401 Incorrect API key`, `… (HTTP 401).`, `… Last error: 500 The server …`,
/// `Server error (500 …`.
fn status_in(text: &str, begins_with_status: bool) -> Option<u16> {
    let introductions =
        ["(http ", "last error: ", "server error (", "resource not found (", "request rejected ("];
    let behind = introductions.iter().find_map(|introduction| Some(text.split_once(introduction)?.1));
    [Some(text).filter(|_| begins_with_status), behind].into_iter().flatten().find_map(|text| {
        let ends_word = !text.get(3..)?.starts_with(|next: char| next.is_alphanumeric());
        text.get(..3)?.parse().ok().filter(|_| ends_word)
    })
}

/// Whether a sentence or a response follows a status, as in the errors of OpenAI's clients. Other numbers
/// begin a count.
fn begins_with_status(text: &str) -> bool {
    let follows = text.get(3..).and_then(|rest| rest.strip_prefix(' '));
    follows.is_some_and(|rest| {
        rest.starts_with(|next: char| next.is_ascii_uppercase() || next == '{')
            || rest.starts_with("status code (no body)")
    })
}

/// `data.errorKind` of claude-acp.
fn code_of_kind(data: &Object<'_>, message: &str) -> Option<ErrorCode> {
    Some(match data.text("errorKind")?.simple()? {
        // Claude Code reports a used-up plan like too many requests.
        "rate_limit" if names_usage_limit(message) => ErrorCode::UsageLimit,
        "rate_limit" => ErrorCode::RateLimit,
        "billing_error" => ErrorCode::UsageLimit,
        "overloaded" | "overloaded_error" => ErrorCode::Overloaded,
        "authentication_failed" | "authentication_error" => ErrorCode::Unauthorized,
        "model_not_found" => ErrorCode::ModelNotFound,
        "server_error" => ErrorCode::Connection { http_status: Some(500) },
        _ => return None,
    })
}

/// Whether the message of a refused request is about a used-up plan, not about too many requests. In lower
/// case.
pub fn names_usage_limit(message: &str) -> bool {
    const LIMITS: [&str; 10] = [
        "usage limit",
        "usage_limit_reached",
        "insufficient_quota",
        "hit your limit",
        "exceeded your current quota",
        "daily quota",
        "weekly limit",
        "5-hour limit",
        "out of credits",
        "credit balance is too low",
    ];
    LIMITS.iter().any(|limit| message.contains(limit))
}

/// What the HTTP status of a model provider means. `message` is in lower case.
fn status_code(status: u16, message: &str) -> Option<ErrorCode> {
    Some(match status {
        401 | 403 => ErrorCode::Unauthorized,
        // Google's answer to a wrong key.
        400 if message.contains("api key not valid") => ErrorCode::Unauthorized,
        429 if names_usage_limit(message) => ErrorCode::UsageLimit,
        429 => ErrorCode::RateLimit,
        400..=599 if is_missing_model(message) => ErrorCode::ModelNotFound,
        503 | 529 => ErrorCode::Overloaded,
        500..=599 => ErrorCode::Connection { http_status: Some(status) },
        _ => return None,
    })
}

/// `models/no-such-model is not found for API version v1beta`, or with OpenAI's words, which goose quotes.
fn is_missing_model(message: &str) -> bool {
    let rest = message.strip_prefix("models/").and_then(|rest| rest.split_once(' '));
    let openai = message.split_once("the model `").and_then(|(_, rest)| rest.split_once('`'));
    rest.is_some_and(|(_, rest)| rest.starts_with("is not found"))
        || openai.is_some_and(|(_, rest)| rest.starts_with(" does not exist"))
}

/// The message for a user: without the code's own words where the agent says more, and without a provider's
/// JSON.
pub(crate) fn error_message(error: &RpcError<'_>) -> String {
    let message = error.message.resolve();
    let specific = message.strip_prefix(INTERNAL_ERROR).map(|rest| rest.trim_start_matches(": "));
    let text = match specific.unwrap_or(&message) {
        "" => details(error.data).unwrap_or_else(|| INTERNAL_ERROR.to_owned()),
        text if specific.is_none() => match details(error.data) {
            Some(details) => format!("{text}: {details}"),
            None => text.to_owned(),
        },
        text => text.to_owned(),
    };
    ErrorBody::parse(&text).and_then(|body| body.message).unwrap_or(text)
}

/// `data.message`, `data.details`, or `data` itself if it is text.
fn details(data: &str) -> Option<String> {
    let wrapped = format!(r#"{{"data":{data}}}"#);
    let wrapped = Object::read(&wrapped);
    let text =
        wrapped.text("data").or_else(|| wrapped.object("data")?.first(&["message", "details"], Value::text));
    text.map(|text: Text<'_>| text.resolve().trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json_rpc::Message;

    const RECORDED: &[(&str, Option<ErrorCode>, &str)] = &[
        (
            r#"{"code":-32000,"message":"Authentication required"}"#,
            Some(ErrorCode::Unauthorized),
            "Authentication required",
        ),
        (
            r#"{"code":-32603,"message":"Internal error: API Error: Request rejected (429) · You have reached your usage limit.","data":{"errorKind":"rate_limit"}}"#,
            Some(ErrorCode::UsageLimit),
            "API Error: Request rejected (429) · You have reached your usage limit.",
        ),
        (
            r#"{"code":-32603,"message":"Internal error: slow down","data":{"errorKind":"rate_limit"}}"#,
            Some(ErrorCode::RateLimit),
            "slow down",
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":{"message":"limit","codexErrorInfo":"usageLimitExceeded"}}"#,
            Some(ErrorCode::UsageLimit),
            "limit",
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":{"message":"x","codex_error_info":{"http_connection_failed":{"http_status_code":403}}}}"#,
            Some(ErrorCode::Connection { http_status: Some(403) }),
            "x",
        ),
        (
            r#"{"code":400,"message":"{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid API key.\"}}"}"#,
            Some(ErrorCode::Unauthorized),
            "API key not valid. Please pass a valid API key.",
        ),
        (
            r#"{"code":500,"message":"models/no-such-model is not found for API version v1beta"}"#,
            Some(ErrorCode::ModelNotFound),
            "models/no-such-model is not found for API version v1beta",
        ),
        (
            r#"{"code":429,"message":"You have exhausted your daily quota on this model."}"#,
            Some(ErrorCode::UsageLimit),
            "You have exhausted your daily quota on this model.",
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":{"details":"401 Incorrect API key provided."}}"#,
            Some(ErrorCode::Unauthorized),
            "401 Incorrect API key provided.",
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":"Missing provider"}"#,
            Some(ErrorCode::Unauthorized),
            "Missing provider",
        ),
        (r#"{"code":-32603,"message":"Internal error"}"#, None, "Internal error"),
        (
            r#"{"code":-32602,"message":"Session not found: x","data":{"details":"y"}}"#,
            None,
            "Session not found: x: y",
        ),
    ];

    #[test]
    fn recorded_errors_have_their_code_and_a_message_without_noise() {
        for (error, code, message) in RECORDED {
            let line = format!(r#"{{"id":1,"error":{error}}}"#);
            let Some(Message::Error { error, .. }) = Message::read(&line) else { panic!("{line}") };
            assert_eq!((error_code(&error), error_message(&error).as_str()), (*code, *message), "{line}");
        }
    }

    #[test]
    fn the_status_of_the_provider_is_found_in_the_texts_of_goose_and_copilot() {
        for (text, code) in [
            (
                "Authentication error: Authentication failed. Status: 401 Unauthorized. Response: x",
                Some(ErrorCode::Unauthorized),
            ),
            ("Rate limit exceeded: The usage limit has been reached.", Some(ErrorCode::UsageLimit)),
            (
                "Server error: Server error (500 Internal Server Error): x",
                Some(ErrorCode::Connection { http_status: Some(500) }),
            ),
            (
                "Authentication failed with provider at http://127.0.0.1:8765/v1 (HTTP 401).",
                Some(ErrorCode::Unauthorized),
            ),
            (
                "Failed; retried 5 times Last error: 500 The server had an error.",
                Some(ErrorCode::Connection { http_status: Some(500) }),
            ),
            (
                "Request failed: Resource not found (404): The model `x` does not exist or you do not have access to it.",
                Some(ErrorCode::ModelNotFound),
            ),
            ("Cannot connect to API: Unable to connect.", Some(ErrorCode::Connection { http_status: None })),
            ("There are 401 problems", None),
            ("5000 tokens", None),
        ] {
            assert_eq!(code_of_text(text), code, "{text}");
        }
    }
}
