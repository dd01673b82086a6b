//! Checks an error answer against the manifest: its exit code, error code and `retryable` must be declared.

use serde_json::Value;

/// Why the error of this answer is not declared for its command; `None` if it is, or if the answer has no error.
/// `manifest` is the data of the command `manifest`. Understands CLI and tool envelopes.
pub fn undeclared_error(answer: &Value, manifest: &Value) -> Option<String> {
    let error = AnswerError::of(answer)?;
    let entry = &error.command(manifest)["exit_codes"][error.exit.to_string()];
    let lists = |key: &str| {
        entry[key].as_array().into_iter().flatten().any(|code| code.as_str() == Some(&error.code))
    };
    let problem = if !lists("error_codes") {
        "does not declare the error code"
    } else if !lists("conditional_error_codes") && lists("retryable_error_codes") != error.retryable {
        "declares another value of retryable"
    } else {
        return None;
    };
    Some(format!("{} {problem}: {error:?}, {entry}", error.name))
}

#[derive(Debug)]
struct AnswerError {
    /// The command in a CLI envelope, the tool in a tool envelope.
    name: String,
    exit: u64,
    code: String,
    retryable: bool,
}

impl AnswerError {
    fn of(answer: &Value) -> Option<AnswerError> {
        let error = answer.get("error").filter(|error| !error.is_null())?;
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (name, exit, code) = match answer.get("tool") {
            Some(_) => (text("/tool"), "/error/details/cli_exit_code", text("/error/details/code")),
            None => (text("/meta/command"), "/meta/exit_code", text("/error/code")),
        };
        Some(AnswerError {
            name: name?,
            exit: answer.pointer(exit)?.as_u64()?,
            code: code?,
            retryable: error["retryable"].as_bool()?,
        })
    }

    /// The command's entry. A call that names no known command is described by the manifest itself.
    fn command<'a>(&self, manifest: &'a Value) -> &'a Value {
        let is_named = |command: &&Value| {
            let name = command["name"].as_str().unwrap_or_default();
            // Commands that no server offers have a tool envelope, too, on the command line.
            name == self.name || format!("_codex_{}", name.replace(['.', '-'], "_")) == self.name
        };
        manifest["commands"].as_array().into_iter().flatten().find(is_named).unwrap_or(manifest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest() -> Value {
        let entry = json!({"error_codes": ["CONFIG_INVALID", "LOCK_HELD", "WRONG_STATE"],
            "retryable_error_codes": ["LOCK_HELD"], "conditional_error_codes": ["WRONG_STATE"]});
        json!({"exit_codes": {"4": {"error_codes": []}},
            "commands": [{"name": "a.b", "exit_codes": {"4": entry}}]})
    }

    fn is_declared(command: &str, exit: u8, code: &str, retryable: bool) -> bool {
        let answer = json!({"error": {"code": code, "retryable": retryable},
            "meta": {"command": command, "exit_code": exit}});
        undeclared_error(&answer, &manifest()).is_none()
    }

    #[test]
    fn the_error_code_must_be_declared_for_the_exit_code_of_the_command() {
        assert!(is_declared("a.b", 4, "CONFIG_INVALID", false));
        assert!(!is_declared("a.b", 4, "UNSUPPORTED", false));
        assert!(!is_declared("a.b", 5, "CONFIG_INVALID", false));
        assert!(!is_declared("mcp-delegator", 4, "CONFIG_INVALID", false));
    }

    #[test]
    fn retryable_must_be_the_declared_one() {
        assert!(is_declared("a.b", 4, "LOCK_HELD", true) && !is_declared("a.b", 4, "LOCK_HELD", false));
        assert!(is_declared("a.b", 4, "WRONG_STATE", true) && is_declared("a.b", 4, "WRONG_STATE", false));
    }

    #[test]
    fn tool_answers_are_checked_and_answers_without_an_error_pass() {
        let answer = |code: &str| {
            json!({"tool": "_codex_a_b", "error": {"code": "VALIDATION", "retryable": false,
                "details": {"code": code, "cli_exit_code": 4}}})
        };
        assert_eq!(undeclared_error(&answer("CONFIG_INVALID"), &manifest()), None);
        assert!(undeclared_error(&answer("LOCK_HELD"), &manifest()).is_some());
        let success = json!({"ok": true, "error": null, "meta": {"command": "a.b"}});
        assert_eq!(undeclared_error(&success, &manifest()), None);
    }
}
