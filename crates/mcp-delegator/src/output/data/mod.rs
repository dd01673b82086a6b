//! The data of the envelopes as structs: tasks, what they did, and what the registry tools return. `serde`
//! writes their keys, and the published schemas are generated from them.

pub mod acknowledgement;
pub mod agent_pauses;
pub mod batch;
pub mod chain;
pub mod conversation;
pub mod denied_write;
pub mod diff;
pub mod error_context;
pub mod events;
pub mod failure;
pub mod files;
pub mod final_message;
pub mod findings;
pub mod group;
pub mod live_task;
pub mod log_entry;
pub mod notification;
pub mod output;
pub mod progress;
pub mod registry;
pub mod remote;
pub mod status;
pub mod stored_task;
pub mod structured_output;
pub mod suggestions;
pub mod task;
pub mod task_line;
pub mod usage;
pub mod verification;
pub mod warnings;
pub mod work_trees;
