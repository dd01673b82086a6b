//! The input type of a command: its schema, how it is parsed, and the rules that the schema cannot express.
//!
//! A [`CommandSpec`](super::CommandSpec) names no type, so that all commands fit into one list. An
//! [`InputType`] holds the functions of one type instead, and a parsed input is passed on as `dyn Any` to the
//! handler, which knows its type.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::input_schema::schema_of;
use super::{PreflightContext, Surface};
use crate::error::Problem;

pub trait Input: DeserializeOwned + JsonSchema + Debug + Clone + Send + Sync + 'static {}

impl<I: DeserializeOwned + JsonSchema + Debug + Clone + Send + Sync + 'static> Input for I {}

/// Rules of an input that its schema cannot express. An input that the schema refused looks as if it were not
/// given.
pub trait InputRules {
    /// Rules between inputs.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// The problem with a call that needs `confirm` and lacks it. What needs a confirmation depends on the
    /// surface.
    fn confirmation(&self, _surface: Surface) -> Option<Problem> {
        None
    }

    /// Checks against configuration and file system. They must not change anything.
    fn preflight(&self, _context: &PreflightContext<'_>) -> Vec<Problem> {
        Vec::new()
    }
}

struct NoRules;

impl InputRules for NoRules {}

/// An input whose type only its command knows.
pub type ParsedInput = Arc<dyn Any + Send + Sync>;

#[derive(Debug, Clone, Copy)]
pub struct InputType {
    pub schema: fn() -> Schema,
    pub parse: fn(&Value) -> Result<ParsedInput, serde_json::Error>,
    pub rules: fn(&(dyn Any + Send + Sync)) -> &dyn InputRules,
}

impl InputType {
    /// An input whose schema is its only rule.
    pub const fn of<I: Input>() -> InputType {
        InputType { schema: schema_of::<I>, parse: parse::<I>, rules: |_| &NoRules }
    }

    pub const fn with_rules<I: Input + InputRules>() -> InputType {
        InputType { rules: rules::<I>, ..InputType::of::<I>() }
    }
}

fn parse<I: Input>(value: &Value) -> Result<ParsedInput, serde_json::Error> {
    Ok(Arc::new(I::deserialize(value)?))
}

fn rules<I: Input + InputRules>(input: &(dyn Any + Send + Sync)) -> &dyn InputRules {
    input.downcast_ref::<I>().map_or(&NoRules, |input| input as &dyn InputRules)
}
