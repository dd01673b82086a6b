//! Converts engine errors into [`AppError`]: error code, context for programs and a suggestion.
//!
//! The conversion is one exhaustive `match`. It adds no new conditions: the engine decides what failed, this
//! module only chooses the code and the hint.

use std::path::{Path, PathBuf};

use delegator_domain::agents::DEFAULT_AGENT;
use delegator_domain::task::{GroupId, Mode, State, TaskId, TaskIdPrefix, TaskLocation};
use delegator_engine::{
    DirectoryProblem, EngineError, FileProblem, NoDiff, PlanError, Unavailable, VariableAccess,
};
use delegator_registry::RegistryError;

use crate::error::conversation::conversation_error;
use crate::error::fleet::provider_error;
use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::work_trees::{apply_error, isolation_error, overlap_error, restore_error};
use crate::error::{AppError, ErrorCode, Problem, os_limit_error, sentence};

const LESS_DEPTH: &str = "Do the work in this task, or raise max_depth in your own configuration.";
const RAISE_BUDGET: &str = "See what tasks have used with 'mcp-delegator status --usage'. The user's configuration sets the budgets; that of a day begins again at 0:00 UTC.";
const FEWER_CHILDREN: &str = "Wait for a child task to end, or raise max_children in your own configuration.";
const FEWER_RIGHTS: &str = "Request at most the mode and the directories of that task, and an agent with a sandbox, or let the user submit the task.";

impl From<EngineError> for AppError {
    fn from(error: EngineError) -> Self {
        let message = sentence(&error.to_string());
        // What was done before a cleanup failed is not undone, so not even a shortage of resources promises
        // that nothing changed.
        let os_error = error.os_error().filter(|_| !matches!(error, EngineError::Cleanup(_)));
        os_limit_error(os_error, &message).unwrap_or_else(|| convert(error, message))
    }
}

fn convert(error: EngineError, message: String) -> AppError {
    match error {
        EngineError::Cleanup(error) => convert(*error, message).in_cleanup(),
        EngineError::Registry(error) => registry_error(error),
        EngineError::UnknownTask { given } | EngineError::UnknownGroup { given } => {
            unknown_task(message, given)
        }
        EngineError::NoTaskHere { .. } => no_task_here(message),
        EngineError::InvalidTaskId { given } => invalid_task_id(message, given),
        EngineError::AmbiguousTask { candidates, .. } => ambiguous_task(message, &candidates),
        EngineError::GroupGiven { group, tasks } => group_given(message, &group, &tasks),
        EngineError::UnknownThread { given, nearest } => unknown_thread(message, given, nearest),
        EngineError::ArchivedThread { given, unarchive } => archived_thread(message, given, unarchive),
        EngineError::NotEnded { task, state } => not_ended(message, state, &task),
        EngineError::AlreadyEnded { task, state } => already_ended(message, state, &task),
        EngineError::ModeTooWide { requested, allowed } => mode_too_wide(requested, allowed).into(),
        EngineError::ReservedDirectory { input, .. } => reserved_directory(message, input),
        EngineError::VariableNotAllowed { agent, name, right } => {
            variable_not_allowed("env_allow_list", &agent, &name, right).into()
        }
        EngineError::ModeNotEnforced { agent, mode, problem } => {
            mode_not_enforced(&agent, mode, &problem).into()
        }
        EngineError::ReservedStateDir { agent, .. } => reserved_state_dir(message, &agent),
        EngineError::NoThreads { agent } => no_threads(message, &agent),
        EngineError::Conversation(error) => conversation_error(error, message),
        EngineError::UnsupportedInput { agent, input } => unsupported_input(&agent, input).into(),
        EngineError::NestingTooDeep { .. } => blocked(message, LESS_DEPTH),
        EngineError::TooManyChildren { .. } => blocked(message, FEWER_CHILDREN),
        EngineError::ExceedsParent { .. } => blocked(message, FEWER_RIGHTS),
        EngineError::BudgetExhausted { .. } => blocked(message, RAISE_BUDGET),
        EngineError::UnusableDirectory { input, path, problem } => {
            directory_problem(input, &path, &problem).into()
        }
        EngineError::UnusableFile { input, path, problem } => file_problem(input, &path, &problem).into(),
        EngineError::NoRestorePoint { task, .. } => no_restore_point(message, &task),
        EngineError::NoDiff { task, reason } => no_diff(message, &task, &reason),
        EngineError::RestorePointNotFound { task, .. } => no_restore_point(message, &task)
            .suggest("Give a directory of the task's repository as {input:working_dir}."),
        EngineError::RestoreOverlap { overlaps } => overlap_error(&overlaps),
        EngineError::WorkTreeBusy { busy, state, .. } => work_tree_busy(message, state, &busy),
        EngineError::ClockJumped { by_ms } => clock_jumped(message, by_ms),
        EngineError::NoGit(_) => AppError::new(ErrorCode::DependencyMissing, message),
        EngineError::Restore(source) | EngineError::RestoreIncomplete { source, .. } => {
            restore_error(source, message)
        }
        EngineError::Apply(error) => apply_error(error, message),
        EngineError::Isolation(error) => isolation_error(error, message),
        EngineError::NotImportable { .. } => not_importable(message),
        EngineError::Agent { name, .. } => missing_agent(message, &name),
        EngineError::NoSandbox { .. } => no_sandbox(message),
        EngineError::Plan(error) => plan_error(message, &error),
        EngineError::Launch { .. } | EngineError::Randomness { .. } => internal(message),
        EngineError::StoredRecord { file, .. } => unreadable_record(message, &file),
        EngineError::Provider { provider, task, source } => {
            provider_error(message, provider, task.as_ref(), source)
        }
        EngineError::Io { .. } | EngineError::WatchFailed { .. } => {
            AppError::new(ErrorCode::IoError, message)
        }
    }
}

