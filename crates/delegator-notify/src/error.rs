//! Why a notification was not sent.

/// Why an attempt failed, in one line, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub(crate) String);

impl SendError {
    pub(crate) fn new(reason: impl Into<String>) -> SendError {
        SendError(reason.into())
    }
}
