//! Internal modes of the program: task supervisor, registry pruning, delivery of notifications, the enclosure
//! of an agent and the scripted agent of the demo.
//!
//! They are not commands. They are recognised before anything else runs, because a supervisor must stay
//! small: it loads no schemas and no configuration and starts no signal thread.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::{DELIVER, DeliveryPolicy, ENCLOSE, Engine, Forked, PRUNE, SUPERVISE};
use delegator_registry::Nonce;

use crate::commands::demo::SCRIPTED_AGENT;
use crate::spec::process::Process;

/// Runs the internal mode named by the first argument, if there is one.
pub fn run_if_requested(process: &Process) -> Option<ExitCode> {
    #[cfg(debug_assertions)]
    crate::app::crash::arm_from_environment(process);
    match process.argv.get(1)?.to_str()? {
        SUPERVISE => supervise(process),
        PRUNE => prune(process),
        DELIVER => deliver(process),
        ENCLOSE => Some(delegator_engine::enter_enclosure(process.argv.get(2..)?)),
        SCRIPTED_AGENT => {
            let mut argv = process.argv.clone();
            argv.remove(1);
            Some(ExitCode::from(delegator_scripted_agent::start(argv)))
        }
        _ => None,
    }
}

/// The engine of the state directory that the caller passed on.
fn engine(process: &Process) -> Option<Engine> {
    let state_dir = PathBuf::from(process.environment.get(OsStr::new("MCP_DELEGATOR_HOME"))?);
    Some(Engine::new(state_dir, "/proc/self/exe"))
}

fn exit_code<E>(result: Result<(), E>) -> Option<ExitCode> {
    Some(if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn supervise(process: &Process) -> Option<ExitCode> {
    // With other arguments, the command line reports them.
    let [_, _, id, nonce] = process.argv.as_slice() else { return None };
    let (id, nonce): (TaskId, _) = (id.to_str()?.parse().ok()?, Nonce::from_text(nonce.to_str()?)?);
    let max_concurrent = process.variable("MCP_DELEGATOR_SLOTS")?.parse().ok()?;
    let milliseconds = |name| process.variable(name).and_then(|text| text.parse().ok());
    let engine = engine(process)?
        .with_max_concurrent(max_concurrent)
        .with_retention(milliseconds("MCP_DELEGATOR_KEEP_MS"), milliseconds("MCP_DELEGATOR_KEEP_POINTS_MS"));
    // The arguments are read before: a process that was forked must not continue as a command.
    if let Forked::Launcher(code) = delegator_engine::fork_supervisor() {
        return Some(code);
    }
    exit_code(delegator_engine::run_supervisor(&engine, &id, &nonce))
}

/// Prunes the registry. The caller passes the times, because it decided with its own clock.
fn prune(process: &Process) -> Option<ExitCode> {
    let [_, _, tasks_before_ms, points_before_ms] = process.argv.as_slice() else { return None };
    let tasks_before_ms = tasks_before_ms.to_str()?.parse().ok()?;
    let points_before_ms = match points_before_ms.to_str()? {
        "never" => None,
        time => Some(time.parse().ok()?),
    };
    exit_code(delegator_engine::prune(&engine(process)?, tasks_before_ms, points_before_ms))
}

fn deliver(process: &Process) -> Option<ExitCode> {
    if process.argv.len() != 2 {
        return None;
    }
    exit_code(delegator_engine::deliver(&engine(process)?, &delivery_policy(process)))
}

/// In a debug build, two variables set the time after the first attempt and that in which notifications are
/// collected, for tests that must not wait.
fn delivery_policy(process: &Process) -> DeliveryPolicy {
    let policy = DeliveryPolicy::default();
    let given = |name| {
        let text = process.variable(name).filter(|_| cfg!(debug_assertions))?;
        text.parse().ok().map(Duration::from_millis)
    };
    DeliveryPolicy {
        first_delay: given("MCP_DELEGATOR_TEST_RETRY_MS").unwrap_or(policy.first_delay),
        merge_window: given("MCP_DELEGATOR_TEST_MERGE_MS").unwrap_or(policy.merge_window),
        ..policy
    }
}
