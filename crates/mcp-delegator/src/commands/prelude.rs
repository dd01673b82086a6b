//! What most command files need: the types of inputs, specs, handlers and documents.
//!
//! A file that this one uses names its imports itself.

pub use std::collections::BTreeMap;
pub use std::path::{Path, PathBuf};
pub use std::time::Duration;

pub use delegator_domain::task::{Mode, TaskId};
pub use delegator_domain::warning_code::WarningCode;
pub use delegator_engine::{Engine, EngineError};
pub use delegator_registry::Task;
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Map, Value, json};

pub use crate::commands::context::{Context, sources, variables};
pub use crate::commands::inputs::{
    AgentInputs, AgentNames, DetachInput, RunMode, SubmissionInputs, TaskIdInput, TaskRef, default_number,
};
pub use crate::commands::local::task_input::TaskInput;
pub use crate::commands::local::tasks::{TaskRequest, ended, engine, mark_read, resolve_task};
pub use crate::error::suggestion::{NextCall, Suggestion};
pub use crate::error::{AppError, ErrorCode, Problem, io_error};
pub use crate::output::command_data::CommandData;
pub use crate::output::data::acknowledgement::{Capability, ExecutionAck};
pub use crate::output::documents::document::{Block, Document, cell, plural};
pub use crate::output::outcome::{CommandOutput, Warning};
pub use crate::output::values::UtcTime;
pub use crate::spec::{
    Category, CommandSpec, ConfigUse, Danger, InputRules, InputType, Marker, PreflightContext, RawOutput,
    Shape, Surface, Toolset, example,
};
