//! Errors of running `codex cloud`.
//!
//! `output` is what Codex printed, shortened and without secrets. Exit codes and hints are decided by the
//! caller.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    #[error("could not start {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// There is no ChatGPT sign-in, or the backend no longer accepts it. An API key is not enough.
    #[error("Codex is not signed in with ChatGPT: {output}")]
    NotSignedIn { output: String },
    /// The call was killed. A submission may have reached the backend; then `output` may hold its URL.
    #[error("codex cloud {command} did not finish within {} s and was killed", limit.as_secs())]
    Timeout { command: &'static str, limit: Duration, output: String },
    #[error("hosted Codex has no task {id}")]
    NotFound { id: String },
    #[error("hosted Codex has no environment {environment}: {output}")]
    EnvironmentNotFound { environment: String, output: String },
    #[error("task {id} has no attempt {attempt}: {output}")]
    AttemptNotFound { id: String, attempt: u8, output: String },
    /// No response, or a response that is an HTTP error or cannot be decoded.
    #[error("codex cloud {command} got no usable response from its backend: {output}")]
    Unreachable { command: &'static str, output: String },
    /// Codex does not accept the arguments.
    #[error("codex cloud {command} refused its arguments: {output}")]
    Refused { command: &'static str, output: String },
    #[error("codex cloud {command} printed something unexpected ({problem}): {output}")]
    UnexpectedOutput { command: &'static str, problem: String, output: String },
}
