//! The URL of a repository. Neither `Debug` nor `Display` shows its credentials.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::error::GitError;

/// The longest part of the repository's name in the name of its mirror.
const MAX_NAME: usize = 60;

#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    text: String,
    /// User and password in front of the host, with the `@`; empty if the URL has none, or only the user of
    /// ssh.
    credentials: String,
}

impl RemoteUrl {
    /// `https://host/path`, `ssh://host/path`, `user@host:path` or an absolute path.
    pub fn parse(text: &str) -> Result<RemoteUrl, RemoteError> {
        let url = RemoteUrl { text: text.to_owned(), credentials: credentials(text).to_owned() };
        let problem = match text {
            "" => "it is empty",
            _ if text.starts_with('-') => "it begins with '-'",
            _ if text.contains(|c: char| c.is_control() || c.is_whitespace()) => "it contains a blank",
            _ if text.contains("::") && !text.starts_with('/') => "it names a transport that runs a command",
            _ if !text.contains(':') && !text.starts_with('/') => "it is neither a URL nor an absolute path",
            _ => return Ok(url),
        };
        Err(RemoteError::InvalidUrl { url: url.to_string(), problem })
    }

    pub(super) fn expose(&self) -> &str {
        &self.text
    }

    /// A text of git without the credentials of this URL.
    pub(crate) fn hide_credentials(&self, text: &str) -> String {
        if self.credentials.is_empty() {
            return text.to_owned();
        }
        let secret = self.credentials.trim_end_matches('@');
        let password = secret.split_once(':').map_or(secret, |(_, password)| password);
        let hidden = text.replace(&self.credentials, "");
        [secret, password]
            .iter()
            .filter(|part| !part.is_empty())
            .fold(hidden, |text, part| text.replace(part, "…"))
    }

    /// A file name for the mirror: the name of the repository, and a hash of the URL without its credentials,
    /// so that a new password needs no new mirror.
    pub(super) fn mirror_name(&self) -> String {
        let shown = self.to_string();
        let hash: String = Sha256::digest(&shown).iter().take(10).map(|byte| format!("{byte:02x}")).collect();
        let name = shown.trim_end_matches('/').trim_end_matches(".git").rsplit(['/', ':']).next();
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = name.unwrap_or_default().chars().filter(is_plain).take(MAX_NAME).collect();
        format!("{name}-{hash}.git")
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.credentials.as_str() {
            "" => f.write_str(&self.text),
            credentials => f.write_str(&self.text.replacen(credentials, "", 1)),
        }
    }
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteUrl({self})")
    }
}

/// The part of a URL that may be secret. The user of an HTTP URL can be a token; that of an ssh URL without a
/// password is not secret and is needed.
fn credentials(text: &str) -> &str {
    let Some((scheme, rest)) = text.split_once("://") else { return "" };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some(at) = authority.rfind('@') else { return "" };
    let found = &authority[..=at];
    if scheme.eq_ignore_ascii_case("ssh") && !found.contains(':') { "" } else { found }
}

/// Why a repository elsewhere could not be used. Messages never contain credentials.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("'{url}' cannot be used as a repository: {problem}")]
    InvalidUrl { url: String, problem: &'static str },
    #[error("could not {doing} {url}: {message}")]
    Failed { doing: &'static str, url: String, message: String },
    #[error("{url} has no branch, tag or commit '{revision}'")]
    NoRevision { url: String, revision: String },
    #[error("{url} has no default branch; name a branch in the environment")]
    NoDefaultBranch { url: String },
    #[error("{url} has no commits")]
    Empty { url: String },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RemoteError {
    pub fn is_cancelled(&self) -> bool {
        matches!(self, RemoteError::Git(GitError::Cancelled { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown() {
        for (text, shown) in [
            ("https://me:s3cret@host/o/n.git", "https://host/o/n.git"),
            ("https://ghp_token@host/o/n.git", "https://host/o/n.git"),
            ("ssh://git@host/o/n", "ssh://git@host/o/n"),
            ("ssh://git:pw@host/o/n", "ssh://host/o/n"),
            ("git@host:o/n", "git@host:o/n"),
            ("/srv/a@b:c/n", "/srv/a@b:c/n"),
        ] {
            let url = RemoteUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("RemoteUrl({shown})"));
            assert_eq!(url.expose(), text);
        }
        let url = RemoteUrl::parse("https://me:s3cret@host/n").unwrap();
        assert_eq!(
            url.hide_credentials("unable to access 'https://me:s3cret@host/n': s3cret"),
            "unable to access 'https://host/n': …"
        );
    }

    #[test]
    fn commands_and_flags_are_refused() {
        for text in
            ["", "--upload-pack=x", "ext::sh -c x", "ext::x", "fd::3", "name", "https://a b", "a\nb:c"]
        {
            assert!(RemoteUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_mirror_of_a_repository_depends_on_its_url_only() {
        let name = |text: &str| RemoteUrl::parse(text).unwrap().mirror_name();
        assert_eq!(name("https://a:b@host/o/n.git"), name("https://c:d@host/o/n.git"));
        assert_ne!(name("https://host/o/n"), name("https://host/p/n"));
        assert!(name("git@host:o/app.git").starts_with("app-"));
    }
}
