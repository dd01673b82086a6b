//! What an agent said, from any transcript.

pub mod follow;
pub mod normalize;
pub mod summarize;
pub mod summary;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ErrorCode;

/// Where the transcript is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptInput {
    /// A task's id or an absolute path; on the command line also any file, or - for standard input (the default)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-positional" = true))]
    pub source: Option<String>,
}

pub const SOURCE_FAILURES: &[ErrorCode] =
    &[ErrorCode::NotFound, ErrorCode::TaskNotFound, ErrorCode::InvalidId, ErrorCode::PermissionDenied];
