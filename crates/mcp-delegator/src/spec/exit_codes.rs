//! The exit codes a command can end with, and what each promises a caller.

use std::collections::BTreeMap;

use serde::Serialize;

use super::CommandSpec;
use crate::error::{AppError, ErrorCode, ExitCode, Retry, Retryable, SideEffects, code::ErrorKind};

/// Failures every command can have.
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

/// The command's whole map, keyed by the number as text.
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
        // One number may stand for several failures; the promise made for it holds for all of them, but for the one
        // a caller brings about with a flag.
        retryable: !unconditional.is_empty() && unconditional.iter().all(|code| retryable(spec, **code)),
        side_effects: if exit == ExitCode::Success { "complete" } else { side_effects(spec, codes) },
        error_codes,
    }
}

/// Whether this very failure may be answered by making the identical call again: the error's own word, else the
/// promise of the command.
pub fn is_retryable(spec: &CommandSpec, error: &AppError) -> bool {
    match error.retry {
        Retry::Never => false,
        Retry::Later(_) => true,
        Retry::AsDeclared => retryable(spec, error.code),
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
