//! The exit codes of a command, with retry and side-effect guarantees for each.
//!
//! They are derived from the command's declared failures and the error map, so the manifest cannot contradict either.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::error_code::ErrorKind;
use crate::error::{AppError, ErrorCode, ExitCode, Retry, Retryable, SideEffects};
use crate::spec::CommandSpec;

/// Failures that any command can have.
const COMMON_FAILURES: &[ErrorCode] = &[
    ErrorCode::Internal,
    ErrorCode::IoError,
    ErrorCode::WarningsAsErrors,
    ErrorCode::ArgError,
    ErrorCode::UnknownFlag,
    ErrorCode::InvalidValue,
    ErrorCode::MissingArgument,
    ErrorCode::InvalidJson,
    ErrorCode::StdinTooLarge,
    ErrorCode::ConfigInvalid,
    ErrorCode::TypoCorrected,
    ErrorCode::Interrupted,
    ErrorCode::Terminated,
];

/// One entry of a command's exit code map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ExitCodeEntry {
    pub name: String,
    pub description: String,
    pub retryable: bool,
    pub side_effects: &'static str,
    pub error_codes: Vec<&'static str>,
}

/// The exit code map of the command, keyed by the number as text.
pub fn exit_codes(spec: &CommandSpec) -> BTreeMap<String, ExitCodeEntry> {
    let unsupported: &[ErrorCode] = if spec.is_available() { &[] } else { &[ErrorCode::Unsupported] };
    let mut codes: Vec<ErrorCode> = [COMMON_FAILURES, spec.failures, unsupported].concat();
    codes.sort();
    codes.dedup();
    let mut map = BTreeMap::from([(
        ExitCode::Success.number().to_string(),
        exit_code_entry(spec, ExitCode::Success, &[]),
    )]);
    for exit in ExitCode::ALL {
        let codes_of_exit: Vec<ErrorCode> =
            codes.iter().copied().filter(|code| code.facts().exit == exit).collect();
        if !codes_of_exit.is_empty() {
            map.insert(exit.number().to_string(), exit_code_entry(spec, exit, &codes_of_exit));
        }
    }
    map
}

fn exit_code_entry(spec: &CommandSpec, exit: ExitCode, codes: &[ErrorCode]) -> ExitCodeEntry {
    let mut error_codes: Vec<&'static str> = codes.iter().map(|code| code.facts().agent).collect();
    error_codes.dedup();
    let unconditional: Vec<&ErrorCode> =
        codes.iter().filter(|code| **code != ErrorCode::WarningsAsErrors).collect();
    ExitCodeEntry {
        name: exit.name().to_owned(),
        description: exit.meaning().to_owned(),
        // One number may stand for several failures: it is retryable only if all of them are. `WarningsAsErrors` does not
        // count, because it occurs only with --strict-warnings.
        retryable: !unconditional.is_empty() && unconditional.iter().all(|code| retryable(spec, **code)),
        side_effects: if exit == ExitCode::Success { "complete" } else { side_effects(spec, codes) },
        error_codes,
    }
}

/// Whether the identical call may be repeated after this error: decided by the error itself, or else by the
/// error map and the command.
pub fn is_retryable(spec: &CommandSpec, error: &AppError) -> bool {
    match error.retry {
        Retry::Never => false,
        Retry::Later(_) => true,
        Retry::AsDeclared | Retry::AsDeclaredAfter(_) => retryable(spec, error.code),
    }
}

fn retryable(spec: &CommandSpec, code: ErrorCode) -> bool {
    let facts = code.facts();
    match facts.retryable {
        Retryable::Yes => true,
        Retryable::No | Retryable::WhileStateCanChange => false,
        Retryable::IfSafe => spec.is_safe() && !(spec.open_ended && facts.kind == ErrorKind::Timeout),
    }
}

fn side_effects(spec: &CommandSpec, codes: &[ErrorCode]) -> &'static str {
    let effect_of = |code: &ErrorCode| match (code.facts().side_effects, spec.is_safe()) {
        (SideEffects::None, _) | (_, true) => "none",
        (SideEffects::Partial | SideEffects::NoneIfSafe, false) => "partial",
        (SideEffects::Unknown | SideEffects::UnknownUnlessSafe, false) => "unknown",
    };
    let effects: Vec<&str> = codes.iter().map(effect_of).collect();
    ["unknown", "partial"].into_iter().find(|worst| effects.contains(worst)).unwrap_or("none")
}
