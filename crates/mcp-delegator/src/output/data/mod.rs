//! The JSON of tasks and of what they did: the payload of the envelopes.

pub mod acknowledgement;
pub mod error_context;
pub mod estimate;
pub mod events;
pub mod failure;
pub mod files;
pub mod output;
pub mod registry;
pub mod restore_point;
pub mod status;
pub mod structured_output;
pub mod suggestions;
pub mod task;
pub mod usage;
pub mod verification;
pub mod warnings;
