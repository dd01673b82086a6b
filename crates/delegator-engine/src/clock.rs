//! The wall clock, for showing, and randomness, for names.

#![expect(clippy::disallowed_methods, reason = "the engine is the room that may ask what time it is")]

use std::time::{SystemTime, UNIX_EPOCH};

use delegator_domain::task::{TaskId, TaskLocation};
use delegator_registry::Nonce;

use crate::error::EngineError;

/// Milliseconds since 1970. A clock before that is as good as none.
pub(crate) fn now_ms() -> i64 {
    #[cfg(all(test, debug_assertions))]
    if let Some(now_ms) = crate::model::in_simulation(|stage| stage.now_ms()) {
        return now_ms;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn random() -> Result<[u8; 16], EngineError> {
    #[cfg(all(test, debug_assertions))]
    if let Some(bits) = crate::model::in_simulation(|stage| stage.random_bits()) {
        return Ok(bits);
    }
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| EngineError::Randomness { detail: error.to_string() })?;
    Ok(bits)
}

pub(crate) fn fresh_id() -> Result<TaskId, EngineError> {
    random().map(|bits| TaskId::from_random(TaskLocation::Local, bits))
}

/// As many nonces as one pass can need, drawn before it begins: inside a transaction nothing may fail for want of one.
pub(crate) fn fresh_nonces(count: usize) -> Result<Vec<Nonce>, EngineError> {
    (0..count).map(|_| random().map(Nonce::from_random)).collect()
}
