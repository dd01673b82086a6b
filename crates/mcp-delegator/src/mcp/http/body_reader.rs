//! Bodies: read to their end before the protocol sees them, in bounded time and memory.
//!
//! A body is short and its sender has it ready, so whoever takes long is not worth waiting for. What all bodies together
//! may hold is bounded, too: one that finds no room is refused at once, and its sender may try again. JSON grows when it is
//! read (a number of one digit takes a hundred times its length), so bodies of very many values are refused, however
//! short; the long ones that are meant are long texts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Bounds;
use crate::mcp::decode::has_too_many_values;

#[derive(Debug)]
pub(super) struct BodyReader {
    max_bytes: usize,
    timeout: Duration,
    /// One permit, one byte.
    memory_budget: Arc<Semaphore>,
}

/// Why a body was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLong,
    TooManyValues,
    TooSlow,
    OutOfMemoryBudget,
    Broken,
}

impl BodyError {
    pub(super) fn status(self) -> StatusCode {
        match self {
            BodyError::TooLong | BodyError::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::OutOfMemoryBudget => StatusCode::SERVICE_UNAVAILABLE,
            BodyError::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            BodyError::TooLong => "The body is too long.\n",
            BodyError::TooManyValues => "The body has too many values.\n",
            BodyError::TooSlow => "The body did not come in time.\n",
            BodyError::OutOfMemoryBudget => "Too many bodies are being read; try again.\n",
            BodyError::Broken => "The body could not be read.\n",
        }
    }
}

impl BodyReader {
    pub(super) fn new(bounds: &Bounds) -> BodyReader {
        let room = Arc::new(Semaphore::new(bounds.buffered_body_bytes));
        BodyReader { max_bytes: bounds.body_bytes, timeout: bounds.body_timeout, memory_budget: room }
    }

    /// The whole body. Its room is given back when whoever gets it drops it.
    pub(super) async fn read(&self, body: impl Body<Data = Bytes> + Unpin) -> Result<Bytes, BodyError> {
        let collected = tokio::time::timeout(self.timeout, self.collect(body)).await;
        let held = collected.unwrap_or(Err(BodyError::TooSlow))?;
        if has_too_many_values(&held.bytes) {
            return Err(BodyError::TooManyValues);
        }
        Ok(Bytes::from_owner(held))
    }

    async fn collect(&self, mut body: impl Body<Data = Bytes> + Unpin) -> Result<BufferedBody, BodyError> {
        if body.size_hint().lower() > self.max_bytes as u64 {
            return Err(BodyError::TooLong);
        }
        let nothing = Arc::clone(&self.memory_budget)
            .try_acquire_many_owned(0)
            .map_err(|_| BodyError::OutOfMemoryBudget)?;
        let mut held = BufferedBody { bytes: Vec::new(), permit: nothing };
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            if data.len() > self.max_bytes - held.bytes.len() {
                return Err(BodyError::TooLong);
            }
            let size = u32::try_from(data.len()).map_err(|_| BodyError::TooLong)?;
            let room = Arc::clone(&self.memory_budget).try_acquire_many_owned(size);
            held.permit.merge(room.map_err(|_| BodyError::OutOfMemoryBudget)?);
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

/// Bytes, and the room they take.
struct BufferedBody {
    bytes: Vec<u8>,
    permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BufferedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn reader(bytes_at_once: usize) -> BodyReader {
        let bounds = Bounds { body_bytes: 8, buffered_body_bytes: bytes_at_once, ..Bounds::default() };
        BodyReader::new(&bounds)
    }

    fn body(text: &'static str) -> Full<Bytes> {
        Full::new(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn dropping_a_body_returns_its_memory_budget() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let intake = reader(12);
            assert_eq!(intake.read(body("123456789")).await.unwrap_err(), BodyError::TooLong);
            let first = intake.read(body("12345678")).await.unwrap();
            assert_eq!(intake.memory_budget.available_permits(), 4);
            assert_eq!(intake.read(body("12345")).await.unwrap_err(), BodyError::OutOfMemoryBudget);
            let second = intake.read(body("1234")).await.unwrap();
            assert_eq!(first, "12345678");
            drop((first, second));
            assert_eq!(intake.memory_budget.available_permits(), 12);
        });
    }
}
