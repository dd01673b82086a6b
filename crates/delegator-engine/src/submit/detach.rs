//! Starts a supervisor that outlives the process that starts it, however that process ends.
//!
//! A double fork: this program starts itself as a *launcher*, in a process group of its own. The launcher
//! forks the supervisor and exits, and the supervisor opens a session of its own. It is then no descendant of
//! the starting process, and in neither its process group nor its session: a client that ends the process
//! tree of its server does not reach it. The launcher is executed and not only forked, because a fork without
//! an exec is not safe in a process with threads; the launcher has none.
//!
//! Both get an environment that is built here and inherits nothing: an agent can read the environment of
//! every process of its user. What a task needs of its submitter's environment is in its launch file.
//!
//! The starting process acquires the task lock and passes it on as standard input; it is held until the
//! supervisor exits.

#![expect(
    clippy::disallowed_methods,
    reason = "this module starts supervisors; only supervisors start agents"
)]

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use delegator_domain::task::TaskId;
use delegator_registry::Nonce;

use crate::Engine;
use crate::error::{EngineError, Result};
use crate::shared::task_of_process::SUPERVISE;

const EXIT_NOT_FORKED: u8 = 71;

pub(crate) fn spawn_launcher(engine: &Engine, id: &TaskId, nonce: &Nonce, lock: OwnedFd) -> Result<Child> {
    let mut command = Command::new(&engine.program);
    command.args([SUPERVISE, id.as_str(), nonce.as_str()]).env_clear();
    #[cfg(debug_assertions)]
    command.envs(delegator_domain::crash::inherited_variables());
    command
        .env("MCP_DELEGATOR_HOME", &engine.state_dir)
        .env("MCP_DELEGATOR_SLOTS", engine.max_concurrent.to_string())
        .env("MCP_DELEGATOR_KEEP_MS", engine.retention_ms.map(|ms| ms.to_string()).unwrap_or_default())
        .env(
            "MCP_DELEGATOR_KEEP_POINTS_MS",
            engine.restore_point_retention_ms.map(|ms| ms.to_string()).unwrap_or_default(),
        )
        // A Ctrl-C in the terminal of the starting process must reach neither the launcher nor the
        // supervisor.
        .process_group(0)
        .stdin(lock)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().map_err(EngineError::io("start a supervisor"))
}

/// Waits for a launcher; true if it certainly forked no supervisor. A launcher that was killed may have
/// forked it: then the task lock decides, at the next upkeep pass.
pub(crate) fn launcher_failed(mut launcher: Child) -> bool {
    // On an error the status is lost: a supervisor that starts another one reaps all of its children.
    launcher.wait().is_ok_and(|status| status.code() == Some(i32::from(EXIT_NOT_FORKED)))
}

#[derive(Debug, Clone, Copy)]
pub enum Forked {
    /// It must exit with this code.
    Launcher(ExitCode),
    Supervisor,
}

/// Forks the supervisor from the launcher, which must have one thread only.
pub fn fork_supervisor() -> Forked {
    match fork::fork() {
        Ok(fork::Fork::Child) => Forked::Supervisor,
        Ok(fork::Fork::Parent(_)) => Forked::Launcher(ExitCode::SUCCESS),
        Err(_) => Forked::Launcher(ExitCode::from(EXIT_NOT_FORKED)),
    }
}

/// Fails only in a process that leads a process group, which a forked one does not.
pub(crate) fn open_session() {
    let _ = rustix::process::setsid();
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use delegator_domain::task::{State, TaskLocation};
    use delegator_registry::{NewTask, Registry, Task};

    use super::*;
    use crate::submit::promote::promote;

    /// Submits a task and starts it with a shell script as launcher; returns the task afterwards.
    fn start_with_launcher(script: &str) -> Task {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("launcher");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let engine = Engine::new(folder.path().join("state"), program);
        let id = TaskId::from_random(TaskLocation::Local, [9; 16]);
        let task = NewTask::reading(id.clone(), "/", "x");
        let mut registry = engine.open_registry().unwrap();
        let registry: &mut Registry = &mut registry;
        registry.submit(&task, b"{}", 1).unwrap();
        promote(&engine, registry).unwrap();
        registry.get(&id).unwrap().unwrap()
    }

    #[test]
    fn a_supervisor_that_cannot_be_forked_gives_its_claim_back_at_once() {
        let task = start_with_launcher(&format!("exit {EXIT_NOT_FORKED}"));
        assert_eq!((task.state, task.starts), (State::Queued, 1));
    }

    #[test]
    fn a_launcher_that_was_killed_leaves_the_decision_to_the_lock() {
        assert_eq!(start_with_launcher("kill -KILL $$").state, State::Starting);
        assert_eq!(start_with_launcher("exit 0").state, State::Starting);
    }
}
