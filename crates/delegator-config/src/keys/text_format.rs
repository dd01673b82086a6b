//! Formats of texts: what each accepts, and how messages and the reference describe it.

use std::fmt;
use std::net::IpAddr;

use delegator_domain::loader_variables::is_loader_variable;
use delegator_domain::notification::{Template, placeholder_list};

const REPOSITORY_SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Any program argument.
    Argument,
    ToolPrefix,
    ToolName,
    AgentName,
    VariableName,
    /// A variable that may be passed to an agent.
    PassedVariable,
    ProgramName,
    LabelName,
    DatabaseUrl,
    /// An HTTPS URL, or an HTTP URL of this machine.
    WebhookUrl,
    /// Text with the placeholders of a notification.
    NotificationTemplate,
    /// Text for people or a script: not blank, with this many characters at most.
    Prose(usize),
    /// The URL or path of a git repository.
    Repository,
    /// A word for a technology.
    Stack,
    Branch,
    Timestamp,
}

impl TextFormat {
    pub(crate) fn accepts(self, text: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let has_chars = |max: usize| !text.trim().is_empty() && text.chars().count() <= max;
        match self {
            TextFormat::Argument => !text.contains('\0'),
            TextFormat::ToolPrefix => text.len() <= 32 && text.chars().all(|c| is_word(c) || c == '-'),
            TextFormat::ToolName => {
                (1..=64).contains(&text.len()) && text.chars().all(|c| is_word(c) || c == '-')
            }
            TextFormat::AgentName => {
                (1..=64).contains(&text.len())
                    && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_'))
            }
            TextFormat::VariableName => {
                text.chars().all(is_word) && text.starts_with(|c: char| !c.is_ascii_digit())
            }
            TextFormat::PassedVariable => TextFormat::VariableName.accepts(text) && !is_loader_variable(text),
            TextFormat::ProgramName => {
                !matches!(text, "" | "." | "..") && !text.contains(['/', '\0']) && text.len() <= 255
            }
            TextFormat::LabelName => {
                let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
                (1..=64).contains(&text.len()) && text.chars().all(is_allowed)
            }
            TextFormat::DatabaseUrl => {
                ["postgres://", "postgresql://"]
                    .iter()
                    .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
                    && !text.contains(|c: char| c.is_control() || c.is_whitespace())
            }
            TextFormat::WebhookUrl => has_chars(2048) && is_webhook_url(text),
            TextFormat::NotificationTemplate => has_chars(4096) && Template::parse(text).is_ok(),
            TextFormat::Prose(max) => has_chars(max) && !text.contains('\0'),
            TextFormat::Repository => has_chars(1024) && is_repository(text) && !has_password(text),
            TextFormat::Stack => {
                let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+#.-".contains(c);
                has_chars(32) && text.chars().all(is_allowed)
            }
            TextFormat::Branch => has_chars(255) && is_branch_name(text),
            TextFormat::Timestamp => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

/// Whether git takes this as a repository and gives it no special meaning: one that looks like a flag, or a
/// transport that is a command.
fn is_repository(text: &str) -> bool {
    let is_bare = !text.starts_with('-') && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    let is_location = match text.split_once("://") {
        Some((scheme, rest)) => REPOSITORY_SCHEMES.contains(&scheme) && !rest.is_empty(),
        None => {
            text.starts_with('/')
                || text.split_once(':').is_some_and(|(host, path)| !host.is_empty() && !path.is_empty())
        }
    };
    is_bare && !text.contains("::") && is_location
}

/// Whether a repository URL carries a password, or a token as the user of an HTTP URL.
pub(crate) fn has_password(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    (scheme.starts_with("http") && !user.is_empty()) || user.contains(':')
}

/// Whether a notification may be sent to this URL: over an encrypted connection, or to this machine.
fn is_webhook_url(text: &str) -> bool {
    let Ok(url) = text.parse::<http::Uri>() else { return false };
    let (Some(host), Some(authority)) = (url.host(), url.authority()) else { return false };
    let is_loopback = host == "localhost"
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_private = match url.scheme_str() {
        Some("https") => true,
        Some("http") => is_loopback,
        _ => false,
    };
    is_private && !host.is_empty() && !authority.as_str().contains('@')
}

fn is_branch_name(name: &str) -> bool {
    let is_allowed = |c: char| !c.is_whitespace() && !c.is_control() && !"~^:?*[\\".contains(c);
    name.chars().all(is_allowed)
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !name.ends_with(".lock")
        && !["..", "//", "@{"].iter().any(|part| name.contains(part))
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextFormat::Argument => "text without a NUL character",
            TextFormat::ToolPrefix => "at most 32 letters, digits, `_` or `-`",
            TextFormat::AgentName => "an agent name of 1 to 64 lower-case letters, digits, `-` or `_`",
            TextFormat::ToolName => "a tool name of 1 to 64 letters, digits, `_` or `-`",
            TextFormat::VariableName => "a variable name (letters, digits and `_`, no digit first)",
            TextFormat::PassedVariable => {
                "a variable name (letters, digits and `_`, no digit first) that does not make programs run code as LD_PRELOAD does"
            }
            TextFormat::LabelName => "a label name of 1 to 64 letters, digits, `.`, `_`, `-` or `/`",
            TextFormat::ProgramName => "a program name without `/`",
            TextFormat::DatabaseUrl => "a URL beginning with postgres:// or postgresql://",
            TextFormat::WebhookUrl => {
                "an https:// URL without a user name, or an http:// URL of this machine (localhost, 127.0.0.1, [::1])"
            }
            TextFormat::NotificationTemplate => {
                return write!(f, "at most 4096 characters of text with the placeholders {}", placeholder_list());
            }
            TextFormat::Prose(max) => return write!(f, "1 to {max} characters of text, none of them NUL"),
            TextFormat::Repository => "https://host/owner/name, ssh://…, user@host:path or an absolute path",
            TextFormat::Stack => "a word like node, python, go or rust",
            TextFormat::Branch => "a git branch name",
            TextFormat::Timestamp => "a time like 2026-01-15T00:00:00Z",
        })
    }
}
