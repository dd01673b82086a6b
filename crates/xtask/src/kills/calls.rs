//! Command-line calls that may be killed before they answer.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clock::sleep;
use crate::error::LoadError;
use crate::testbed::Testbed;

const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A call under way.
#[derive(Debug)]
pub(super) struct Call {
    child: Child,
    /// The key it submits under, if it submits.
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

    /// The submission of a task under a key.
    pub(super) fn submit(testbed: &Testbed, agent: &Path, key: &str) -> Result<Call, LoadError> {
        Call::start(testbed, agent, &["local", "exec", key, "--idempotency-key", key], Some(key))
    }

    /// False if it had ended before.
    pub(super) fn kill(&mut self) -> bool {
        let is_running = matches!(self.child.try_wait(), Ok(None));
        is_running && self.child.kill().is_ok()
    }

    /// Waits for its end; gives the task it acknowledged, if it got to say so.
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
            output.read_to_end(&mut stdout).map_err(LoadError::io("hear a call"))?;
        }
        // A call that died in the middle has said nothing, or not a whole line.
        let response: Value = serde_json::from_slice(&stdout).unwrap_or_default();
        let accepted = response["data"]["accepted"] == true;
        Ok(response["data"]["task_id"].as_str().filter(|_| accepted).map(str::to_owned))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // Nothing to do for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
