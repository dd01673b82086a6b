//! Command-line calls that may be killed before they answer.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clock::pause;
use crate::error::LoadError;
use crate::stage::Stage;

const CALL_MAY_TAKE: Duration = Duration::from_secs(20);

/// A call under way.
#[derive(Debug)]
pub(super) struct Call {
    child: Child,
    /// The key it submits under, if it submits.
    pub(super) key: Option<String>,
}

impl Call {
    pub(super) fn start(
        stage: &Stage,
        agent: &Path,
        words: &[&str],
        key: Option<&str>,
    ) -> Result<Call, LoadError> {
        let child = stage.call(agent, words).spawn().map_err(LoadError::io("call the program"))?;
        Ok(Call { child, key: key.map(str::to_owned) })
    }

    /// The submission of a task under a key.
    pub(super) fn submit(stage: &Stage, agent: &Path, key: &str) -> Result<Call, LoadError> {
        Call::start(stage, agent, &["local", "exec", key, "--idempotency-key", key], Some(key))
    }

    /// False if it had ended before.
    pub(super) fn kill(&mut self) -> bool {
        let lives = matches!(self.child.try_wait(), Ok(None));
        lives && self.child.kill().is_ok()
    }

    /// Waits for its end; gives the task it acknowledged, if it got to say so.
    pub(super) fn finish(mut self) -> Result<Option<String>, LoadError> {
        let deadline = Instant::now() + CALL_MAY_TAKE;
        while self.child.try_wait().map_err(LoadError::io("wait for a call"))?.is_none() {
            if Instant::now() >= deadline {
                return Err(LoadError::OutOfTime { doing: "waiting for a call".to_owned() });
            }
            pause(Duration::from_millis(2));
        }
        let mut said = Vec::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_end(&mut said).map_err(LoadError::io("hear a call"))?;
        }
        // A call that died in the middle has said nothing, or not a whole line.
        let answer: Value = serde_json::from_slice(&said).unwrap_or_default();
        let accepted = answer["data"]["accepted"] == true;
        Ok(answer["data"]["task_id"].as_str().filter(|_| accepted).map(str::to_owned))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // Nothing to do for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
