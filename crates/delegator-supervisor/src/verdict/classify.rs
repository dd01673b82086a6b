//! Classifies an agent's error messages.
//!
//! Agents report in prose what callers want to branch on. The phrases are Codex's, recorded or taken from its source.
//! The first matching class wins, so the order goes from specific to general.

use delegator_domain::task::FailureKind;

/// What a failure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageClass {
    UntrustedDirectory,
    ThreadNotFound,
    UsageLimit,
    Auth,
    BadModel,
    RateLimit,
    Sandbox,
    Network,
}

impl MessageClass {
    pub fn failure_kind(self) -> FailureKind {
        match self {
            MessageClass::UntrustedDirectory => FailureKind::UntrustedDirectory,
            MessageClass::ThreadNotFound => FailureKind::ThreadNotFound,
            MessageClass::UsageLimit => FailureKind::UsageLimit,
            MessageClass::Auth => FailureKind::Auth,
            MessageClass::BadModel => FailureKind::BadModel,
            MessageClass::RateLimit => FailureKind::RateLimit,
            MessageClass::Sandbox => FailureKind::Sandbox,
            MessageClass::Network => FailureKind::Network,
        }
    }
}

/// A phrase matches if the text contains all of its words, ignoring case.
const CLASS_PHRASES: [(MessageClass, &[&[&str]]); 8] = [
    (MessageClass::UntrustedDirectory, &[&["not inside a trusted directory"]]),
    (
        MessageClass::ThreadNotFound,
        &[
            &["no rollout found for thread"],
            &["thread/resume", "not found"],
            &["no saved session found"],
            &["conversation not found"],
            &["session not found"],
        ],
    ),
    (
        MessageClass::UsageLimit,
        &[
            &["usage limit"],
            &["usage_limit_reached"],
            &["out of credits"],
            &["spend cap"],
            &["quota exceeded"],
            &["exceeded your current quota"],
            &["insufficient_quota"],
        ],
    ),
    (
        MessageClass::Auth,
        &[
            &["401 unauthorized"],
            &["not signed in"],
            &["not logged in"],
            &["codex login"],
            &["incorrect api key"],
            &["invalid api key"],
            &["invalid_api_key"],
            &["missing environment variable"],
            &["missing bearer"],
            &["token", "expired"],
            &["token", "could not be refreshed"],
            &["sign in again"],
            &["403 forbidden"],
        ],
    ),
    (
        MessageClass::BadModel,
        &[
            &["model_not_found"],
            &["unknown model"],
            &["unsupported model"],
            &["model", "does not exist"],
            &["model", "is not supported"],
            &["model", "not found"],
            &["model", "not available"],
            &["model", "do not have access"],
            &["model", "requires a newer version"],
        ],
    ),
    (
        MessageClass::RateLimit,
        &[
            &["429"],
            &["rate limit"],
            &["rate_limit"],
            &["too many requests"],
            &["at capacity"],
            &["overloaded"],
            &["experiencing high demand"],
        ],
    ),
    (
        MessageClass::Sandbox,
        &[
            &["bubblewrap"],
            &["bwrap"],
            &["landlock"],
            &["seccomp"],
            &["creating new namespace"],
            &["user namespace"],
            &["refusing to create helper binaries"],
            &["sandbox", "failed"],
            &["sandbox", "not available"],
            &["sandbox", "unavailable"],
            &["sandbox", "not supported"],
            &["sandbox", "error"],
        ],
    ),
    (
        MessageClass::Network,
        &[
            &["stream disconnected"],
            &["waiting for network"],
            &["connection failed"],
            &["connection refused"],
            &["connection reset"],
            &["error sending request"],
            &["network error"],
            &["network is unreachable"],
            &["dns error"],
            &["failed to lookup address"],
            &["idle timeout waiting for"],
            &["request timed out"],
            &["failed to connect"],
            &["502 bad gateway"],
            &["503 service unavailable"],
            &["504 gateway timeout"],
        ],
    ),
];

pub fn classify(message: &str) -> Option<MessageClass> {
    let text = message.to_lowercase();
    let is_about =
        |phrases: &[&[&str]]| phrases.iter().any(|words| words.iter().all(|word| text.contains(word)));
    CLASS_PHRASES.iter().find(|(_, phrases)| is_about(phrases)).map(|(class, _)| *class)
}

/// When to retry, quoted from the message: `3:51 PM`, `Sep 23rd, 2026 8:13 AM`, `2 days 3 hours`.
pub fn retry_time(message: &str) -> Option<String> {
    let lower = message.to_ascii_lowercase();
    let start = ["try again at ", "try again in "]
        .iter()
        .find_map(|phrase| Some(lower.find(phrase)? + phrase.len()))?;
    let tail = &message[start..];
    // A full stop ends the sentence; one inside a number does not.
    let end = tail.char_indices().find(|&(at, char)| {
        let next = tail[at + char.len_utf8()..].chars().next();
        char == '\n'
            || (matches!(char, '.' | '"' | ')') && next.is_none_or(|next| !next.is_ascii_alphanumeric()))
    });
    let time = tail[..end.map_or(tail.len(), |(at, _)| at)].trim();
    (!time.is_empty() && time.len() <= 64).then(|| time.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_time_is_extracted() {
        let cases = [
            ("You've hit your usage limit. Try again at 3:51 PM.", Some("3:51 PM")),
            (
                "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at Sep \
                 23rd, 2026 8:13 AM.",
                Some("Sep 23rd, 2026 8:13 AM"),
            ),
            ("Rate limit reached. Please try again in 1.898s. Visit https://x.y", Some("1.898s")),
            ("limit; try again in 2 days 3 hours", Some("2 days 3 hours")),
            ("You've hit your usage limit. Try again later.", None),
            ("try again at ", None),
        ];
        for (message, expected) in cases {
            assert_eq!(retry_time(message).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn messages_are_classified() {
        let cases = [
            (
                "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://x",
                Some(MessageClass::Auth),
            ),
            ("Not signed in. Please run 'codex login' to sign in with ChatGPT", Some(MessageClass::Auth)),
            ("Missing environment variable: `OPENAI_API_KEY`.", Some(MessageClass::Auth)),
            ("Your access token could not be refreshed", Some(MessageClass::Auth)),
            ("You've hit your usage limit. Try again at 3:51 PM.", Some(MessageClass::UsageLimit)),
            ("Your workspace is out of credits. Add credits to continue.", Some(MessageClass::UsageLimit)),
            ("Quota exceeded. Check your plan and billing details.", Some(MessageClass::UsageLimit)),
            ("exceeded retry limit, last status: 429 Too Many Requests", Some(MessageClass::RateLimit)),
            ("Selected model is at capacity. Please try a different model.", Some(MessageClass::RateLimit)),
            ("The 'gpt-9' model is not supported when using Codex", Some(MessageClass::BadModel)),
            ("{\"error\":{\"code\":\"model_not_found\"}}", Some(MessageClass::BadModel)),
            ("stream disconnected before completion: Transport error", Some(MessageClass::Network)),
            ("Reconnecting... waiting for network (Connection failed)", Some(MessageClass::Network)),
            ("bwrap: No permissions to create new namespace", Some(MessageClass::Sandbox)),
            ("error applying Landlock ruleset", Some(MessageClass::Sandbox)),
            (
                "Not inside a trusted directory and --skip-git-repo-check",
                Some(MessageClass::UntrustedDirectory),
            ),
            ("Codex ran out of room in the model's context window.", None),
            ("Incomplete response returned, reason: max_output_tokens", None),
        ];
        for (message, expected) in cases {
            assert_eq!(classify(message), expected, "{message}");
        }
    }
}
