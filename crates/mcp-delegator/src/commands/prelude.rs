//! What every command file needs: the types of its input, its spec, its handler and its document.

pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};

pub use crate::commands::context::Context;
pub use crate::commands::{Command, prepare};
pub use crate::error::{AppError, ErrorCode, Problem};
pub use crate::output::command_data::CommandData;
pub use crate::output::documents::document::{Block, Document};
pub use crate::output::outcome::CommandOutput;
pub use crate::spec::{CommandSpec, Danger, InputRules, InputType, Marker, Shape, Toolset, example};
