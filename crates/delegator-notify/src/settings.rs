//! The settings of a task's notifications, as they were when the task was submitted.
//!
//! They are stored in a private file of the task until its notifications are settled: a later process
//! delivers them with the submitter's environment, as it runs the task. The secret is not stored, only the
//! path of its file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use delegator_domain::notification::{Channel, DEFAULT_TEMPLATE, WebhookFormat};
use delegator_domain::redact::Redactor;
use serde::{Deserialize, Serialize};

use crate::SendError;

/// The variables that commands, `notify-send` and the search for certificates need. No others are stored.
const VARIABLES: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Far above the size of any real secret.
const MAX_SECRET_BYTES: u64 = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifySettings {
    /// Program and arguments.
    pub command: Option<Vec<String>>,
    pub webhook: Option<Webhook>,
    pub template: String,
    pub variables: Vec<(OsString, OsString)>,
    /// How long a question waits for an answer once a person was notified of it.
    #[serde(default)]
    pub answer_timeout_sec: Option<u64>,
}

/// Where a webhook is, and what signs its requests.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub url: String,
    pub secret_file: Option<PathBuf>,
    #[serde(default)]
    pub format: WebhookFormat,
}

/// Omits the URL: everyone who knows it may be able to use it.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("secret_file", &self.secret_file).finish_non_exhaustive()
    }
}

impl NotifySettings {
    pub fn new(
        command: Option<Vec<String>>,
        webhook: Option<Webhook>,
        template: Option<String>,
        environment: &BTreeMap<OsString, OsString>,
    ) -> NotifySettings {
        let find = |name: &str| {
            environment.get_key_value(OsStr::new(name)).map(|(name, value)| (name.clone(), value.clone()))
        };
        NotifySettings {
            command,
            webhook,
            template: template.unwrap_or_else(|| DEFAULT_TEMPLATE.to_owned()),
            variables: VARIABLES.into_iter().filter_map(find).collect(),
            answer_timeout_sec: None,
        }
    }

    /// Whether programs receive what is sent through this channel: they get each end alone, as people do not.
    pub fn is_for_programs(&self, channel: Channel) -> bool {
        match channel {
            Channel::Command => true,
            Channel::Desktop => false,
            Channel::Webhook => {
                self.webhook.as_ref().is_none_or(|webhook| webhook.format == WebhookFormat::Json)
            }
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// Redacts the URL and the secret of the webhook, and the formats of common credentials.
    pub fn redactor(&self) -> Redactor {
        let builder = Redactor::builder();
        let Some(webhook) = &self.webhook else { return builder.build() };
        let secret = webhook.secret_file.as_deref().and_then(|path| read_secret(path).ok());
        secret
            .into_iter()
            .fold(builder.named_secret(&webhook.url), |builder, secret| builder.named_secret(secret))
            .build()
    }
}

/// The secret in a file: its text without surrounding whitespace.
pub fn read_secret(path: &Path) -> Result<String, SendError> {
    let failed =
        |reason: String| SendError::new(format!("could not read the secret in {}: {reason}", path.display()));
    // Opening a pipe would wait for a writer that may never come.
    if !path.metadata().map_err(|error| failed(error.to_string()))?.is_file() {
        return Err(failed("this is not a regular file".to_owned()));
    }
    let mut text = String::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| failed(error.to_string()))?;
    match text.trim() {
        "" => Err(failed("the file is empty".to_owned())),
        _ if text.len() as u64 > MAX_SECRET_BYTES => {
            Err(failed(format!("it is longer than {MAX_SECRET_BYTES} bytes")))
        }
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_needed_variables_are_stored() {
        let environment = [("PATH", "/bin"), ("OPENAI_API_KEY", "sk-hunter2"), ("LD_PRELOAD", "/x.so")]
            .map(|(name, value)| (name.into(), value.into()));
        let settings = NotifySettings::new(None, None, None, &environment.into());
        assert_eq!(settings.variables, [("PATH".into(), "/bin".into())]);
        assert_eq!(settings.template, DEFAULT_TEMPLATE);
    }

    #[test]
    fn a_secret_is_trimmed_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (content, expected) in
            [("  hunter2\n", Ok("hunter2")), ("\n", Err("empty")), (&*"x".repeat(5000), Err("longer"))]
        {
            std::fs::write(&path, content).unwrap();
            match (read_secret(&path), expected) {
                (Ok(secret), Ok(expected)) => assert_eq!(secret, expected),
                (Err(error), Err(expected)) => assert!(error.0.contains(expected), "{error}"),
                (found, _) => panic!("{found:?}"),
            }
        }
        assert!(read_secret(folder.path()).unwrap_err().0.contains("not a regular file"));
        assert!(read_secret(&folder.path().join("none")).is_err());
    }

    #[test]
    fn the_url_and_the_secret_are_redacted_and_not_in_debug_output() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "hunter2-hunter2").unwrap();
        let webhook = Webhook {
            url: "https://hooks.example/T0/private".to_owned(),
            secret_file: Some(path),
            format: WebhookFormat::Json,
        };
        let settings = NotifySettings::new(None, Some(webhook), None, &BTreeMap::new());
        let shown = settings
            .redactor()
            .redact_str("to https://hooks.example/T0/private with hunter2-hunter2")
            .into_owned();
        assert!(!shown.contains("hunter2") && !shown.contains("private"), "{shown}");
        assert!(!format!("{settings:?}").contains("private"));
    }
}
