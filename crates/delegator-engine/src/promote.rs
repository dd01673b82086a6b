//! Starting what may start: claim in one transaction, then one supervisor process for each claim.
//!
//! A supervisor is this very program (through `/proc/self/exe`, so that an upgrade cannot mix versions), detached from
//! whoever asked. If it cannot even be spawned, the claim is given back at once; if it dies before it comes to life,
//! whoever looks next gives it back.

#![expect(
    clippy::disallowed_methods,
    reason = "supervisors are started here; agents are started by supervisors only"
)]

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use delegator_registry::{Claimed, Promotion, Registry, Running, Waiting};

use crate::Engine;
use crate::clock::{fresh_nonces, now_ms};
use crate::error::EngineError;

/// The word by which this program becomes a supervisor.
pub const SUPERVISE: &str = "supervise";

impl Engine {
    /// Starts as many queued tasks as there are free slots.
    pub(crate) fn promote(&self, registry: &mut Registry) -> Result<(), EngineError> {
        let claimed = self.with_promotion(|promotion| Ok(registry.claim_all(promotion, now_ms())?))?;
        self.start_all(registry, claimed)
    }

    /// What a claimer brings along, for as long as it takes.
    pub(crate) fn with_promotion<T>(
        &self,
        act: impl FnOnce(&Promotion<'_>) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let nonces = std::cell::RefCell::new(fresh_nonces(self.max_concurrent.max(1))?);
        let spare = fresh_nonces(1)?;
        // There are as many nonces as slots, so the spare one is never needed twice.
        let fresh_nonce = || nonces.borrow_mut().pop().unwrap_or_else(|| spare[0].clone());
        let may_start = |waiting: &Waiting, running: &[Running]| may_start(waiting, running);
        act(&Promotion {
            max_concurrent: self.max_concurrent,
            may_start: &may_start,
            fresh_nonce: &fresh_nonce,
        })
    }

    pub(crate) fn start_all(
        &self,
        registry: &mut Registry,
        claimed: Vec<Claimed>,
    ) -> Result<(), EngineError> {
        for Claimed { task, nonce } in claimed {
            let mut command = Command::new(&self.program);
            command
                .args([SUPERVISE, task.id.as_str(), nonce.as_str()])
                .env("MCP_DELEGATOR_HOME", &self.state_dir)
                .env("MCP_DELEGATOR_SLOTS", self.max_concurrent.to_string())
                // A group of its own: a Ctrl-C meant for us must not reach it.
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if command.spawn().is_err() {
                registry.give_back(&task.id, &nonce, now_ms())?;
            }
        }
        Ok(())
    }
}

/// A thread has one writer at a time; everything else may run side by side.
fn may_start(waiting: &Waiting, running: &[Running]) -> bool {
    match &waiting.resumed_thread {
        Some(thread) => !running.iter().any(|other| other.threads.contains(thread)),
        None => true,
    }
}
