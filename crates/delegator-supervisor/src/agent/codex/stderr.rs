//! Lines that Codex prints on standard error.
//!
//! Codex logs there (`2026-… ERROR codex_core::…: …`), prints `Error: …` if it cannot start, and otherwise
//! prints free text. A refused call produces no event, only a log line of its tool router.

use delegator_domain::task::FailureKind;

use super::failures::{kind_of_plain_line, printed_failure};

/// The meaning of [`StderrLine::NoSandboxHelper`], for users.
pub(crate) const NO_SANDBOX_HELPER: &str = "CODEX_HOME lies below the temporary directory, where codex creates no \
    sandbox helper, so sandboxed commands fail silently; move CODEX_HOME";

const ROUTER_PREFIX: &str = "ERROR codex_core::tools::router: ";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StderrLine<'a> {
    /// Printed in every run or at every end.
    Routine,
    /// A call was refused; lines without a prefix may continue the reason.
    Refusal(&'a str),
    /// The sandbox helper is missing, so sandboxed commands fail silently.
    NoSandboxHelper,
    Message(Message),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) is_log: bool,
    pub(crate) is_error: bool,
    /// It does not continue the message before it.
    pub(crate) is_new: bool,
    pub(crate) kind: Option<FailureKind>,
    /// Another process is writing to the thread.
    pub(crate) is_active_writer: bool,
}

pub(crate) fn parse_line(line: &str) -> StderrLine<'_> {
    if ["Reading additional input from stdin...", "Reading prompt from stdin..."].contains(&line)
        || line.contains("failed to record rollout items")
    {
        return StderrLine::Routine;
    }
    if let Some((_, call)) = line.split_once(ROUTER_PREFIX) {
        return StderrLine::Refusal(call.strip_prefix("error=").unwrap_or(call));
    }
    if is_about_missing_helper(line) {
        return StderrLine::NoSandboxHelper;
    }
    let is_log = is_log_line(line);
    let error = if is_log { logged_error(line) } else { printed_error(line) };
    let own_error = if is_log { error } else { line.strip_prefix("Error: ") };
    let kind = match own_error {
        Some(error) => printed_failure(error),
        None if is_log => None,
        None => kind_of_plain_line(error.unwrap_or(line)),
    };
    StderrLine::Message(Message {
        is_log,
        is_error: error.is_some(),
        is_new: is_log || error.is_some(),
        kind,
        is_active_writer: line.contains("already has an active writer"),
    })
}

fn is_about_missing_helper(line: &str) -> bool {
    line.contains("Refusing to create helper binaries")
}

/// What to do about a sandbox that failed with this message of the agent, if the cause is known.
pub fn sandbox_advice(message: &str) -> Option<&'static str> {
    is_about_missing_helper(message)
        .then_some("Set CODEX_HOME to a directory that is not below the temporary directory.")
}

/// Whether the agent's message about a refused call is about an attempt to write without permission. Codex
/// 0.166 refuses a patch in a read-only sandbox with this message.
pub fn is_refused_write(message: &str) -> bool {
    message.starts_with("patch rejected: writing is blocked by read-only sandbox")
}

/// `2026-11-15T00:38:42.656307Z …`
fn is_log_line(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 20 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-' && bytes[10] == b'T'
}

/// The text of `2026-11-15T00:38:42.656307Z ERROR codex_core::session: text`.
fn logged_error(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(' ')?;
    let (module, text) = rest.trim_start().strip_prefix("ERROR ")?.split_once(": ")?;
    (module.starts_with("codex") && !module.contains(' ')).then_some(text)
}

/// `Error: text`, `Error loading config.toml: text`, or a panic.
fn printed_error(line: &str) -> Option<&str> {
    let is_whole =
        line.starts_with("Error ") || (line.starts_with("thread '") && line.contains(" panicked at "));
    let text = ["Error: ", "error: ", "ERROR: "].iter().find_map(|prefix| line.strip_prefix(prefix));
    text.or(is_whole.then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_removed_before_a_line_is_classified() {
        let kind = |line: &str| match parse_line(line) {
            StderrLine::Message(message) => (message.is_log, message.is_error, message.kind),
            other => panic!("{line}: {other:?}"),
        };
        let limit = "exceeded retry limit, last status: 429 Too Many Requests";
        let rate_limit = Some(FailureKind::RateLimit);
        assert_eq!(kind(limit), (false, false, None), "any program may have printed it");
        assert_eq!(kind(&format!("ERROR: {limit}")), (false, true, None));
        assert_eq!(kind(&format!("Error: {limit}")), (false, true, rate_limit));
        let at = "2026-11-15T18:07:43.429123Z";
        assert_eq!(kind(&format!("{at} ERROR codex_core::session: {limit}")), (true, true, rate_limit));
        // Not an error of Codex, or not its last word on the matter.
        assert_eq!(kind(&format!("{at}  WARN codex_core::session: {limit}")), (true, false, None));
        assert_eq!(kind(&format!("{at} ERROR my_server: {limit}")), (true, false, None));
        assert_eq!(
            kind(&format!(
                "{at} ERROR codex_core::models_manager: failed to refresh available models: {limit}"
            )),
            (true, true, None)
        );
        assert_eq!(kind(&format!("{at} ERROR codex_core: failed to parse config")), (true, true, None));
    }
}
