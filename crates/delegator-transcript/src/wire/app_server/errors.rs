//! Errors that end a turn. Their codes are those of Codex's session files, in camel case.

use super::snake_case;
use crate::decode::named_code;
use crate::event::AgentError;
use crate::json::{Object, Value};

pub(super) fn read<'a>(error: &Object<'a>) -> AgentError<'a> {
    let code = error.first(&["codexErrorInfo"], Some).and_then(|info| {
        if let Some(name) = info.text() {
            return named_code(&snake_case(&name.resolve()), None);
        }
        let info = info.object()?;
        let (name, facts) = info.members().next()?;
        let status = facts.object().and_then(|facts| facts.first(&["httpStatusCode"], Value::integer));
        named_code(&snake_case(name), status.and_then(|status| u16::try_from(status).ok()))
    });
    AgentError { message: error.text("message").unwrap_or_default(), code }
}
