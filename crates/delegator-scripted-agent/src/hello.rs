//! The built-in script `hello`: the minimal output of a successful agent.

use crate::{Script, ScriptError};

const TEXT: &str = include_str!("../examples/hello.json");

/// Reads its prompt, greets, completes its turn.
pub fn script() -> Result<Script, ScriptError> {
    Script::parse("hello", TEXT.as_bytes())
}
