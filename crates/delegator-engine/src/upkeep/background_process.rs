//! Starts the processes that do upkeep for many tasks: pruning, and the delivery of notifications.
//!
//! Each is this program in an internal mode, without the environment of the process that starts it: an agent
//! can read the environment of every process of its user. Locks ensure that one of each kind works in a state
//! directory. A child is reaped when the next one is wanted.

#![expect(clippy::disallowed_methods, reason = "this module starts the processes for upkeep")]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Engine;
use crate::error::{EngineError, Result};

pub(crate) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// One kind of process: the one that this process started, until it is reaped.
#[derive(Debug)]
pub(super) struct BackgroundProcess {
    child: Mutex<Option<Child>>,
    /// What an error says that could not be done.
    doing: &'static str,
}

impl BackgroundProcess {
    pub(super) const fn new(doing: &'static str) -> BackgroundProcess {
        BackgroundProcess { child: Mutex::new(None), doing }
    }

    /// Spawns the process, unless the previous one still runs.
    pub(super) fn spawn(&self, engine: &Engine, args: &[&str]) -> Result<()> {
        let mut child = self.lock();
        if child.as_mut().is_some_and(is_running) {
            return Ok(());
        }
        let mut command = Command::new(&engine.program);
        command.args(args).env_clear();
        #[cfg(debug_assertions)]
        command.envs(delegator_domain::crash::inherited_variables());
        command
            .env("MCP_DELEGATOR_HOME", &engine.state_dir)
            .env("PATH", USUAL_PATH)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        *child = Some(command.spawn().map_err(EngineError::io(self.doing))?);
        Ok(())
    }

    pub(super) fn reap(&self) {
        let mut child = self.lock();
        if !child.as_mut().is_some_and(is_running) {
            *child = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}