fn blocked(message: String, suggestion: &str) -> AppError {
    AppError::new(ErrorCode::PolicyBlocked, message).suggest(suggestion)
}

fn reserved_directory(message: String, input: &str) -> AppError {
    blocked(message, "Choose a directory that contains only the project.").context("field", input)
}

fn internal(message: String) -> AppError {
    AppError::new(ErrorCode::Internal, message)
}

fn already_ended(message: String, state: State, task: &TaskId) -> AppError {
    state_error(ErrorCode::WrongState, message, state, "task_id", task)
}

fn no_restore_point(message: String, task: &TaskId) -> AppError {
    AppError::new(ErrorCode::NotFound, message).context("task_id", task.as_str())
}

fn no_diff(message: String, task: &TaskId, reason: &NoDiff) -> AppError {
    let code = match reason {
        NoDiff::NotInGit { .. } => ErrorCode::Unsupported,
        NoDiff::NoRestorePoint { .. }
        | NoDiff::PointDeleted
        | NoDiff::NoEndState
        | NoDiff::WorktreeGone { .. } => ErrorCode::NotFound,
        NoDiff::Unreadable { .. } => ErrorCode::WrongState,
    };
    AppError::new(code, message).context("task_id", task.as_str()).suggest_call(
        "Run {call} to see the files that it changed.",
        NextCall::for_task(&["local", "results"], task.as_str()),
    )
}

fn reserved_state_dir(message: String, agent: &str) -> AppError {
    let suggestion = format!(
        "Correct agents.{agent}.state_dirs in your own configuration, or the variable that names it."
    );
    blocked(message, &suggestion)
}

fn not_importable(message: String) -> AppError {
    AppError::new(ErrorCode::InvalidValue, message)
        .suggest("Give a session file from the sessions/ directory in CODEX_HOME.")
}

fn unreadable_record(message: String, file: &Path) -> AppError {
    AppError::new(ErrorCode::IoError, message)
        .context("file", file.display().to_string())
        .suggest("Read it with the version of mcp-delegator that wrote it, or remove it.")
}

fn unknown_task(message: String, given: String) -> AppError {
    let id = given.parse::<TaskIdPrefix>().ok().and_then(|given| given.complete());
    let suggestion = match id.filter(|id| id.location() == TaskLocation::Cloud) {
        Some(id) => of_another_machine(&id),
        None => Suggestion::with_call("Run {call} to list the tasks.", NextCall::new(&["local", "status"])),
    };
    AppError::new(ErrorCode::TaskNotFound, message).context("task_id", given).suggest(suggestion)
}

/// Only the machine that submitted a cloud task has a record of it.
fn of_another_machine(id: &TaskId) -> Suggestion {
    let text = format!(
        "If the id is right, another machine submitted it, or its record here was deleted: this command works only where a task was \
         submitted. If it is a task of the fleet, {{call}} shows its state, and 'mcp-delegator fleet cancel {id}' cancels it."
    );
    Suggestion::with_call(text, NextCall::new(&["fleet", "tasks"]))
}

fn no_task_here(message: String) -> AppError {
    let text = "Run {call} to list the tasks of all directories, and give an id, or run the command where the task worked.";
    AppError::new(ErrorCode::TaskNotFound, message).suggest_call(text, NextCall::new(&["local", "status"]))
}

fn unknown_thread(message: String, given: String, nearest: Option<String>) -> AppError {
    let list = "Run {call} to list the tasks, and resume one of them by its {input:task_id}.";
    let text = match &nearest {
        Some(thread) => format!("Did you mean {thread}? {list}"),
        None => list.to_owned(),
    };
    AppError::new(ErrorCode::ThreadNotFound, message)
        .context("thread_id", given)
        .suggest_call(text, NextCall::new(&["local", "status"]))
        .optional_context("nearest_thread_id", nearest)
}

