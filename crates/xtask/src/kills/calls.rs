//! Command-line calls that may be killed before they respond.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clock::sleep;
use crate::error::LoadError;
use crate::testbed::Testbed;

const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A call in progress.
#[derive(Debug)]
pub(super) struct Call {
    child: Child,
    /// The idempotency key, if it submits a task.
    pub(super) key: Option<String>,
}

impl Call {
    pub(super) fn start(
        testbed: &Testbed,
        agent: &Path,
        args: &[&str],
        key: Option<&str>,
    ) -> Result<Call, LoadError> {
        let child = testbed.cli_call(agent, args).spawn().map_err(LoadError::io("call the program"))?;
        Ok(Call { child, key: key.map(str::to_owned) })
    }

    /// Submits a task under a key.
    pub(super) fn submit(testbed: &Testbed, agent: &Path, key: &str) -> Result<Call, LoadError> {
        Call::start(testbed, agent, &["local", "exec", key, "--idempotency-key", key], Some(key))
    }

    /// False if it had already exited.
    pub(super) fn kill(&mut self) -> bool {
        let is_running = matches!(self.child.try_wait(), Ok(None));
        is_running && self.child.kill().is_ok()
    }

    /// Waits for its exit. Returns the id of the task it acknowledged, if it got that far.
    pub(super) fn finish(mut self) -> Result<Option<String>, LoadError> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        while self.child.try_wait().map_err(LoadError::io("wait for a call"))?.is_none() {
            if Instant::now() >= deadline {
                return Err(LoadError::OutOfTime { doing: "waiting for a call".to_owned() });
            }
            sleep(Duration::from_millis(2));
        }
        let mut stdout = Vec::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_end(&mut stdout).map_err(LoadError::io("read the output of a call"))?;
        }
        // A call that was killed has printed nothing, or no complete line.
        let response: Value = serde_json::from_slice(&stdout).unwrap_or_default();
        let accepted = response["data"]["accepted"] == true;
        Ok(response["data"]["task_id"].as_str().filter(|_| accepted).map(str::to_owned))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // Has no effect on one that has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
