//! The exit codes of a command, with retry and side-effect guarantees for each.
//!
//! They are derived from the command's declared failures, its inputs and the error map, and the answers take
//! `retryable` from the same place, so that the manifest and the answers cannot differ.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::error_code::ErrorKind;
use crate::error::{ErrorCode, ExitCode, Retryable, SideEffects};
use crate::spec::{Category, CommandSpec, Marker, Property};

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
    ErrorCode::LockHeld,
    ErrorCode::PermissionDenied,
    ErrorCode::ResourceShortage,
    ErrorCode::TypoCorrected,
    ErrorCode::Interrupted,
    ErrorCode::Terminated,
];

/// Failures of a command that starts an agent.
const START_FAILURES: &[ErrorCode] = &[
    ErrorCode::Unsupported,
    ErrorCode::PolicyBlocked,
    ErrorCode::DependencyMissing,
    ErrorCode::DependencyVersion,
];

/// Failures that follow from inputs with these names.
const INPUT_FAILURES: &[(&[&str], &[ErrorCode])] = &[
    // The task may be one that a provider runs.
    (
        &["task_id", "task_ids", "source"],
        &[
            ErrorCode::TaskNotFound,
            ErrorCode::Unauthenticated,
            ErrorCode::NotFound,
            ErrorCode::DependencyMissing,
            ErrorCode::DependencyVersion,
            ErrorCode::NetworkError,
            ErrorCode::AgentProtocolError,
        ],
    ),
    (
        &["database_url"],
        &[
            ErrorCode::NetworkError,
            ErrorCode::Unauthenticated,
            ErrorCode::DependencyMissing,
            ErrorCode::DependencyVersion,
            ErrorCode::NotFound,
        ],
    ),
    // The command may wait for the task that it starts.
    (
        &["detach"],
        &[
            ErrorCode::Unauthenticated,
            ErrorCode::QuotaExhausted,
            ErrorCode::TimeoutIdle,
            ErrorCode::TimeoutHard,
            ErrorCode::RateLimited,
            ErrorCode::NetworkError,
            ErrorCode::SupervisorUnavailable,
            ErrorCode::Incomplete,
            ErrorCode::AgentFailed,
            ErrorCode::AgentExited,
            ErrorCode::AgentProtocolError,
        ],
    ),
    (&["cursor", "events_cursor"], &[ErrorCode::InvalidCursor]),
    (&["confirm", "confirm_destructive"], &[ErrorCode::ConfirmationRequired]),
    (&["idempotency_key"], &[ErrorCode::IdempotencyMismatch]),
];

/// One entry of a command's exit code map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ExitCodeEntry {
    pub name: String,
    pub description: String,
    /// Whether the identical call may be repeated after each of the command's own errors with this exit code.
    pub retryable: bool,
    pub side_effects: &'static str,
    /// Every `error.code` with this exit code.
    pub error_codes: Vec<&'static str>,
    /// Those after which the identical call may be repeated: their errors have `retryable: true`.
    pub retryable_error_codes: Vec<&'static str>,
    /// Those whose errors state in `retryable` whether the obstacle can go away by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-optional" = true))]
    pub conditional_error_codes: Vec<&'static str>,
}

/// The exit code map of the command, keyed by the number as text.
pub fn exit_codes(spec: &CommandSpec) -> BTreeMap<String, ExitCodeEntry> {
    let codes = failures(spec);
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

fn failures(spec: &CommandSpec) -> Vec<ErrorCode> {
    let mut codes = COMMON_FAILURES.to_vec();
    let inputs = spec.inputs();
    if inputs.properties.iter().any(Property::is_id) {
        codes.push(ErrorCode::InvalidId);
    }
    // Tool calls may not give these.
    if inputs.properties.iter().any(|property| property.has(&Marker::CommandLineOnly)) {
        codes.push(ErrorCode::PolicyBlocked);
    }
    codes.extend(spec.failures);
    if spec.category == Category::ExecutionAck {
        codes.extend(START_FAILURES);
    }
    for (names, failures) in INPUT_FAILURES {
        if inputs.properties.iter().any(|property| names.contains(&property.name.as_str())) {
            codes.extend(*failures);
        }
    }
    if !spec.former_names.is_empty() {
        codes.push(ErrorCode::CommandRenamed);
    }
    codes.sort();
    codes.dedup();
    codes
}

fn exit_code_entry(spec: &CommandSpec, exit: ExitCode, codes: &[ErrorCode]) -> ExitCodeEntry {
    let mut names: Vec<&'static str> = codes.iter().map(|code| code.facts().agent).collect();
    names.dedup();
    // Several errors can share a name.
    let all = |name: &str, retryable: bool| {
        let mut same = codes.iter().filter(|code| code.facts().agent == name);
        same.all(|code| is_retryable(spec, *code) == retryable)
    };
    let retryable_error_codes = names.iter().copied().filter(|name| all(name, true)).collect();
    let conditional = names.iter().copied().filter(|name| !all(name, true) && !all(name, false));
    let own: Vec<&ErrorCode> = codes.iter().filter(|code| !COMMON_FAILURES.contains(code)).collect();
    let decisive = if own.is_empty() { codes.iter().collect() } else { own };
    // `WarningsAsErrors` occurs only with --strict-warnings.
    let mut decisive = decisive.into_iter().filter(|code| **code != ErrorCode::WarningsAsErrors).peekable();
    ExitCodeEntry {
        name: exit.name().to_owned(),
        description: exit.meaning().to_owned(),
        retryable: decisive.peek().is_some() && decisive.all(|code| is_retryable(spec, *code)),
        side_effects: if exit == ExitCode::Success { "complete" } else { side_effects(spec, codes) },
        conditional_error_codes: conditional.collect(),
        retryable_error_codes,
        error_codes: names,
    }
}

/// Whether the identical call may be repeated after this error.
pub fn is_retryable(spec: &CommandSpec, code: ErrorCode) -> bool {
    let facts = code.facts();
    match facts.retryable {
        Retryable::Yes => true,
        Retryable::No => false,
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