fn archived_thread(message: String, given: String, unarchive: String) -> AppError {
    AppError::new(ErrorCode::ThreadNotFound, message)
        .context("thread_id", given)
        .suggest(format!("Run '{unarchive}' first."))
        .fix_command(unarchive)
}

fn plan_error(message: String, error: &PlanError) -> AppError {
    match error.input() {
        Some(input) => AppError::new(ErrorCode::InvalidValue, message).context("field", input),
        None => AppError::new(ErrorCode::DependencyVersion, message),
    }
}

fn invalid_task_id(message: String, given: String) -> AppError {
    AppError::new(ErrorCode::InvalidId, message).context("task_id", given).suggest(
        "A task id is T-local- or T-cloud- and 10 letters or digits; the first 4 of them are enough.",
    )
}

fn ambiguous_task(message: String, candidates: &[String]) -> AppError {
    AppError::new(ErrorCode::InvalidId, message)
        .context("candidates", candidates)
        .suggest(format!("Give more characters of the id: {}.", candidates.join(", ")))
}

fn group_given(message: String, group: &GroupId, tasks: &[TaskId]) -> AppError {
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    AppError::new(ErrorCode::InvalidId, message)
        .context("task_id", group.as_str())
        .context("candidates", names.as_slice())
        .suggest(format!("Name one of its attempts: {}.", names.join(", ")))
}

/// `task_key` is the context key of the task whose state prevents the call.
fn state_error(code: ErrorCode, message: String, state: State, task_key: &str, task: &TaskId) -> AppError {
    AppError::new(code, message).context("state", state.public_name()).context(task_key, task.as_str())
}

fn not_ended(message: String, state: State, task: &TaskId) -> AppError {
    let wait = NextCall::for_task(&["local", "wait"], task.as_str());
    state_error(ErrorCode::NotReady, message, state, "task_id", task)
        .suggest_call("Wait for the task first: {call}", wait)
}

fn work_tree_busy(message: String, state: State, busy: &TaskId) -> AppError {
    let cancel = NextCall::for_task(&["local", "cancel"], busy.as_str());
    state_error(ErrorCode::NotReady, message, state, "busy_task_id", busy)
        .suggest_call(format!("Wait for task {busy}, or run: {{call}}"), cancel)
}

fn no_sandbox(message: String) -> AppError {
    AppError::new(ErrorCode::Unsupported, message)
        .context("field", "verify")
        .suggest("Set verify_unsandboxed in your own configuration to run it without a sandbox.")
}

fn clock_jumped(message: String, by_ms: i64) -> AppError {
    AppError::new(ErrorCode::WrongState, message)
        .context("jumped_by_hours", by_ms / (60 * 60 * 1000))
        .suggest("Check the system date. If it is right, repeat the call with --trust-clock.")
}

pub fn mode_too_wide(requested: Mode, allowed: Mode) -> Problem {
    let message = format!("exceeds the configured max_mode, {}", allowed.name());
    Problem::new(ErrorCode::PolicyBlocked, "mode", message).value(requested.name().into()).suggest(Some(
        "Request a lower mode. Only the user can raise max_mode, in the user configuration \
             ('mcp-delegator config show' names the file) or with MCP_DELEGATOR_MAX_MODE.",
    ))
}

fn missing_agent(message: String, agent: &str) -> AppError {
    let suggestion = match agent {
        DEFAULT_AGENT => {
            "Run: npm install -g @openai/codex, then: codex login. Or set its path with codex_bin or MCP_DELEGATOR_CODEX_BIN."
                .to_owned()
        }
        _ => format!("Install it, or correct agents.{agent}.command in your own configuration."),
    };
    AppError::new(ErrorCode::DependencyMissing, message).suggest(suggestion)
}

/// The agent has no sandbox of its own and cannot be enclosed, and the user has not accepted that.
pub fn mode_not_enforced(agent: &str, mode: Mode, problem: &Unavailable) -> Problem {
    let message = format!("cannot be enforced for the agent {agent}: {problem}");
    let suggestion = format!(
        "Install bubblewrap, or have the user set agents.{agent}.unsandboxed in their own configuration to run it without a sandbox."
    );
    Problem::new(ErrorCode::PolicyBlocked, "mode", message)
        .value(mode.name().into())
        .suggest(Some(suggestion))
}

pub fn unsupported_input(agent: &str, input: &str) -> Problem {
    Problem::new(ErrorCode::Unsupported, input, format!("is not supported by the agent {agent}"))
        .suggest(Some(format!("Remove {{input:{input}}}, or use another agent.")))
}

fn no_threads(message: String, agent: &str) -> AppError {
    AppError::new(ErrorCode::Unsupported, message).context("agent", agent).suggest_call(
        "Start a new task with {call}, and repeat in it what the agent needs to know.",
        NextCall::new(&["local", "exec"]),
    )
}

