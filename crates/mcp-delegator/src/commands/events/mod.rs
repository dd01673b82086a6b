//! Commands that read an agent's transcript.

pub mod follow;
pub mod normalize;
pub mod source;
pub mod summarize;
pub mod summary;
pub mod tail;

use crate::commands::prelude::*;

/// The transcript to read.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct TranscriptInput {
    /// Task id, or path of a transcript file (absolute in a tool call)
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Positional, Marker::Source]))]
    pub source: Option<String>,
}

pub const SOURCE_FAILURES: &[ErrorCode] =
    &[ErrorCode::InvalidId, ErrorCode::PolicyBlocked, ErrorCode::Unsupported];
