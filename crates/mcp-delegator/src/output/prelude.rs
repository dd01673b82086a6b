//! What the types of `data` and the documents about them need.
//!
//! The modules that this one names must not use it.

pub use delegator_domain::task::{State, TaskEnd, TaskId};
pub use delegator_domain::warning_code::WarningCode;
pub use delegator_engine::Record;
pub use delegator_registry::Task;
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Map, Value, json};

pub use crate::error::suggestion::{NextCall, Suggestion};
pub use crate::output::call_syntax::CallSyntax;
pub use crate::output::documents::document::{Block, Document, cell, known_facts};
pub use crate::output::outcome::Warning;
pub use crate::output::truncation::plan::{Sizes, TruncationPlan};
pub use crate::output::values::UtcTime;