/// `env_allow_list` names a variable that the agent does not receive.
pub fn variable_not_allowed(field: &str, agent: &str, name: &str, permission: VariableAccess) -> Problem {
    let (message, suggestion) = match permission {
        VariableAccess::Never => (
            format!("contains {name}, which is never passed to an agent"),
            format!("Remove {name}: variables that make programs run code are never passed on."),
        ),
        VariableAccess::Passed | VariableAccess::NotListed => (
            format!("contains {name}, which is not passed to the agent"),
            format!(
                "Remove {name}, or have the user add it to agents.{agent}.env in their own configuration."
            ),
        ),
    };
    let mut problem = Problem::new(ErrorCode::PolicyBlocked, field, message).value(name.into());
    problem.context.insert("variable".into(), name.into());
    problem.suggest(Some(suggestion))
}

/// A directory that does not exist, cannot be used, or lies outside `allowed_roots`.
pub fn directory_problem(field: &str, path: &Path, problem: &DirectoryProblem) -> Problem {
    let suggestion = match problem {
        DirectoryProblem::OutsideRoots { roots } => return outside_roots(field, path, problem, roots),
        DirectoryProblem::Missing => format!("Create {}, or give a directory that exists.", path.display()),
        DirectoryProblem::NotADirectory | DirectoryProblem::Unusable(_) => {
            "Give a directory that this user can enter.".to_owned()
        }
    };
    path_problem(ErrorCode::InvalidValue, field, path, problem).suggest(Some(suggestion))
}

/// A file that cannot be read, or that this caller may not read.
pub fn file_problem(field: &str, path: &Path, problem: &FileProblem) -> Problem {
    let (code, suggestion) = match problem {
        FileProblem::OutsideRoots { roots } => return outside_roots(field, path, problem, roots),
        FileProblem::Missing | FileProblem::NotAFile | FileProblem::Unreadable(_) => {
            (ErrorCode::InvalidValue, "Give a regular file that can be read.")
        }
        FileProblem::OwnState => {
            (ErrorCode::PolicyBlocked, "Give a file outside the state directory; refer to a task by its id.")
        }
    };
    path_problem(code, field, path, problem).suggest(Some(suggestion))
}

fn outside_roots(field: &str, path: &Path, problem: &impl ToString, roots: &[PathBuf]) -> Problem {
    let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    path_problem(ErrorCode::PolicyBlocked, field, path, problem)
        .suggest(Some(format!("Give a path in {}.", roots.join(" or "))))
}

fn path_problem(code: ErrorCode, field: &str, path: &Path, problem: &impl ToString) -> Problem {
    Problem::new(code, field, problem.to_string()).value(path.display().to_string().into())
}

fn registry_error(error: RegistryError) -> AppError {
    let message = sentence(&error.to_string());
    match error {
        RegistryError::IdempotencyConflict { first, .. } => {
            AppError::new(ErrorCode::IdempotencyMismatch, message).context("task_id", first.as_str())
        }
        RegistryError::Busy { .. } => AppError::new(ErrorCode::LockHeld, message),
        RegistryError::IdInUse { .. } => AppError::new(ErrorCode::Internal, message),
        RegistryError::Damaged { .. } => AppError::new(ErrorCode::ConfigInvalid, message).suggest_call(
            "Run {call} to rename the damaged files and start with an empty registry.",
            NextCall::new(&["doctor"]).with("set_aside_damaged", true),
        ),
        RegistryError::NeedsNewerWriter { .. } | RegistryError::StateDir(_) => {
            AppError::new(ErrorCode::ConfigInvalid, message)
        }
        _ => AppError::new(ErrorCode::IoError, message),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use delegator_engine::{GitError, RestoreError};

    use super::*;
    use crate::error::Phase;

    #[test]
    fn a_git_command_over_its_time_limit_is_a_wall_timeout() {
        let timed_out = GitError::TimedOut { command: "status".to_owned(), limit: Duration::from_secs(300) };
        let error = AppError::from(EngineError::Restore(RestoreError::Git(timed_out)));
        assert_eq!(
            (error.code, &error.context["timeout_type"], &error.context["limit_seconds"]),
            (ErrorCode::TimeoutWall, &"wall".into(), &300.into())
        );
    }

    #[test]
    fn a_shortage_during_cleanup_does_not_promise_that_nothing_changed() {
        let shortage = || EngineError::Io {
            doing: "delete a task",
            source: std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()),
        };
        assert_eq!(AppError::from(shortage()).code, ErrorCode::ResourceShortage);
        let error = AppError::from(EngineError::Cleanup(Box::new(shortage())));
        assert_eq!((error.code, error.phase), (ErrorCode::IoError, Phase::Cleanup));
    }
}
