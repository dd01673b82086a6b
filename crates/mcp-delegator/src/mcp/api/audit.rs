//! `audit.jsonl` in the state directory: a line for every action that came over the HTTP API.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::Serialize;

use crate::commands::sign_in::{Scope, SessionId};
use crate::mcp::sign_in::{Caller, CallerSession};
use crate::output::values::UtcTime;

const FILE: &str = "audit.jsonl";

#[derive(Debug, Clone)]
pub struct Audit {
    path: PathBuf,
}

#[derive(Debug, Serialize)]
pub struct AuditLine<'a> {
    pub(super) time: UtcTime,
    pub(super) scope: &'static str,
    /// The session of a browser; none if the bearer token was sent.
    pub(super) session: Option<String>,
    pub(super) command: String,
    /// The task or group that the path names.
    pub(super) task: Option<&'a str>,
    /// The request id of the envelope; none if the request was refused before it ran.
    pub(super) request_id: Option<String>,
    /// `ok`, or the code of the error.
    pub(super) outcome: &'a str,
}

impl Audit {
    pub fn new(state_dir: &std::path::Path) -> Audit {
        Audit { path: state_dir.join(FILE) }
    }

    /// An action that is done is not undone because its line cannot be written.
    pub fn record(&self, line: &AuditLine<'_>) {
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            // One write, because another server may append at the same time.
            OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?.write_all(&text)
        };
        if let Err(error) = write() {
            tracing::error!(path = %self.path.display(), %error, "could not write the audit file");
        }
    }
}

impl AuditLine<'_> {
    pub(super) fn now(caller: &Caller, command: String) -> AuditLine<'static> {
        let id = |own: &CallerSession| own.session.id.as_str().to_owned();
        AuditLine::of(caller.scope, caller.session.as_ref().map(id), command)
    }

    /// The beginning of a session.
    pub fn of_sign_in(scope: Scope, session: &SessionId) -> AuditLine<'static> {
        AuditLine::of(scope, Some(session.as_str().to_owned()), "dashboard.sign_in".to_owned())
    }

    fn of(scope: Scope, session: Option<String>, command: String) -> AuditLine<'static> {
        AuditLine {
            time: UtcTime::from_ms(jiff::Timestamp::now().as_millisecond()),
            scope: scope.name(),
            session,
            command,
            task: None,
            request_id: None,
            outcome: "ok",
        }
    }
}
