//! What Codex's error messages are about.
//!
//! Codex has an error code only in its session files; elsewhere it reports in prose what callers branch on. A
//! message has a kind only if it begins with a whole phrase that Codex is known to print, after the context
//! that Codex puts before it. The phrases are recorded from Codex 0.166 or taken from its source. A status
//! code counts only inside such a phrase. Words anywhere else in a message never decide: they may be numbers
//! of a log, names of files or text of a user.

use delegator_domain::task::FailureKind;
use delegator_transcript::ErrorCode;
use delegator_transcript::wire::acp::{code_of_text, names_usage_limit};

use FailureKind::{
    Auth, BadModel, Network, RateLimit, Sandbox, ThreadNotFound, UntrustedDirectory, UsageLimit,
};

use super::error_message::{
    ErrorMessage, Link, ends_clause, ends_word, kind_of_code, kind_of_status, normalized,
};

/// In a phrase, `*` stands for one word without spaces, and `$` for the end of a sentence or of a part of it.
type Phrases = &'static [(FailureKind, &'static [&'static str])];

/// Phrases of Codex itself. In lower case, like the messages they are compared with.
const CODEX_PHRASES: Phrases = &[
    (UntrustedDirectory, &["not inside a trusted directory"]),
    (ThreadNotFound, &["no rollout found for thread id *", "no saved session found with id *"]),
    (
        UsageLimit,
        &[
            "you've hit your usage limit$",
            "you've hit your usage limit for *",
            "your workspace is out of credits$",
            "you hit your spend cap set",
            "quota exceeded. check your plan and billing details",
            "to use codex with your chatgpt plan, upgrade to",
        ],
    ),
    (
        Auth,
        &[
            "not signed in. please run 'codex login'",
            "your access token could not be refreshed$",
            "your access token could not be refreshed because",
            "your authentication session could not be refreshed automatically$",
        ],
    ),
    (RateLimit, &["selected model is at capacity$"]),
    (
        Sandbox,
        &[
            "codex-linux-sandbox was required but not provided",
            "landlock was not able to fully enforce all sandbox rules",
            "error applying landlock ruleset",
            "seccomp setup error",
            "failed to exec system bubblewrap",
            "failed to exec bundled bubblewrap",
            "bwrap: no permissions to create new namespace",
            "bwrap: no permissions to create a new namespace",
            "bwrap: creating new namespace failed",
            "bwrap: setting up uid map",
        ],
    ),
    (
        Network,
        &[
            "reconnecting... waiting for network",
            // Codex's text for an error 500 of the model.
            "we're currently experiencing high demand, which may cause temporary errors$",
        ],
    ),
];

/// Lines that Codex and its sandbox print on standard error without any prefix. Other programs print there as
/// well, so phrases about the model do not count without one.
const PLAIN_LINES: Phrases = &[
    (UntrustedDirectory, &["not inside a trusted directory and --skip-git-repo-check was not specified$"]),
    (Auth, &["not signed in. please run 'codex login'"]),
    (
        Sandbox,
        &[
            "bwrap: no permissions to create new namespace",
            "bwrap: no permissions to create a new namespace",
            "bwrap: creating new namespace failed",
            "bwrap: setting up uid map",
        ],
    ),
];

/// Phrases that other programs print as well: of model providers, quoted by Codex, and short ones of Codex.
/// They count only where the text is about the model for certain: in an error event, or quoted by a phrase of
/// Codex.
const EVENT_PHRASES: Phrases = &[
    (
        ThreadNotFound,
        &["session not found: *", "no thread with id: *", "no conversation found with session id: *"],
    ),
    (
        UsageLimit,
        &[
            "you exceeded your current quota",
            "the usage limit has been reached",
            "billing hard limit has been reached",
            "credit balance is too low",
            "you've hit your limit",
            "you've reached your usage limit",
            "you have reached your usage limit",
            "claude usage limit reached",
            "claude ai usage limit reached",
            "5-hour limit reached",
            "weekly limit reached",
        ],
    ),
    (
        Auth,
        &[
            "401 unauthorized$",
            "403 forbidden$",
            "unauthorized$",
            "not signed in$",
            "not logged in$",
            "incorrect api key provided",
            "invalid api key$",
            "you didn't provide an api key",
            "oauth token revoked",
            "oauth token has expired",
            "missing bearer",
            "missing environment variable: `*`",
            "provided authentication token is expired",
            "your authentication token has been invalidated",
        ],
    ),
    (
        BadModel,
        &[
            "the model `*` does not exist",
            "the model '*' does not exist",
            "the model `*` is not available",
            "the model does not exist",
            "the requested model '*' does not exist",
            "the '*' model is not supported",
            "the '*' model is not available",
            "the '*' model requires a newer version",
            "model '*' not found",
            "model \"*\" not found",
            "there's an issue with the selected model",
            "unknown model",
            "unsupported model",
            "you do not have access to the model",
        ],
    ),
    (
        RateLimit,
        &[
            "rate limit reached",
            "rate limit exceeded",
            "too many requests$",
            "429 too many requests$",
            "overloaded$",
            "that model is currently overloaded",
            "our servers are currently overloaded",
            "the server is overloaded",
        ],
    ),
    (Sandbox, &["sandbox error: "]),
    (
        Network,
        &[
            "request timed out$",
            "idle timeout waiting for sse",
            "transport error: ",
            "error sending request",
            "connection failed: error sending request",
            "error while reading the server response: ",
            "connection refused$",
            "connection reset by peer$",
            "network error$",
            "network is unreachable$",
            "dns error",
            "failed to lookup address information",
            "502 bad gateway$",
            "503 service unavailable$",
            "504 gateway timeout$",
        ],
    ),
];

const BODY_NAMES: Phrases = &[
    (
        UsageLimit,
        &["insufficient_quota", "usage_limit_reached", "usage_not_included", "billing_hard_limit_reached"],
    ),
    (Auth, &["invalid_api_key", "token_expired", "token_invalidated", "authentication_error"]),
    (BadModel, &["model_not_found", "unsupported_model"]),
    (RateLimit, &["rate_limit_exceeded", "server_is_overloaded", "slow_down", "overloaded_error"]),
];

const MAX_WORD_BYTES: usize = 100;

pub(in crate::agent) fn reported_failure(message: &str, code: Option<ErrorCode>) -> Option<FailureKind> {
    let text = normalized(message);
    if is_stopped_response(&text) {
        return None;
    }
    let code = code.or_else(|| code_of_text(message));
    let words = || kind_of_message(&ErrorMessage::of_event(message), &[CODEX_PHRASES, EVENT_PHRASES]);
    match code.and_then(kind_of_code).or_else(words)? {
        RateLimit if names_usage_limit(&text) => Some(UsageLimit),
        kind => Some(kind),
    }
}

/// Whether the model ended its response itself: another attempt has the same result. Codex reports that as a
/// lost connection.
fn is_stopped_response(text: &str) -> bool {
    ["incomplete response returned, reason: ", "reason: content_filter"]
        .iter()
        .any(|stop| text.contains(stop))
}

/// The kind of a message that Codex logged or printed as its error, without the prefix.
pub(super) fn printed_failure(message: &str) -> Option<FailureKind> {
    let message = ErrorMessage::of_printed_error(message);
    let is_quoted = !message.links.is_empty();
    kind_of_message(&message, if is_quoted { &[CODEX_PHRASES, EVENT_PHRASES] } else { &[CODEX_PHRASES] })
}

pub(super) fn kind_of_plain_line(line: &str) -> Option<FailureKind> {
    find(&normalized(line), &[PLAIN_LINES])
}

/// A name in an error response decides before the innermost text, and that before the phrases around it.
fn kind_of_message(message: &ErrorMessage, phrases: &[Phrases]) -> Option<FailureKind> {
    if is_stopped_response(&message.text) {
        return None;
    }
    let name = |link: &Link| match link {
        Link::Body(body) => body.names.iter().find_map(|name| find(name, &[BODY_NAMES])),
        Link::Status(_) | Link::Disconnected => None,
    };
    let phrase = |link: &Link| match link {
        Link::Status(status) => kind_of_status(*status),
        Link::Disconnected => Some(Network),
        Link::Body(_) => None,
    };
    let links = &message.links;
    let named = links.iter().find_map(name);
    named.or_else(|| find(&message.text, phrases)).or_else(|| links.iter().rev().find_map(phrase))
}

fn find(text: &str, phrases: &[Phrases]) -> Option<FailureKind> {
    let is_about = |(kind, list): &(FailureKind, &[&str])| {
        list.iter().any(|phrase| begins_with(text, phrase)).then_some(*kind)
    };
    phrases.iter().flat_map(|table| table.iter()).find_map(is_about)
}

fn begins_with(text: &str, phrase: &str) -> bool {
    let (phrase, is_closed) = phrase.strip_suffix('$').map_or((phrase, false), |phrase| (phrase, true));
    let mut parts = phrase.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    for part in parts {
        let word_end = match part {
            "" => rest.find(char::is_whitespace).unwrap_or(rest.len()),
            part => rest.find(part).unwrap_or(0),
        };
        let (word, after) = rest.split_at(word_end);
        if word.is_empty() || word.len() > MAX_WORD_BYTES || word.contains(char::is_whitespace) {
            return false;
        }
        rest = &after[part.len()..];
    }
    if is_closed { ends_clause(rest) } else { phrase.ends_with(' ') || ends_word(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &[(&str, Option<FailureKind>)] = &[
        ("unexpected status 401 Unauthorized: Incorrect API key provided, url: http://x", Some(Auth)),
        (
            "unexpected status 403 Forbidden: You do not have access to this resource, url: http://x",
            Some(Auth),
        ),
        ("unexpected status 402 Payment Required: Payment required, url: http://x", Some(UsageLimit)),
        ("unexpected status 503 Service Unavailable: unavailable, url: http://x", Some(Network)),
        ("unexpected status 404 Not Found: The model `gpt-9` does not exist, url: http://x", Some(BadModel)),
        ("unexpected status 404 Not Found: no such page, url: http://x/401", None),
        (
            "unexpected status 429 Too Many Requests: {\"error\":{\"type\":\"usage_limit_reached\"}}",
            Some(UsageLimit),
        ),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: 401", Some(RateLimit)),
        (
            "exceeded retry limit, last status: 429 Too Many Requests: \
             {\"error\":{\"type\":\"usage_limit_reached\"}}, request id: 401",
            Some(UsageLimit),
        ),
        ("exceeded retry limit, last status: 500 Internal Server Error, request id: 429", Some(Network)),
        ("unexpected status 401: no", Some(Auth)),
        ("Reconnecting... 2/2 (exceeded retry limit, last status: 429 Too Many Requests)", Some(RateLimit)),
        ("Reconnecting... waiting for network (Connection failed: error sending request)", Some(Network)),
        (
            "stream error: exceeded retry limit, last status: 401 Unauthorized; retrying 1/5 in 200ms",
            Some(Auth),
        ),
        ("You\u{2019}ve hit your usage limit. Try again later.", Some(UsageLimit)),
        (
            "You've hit your usage limit for GPT-9. Switch to another model now, or try again later.",
            Some(UsageLimit),
        ),
        ("Your workspace is out of credits. Add credits to continue.", Some(UsageLimit)),
        ("Quota exceeded. Check your plan and billing details.", Some(UsageLimit)),
        (
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
            Some(UsageLimit),
        ),
        ("rate limit exceeded: Rate limit reached for gpt-5.1 in organization org-AAA", Some(RateLimit)),
        ("stream disconnected before completion: Rate limit reached for gpt-5.1", Some(RateLimit)),
        ("stream disconnected before completion: Something failed upstream", Some(Network)),
        ("stream disconnected before completion", Some(Network)),
        ("We\u{2019}re currently experiencing high demand, which may cause temporary errors.", Some(Network)),
        ("Selected model is at capacity. Please try a different model.", Some(RateLimit)),
        ("Your access token could not be refreshed because your refresh token has expired.", Some(Auth)),
        ("Missing environment variable: `OPENAI_API_KEY`.", Some(Auth)),
        (
            "{\"detail\": \"The 'gpt-9' model is not supported when using Codex with a ChatGPT account.\"}",
            Some(BadModel),
        ),
        ("{\"error\": {\"message\": \"x\", \"code\": \"model_not_found\"}}", Some(BadModel)),
        (
            "{\"error\": {\"message\": \"Unsupported parameter: 'foo'\", \"code\": \"unsupported_parameter\"}}",
            None,
        ),
        ("sandbox error: seccomp setup error", Some(Sandbox)),
        ("Connection failed: error sending request", Some(Network)),
        ("Request timed out.", Some(Network)),
    ];

    #[test]
    fn messages_of_events_have_their_kind() {
        for &(message, expected) in MESSAGES {
            assert_eq!(reported_failure(message, None), expected, "{message}");
        }
    }

    #[test]
    fn words_that_do_not_begin_a_message_decide_nothing() {
        for message in [
            "Invalid prompt: 429 token expired",
            "request timed out rows were deleted",
            "overloaded functions are not supported",
            "the model file model.py was not found",
            "stream disconnected before completions were read",
            "stream disconnected before completion in test stream_closes_early ... ok",
            "Selected model is at capacity (unit test for capacity planner)",
            "You've hit your usage limit test case twice",
            "Codex ran out of room in the model's context window.",
            "Incomplete response returned, reason: max_output_tokens",
            "",
        ] {
            assert_eq!(reported_failure(message, None), None, "{message}");
        }
    }

    #[test]
    fn codes_decide_before_messages() {
        let kind = |code| reported_failure("You've hit your usage limit.", Some(code));
        let status = |status| kind(ErrorCode::Connection { http_status: Some(status) });
        assert_eq!(kind(ErrorCode::ModelNotFound), Some(BadModel));
        assert_eq!(kind(ErrorCode::Connection { http_status: None }), Some(Network));
        assert_eq!([429, 403, 504].map(status), [Some(UsageLimit), Some(Auth), Some(Network)]);
        assert_eq!(reported_failure("Slow down.", Some(ErrorCode::RateLimit)), Some(RateLimit));
        assert_eq!(status(400), Some(UsageLimit), "this status decides nothing, so the message does");
    }

    #[test]
    fn only_phrases_of_codex_count_in_printed_errors() {
        let cases = [
            (
                "thread/resume: thread/resume failed: no rollout found for thread id 0-0 (code -32600)",
                Some(ThreadNotFound),
            ),
            (
                "Not inside a trusted directory and --skip-git-repo-check was not specified.",
                Some(UntrustedDirectory),
            ),
            ("Not signed in. Please run 'codex login' to sign in with ChatGPT", Some(Auth)),
            ("exceeded retry limit, last status: 429 Too Many Requests", Some(RateLimit)),
            ("bwrap: No permissions to create new namespace, likely because of the kernel", Some(Sandbox)),
            ("rate limit exceeded", None),
            ("Connection refused (os error 111)", None),
            ("Model provider `nope` not found", None),
            ("429 Too Many Requests", None),
            ("unexpected status code 401 from the registry", None),
            ("unexpected status 401 from the npm registry", None),
            ("unexpected status 401", None),
            ("unexpected status 429 while replaying fixture", None),
            ("unexpected status 401 Unauthorized, expected 200 (tests/http.rs:12)", None),
            ("unexpected status 401 Unauthorized in test login", None),
            ("unexpected status 401 Unauthorized, url: http://x", Some(Auth)),
            ("Selected model is at capacity. Please try a different model.", Some(RateLimit)),
            ("Selected model is at capacity (unit test for capacity planner)", None),
            ("unexpected status 401 Unauthorized: no, url: http://x", Some(Auth)),
            ("unexpected status 529 <unknown status code>: no", Some(RateLimit)),
            ("stream disconnected before completion: Rate limit reached for gpt-5.1", Some(RateLimit)),
            ("last status: 429 Too Many Requests", None),
            ("Session not found: playwright-7", None),
            (r#"{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}"#, None),
        ];
        for (message, expected) in cases {
            assert_eq!(printed_failure(message), expected, "{message}");
        }
    }

    #[test]
    fn plain_lines_about_the_model_have_no_kind() {
        let cases = [
            (
                "Not inside a trusted directory and --skip-git-repo-check was not specified.",
                Some(UntrustedDirectory),
            ),
            ("Selected model is at capacity. Please try a different model.", None),
            ("You've hit your usage limit.", None),
            ("Not signed in. Please run 'codex login' to sign in with ChatGPT", Some(Auth)),
            ("exceeded retry limit, last status: 429 Too Many Requests", None),
            ("unexpected status 401 Unauthorized: no, url: http://x", None),
            ("stream disconnected before completion: Rate limit reached", None),
            ("Connection failed: error sending request", None),
        ];
        for (line, expected) in cases {
            assert_eq!(kind_of_plain_line(line), expected, "{line}");
        }
    }

    #[test]
    fn a_deeply_quoted_cause_has_the_kind_of_its_outer_levels() {
        for prefix in ["unexpected status 500: ", "stream disconnected before completion: ", "error: "] {
            let message = prefix.repeat(100_000);
            let expected = (prefix != "error: ").then_some(Network);
            assert_eq!(reported_failure(&message, None), expected, "{prefix}");
        }
    }
}
