//! Reads request bodies completely before the protocol handles them, in bounded time and memory.
//!
//! Each body has a time limit and a size limit, and all bodies together have a memory budget: a body that
//! exceeds the budget is refused at once, and the client may retry. Parsed JSON is much larger than its text
//! (a one-digit number takes a hundred bytes), so bodies with very many values are refused, however short;
//! legitimate long bodies contain long texts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::mcp::transport::decode::has_too_many_values;
use crate::mcp::transport::http::bounds::Bounds;
use crate::mcp::transport::http::responses::PlainResponse;

#[derive(Debug)]
pub(super) struct BodyReader {
    max_bytes: usize,
    timeout: Duration,
    /// One permit per byte.
    memory_budget: Arc<Semaphore>,
}

const TOO_LONG: PlainResponse = PlainResponse::new(StatusCode::PAYLOAD_TOO_LARGE, "The body is too long.\n");
const TOO_MANY_VALUES: PlainResponse =
    PlainResponse::new(StatusCode::PAYLOAD_TOO_LARGE, "The body has too many JSON values.\n");
const TOO_SLOW: PlainResponse =
    PlainResponse::new(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time.\n");
const OUT_OF_MEMORY_BUDGET: PlainResponse =
    PlainResponse::new(StatusCode::SERVICE_UNAVAILABLE, "Too many bodies are being read; try again.\n");
const BROKEN: PlainResponse = PlainResponse::new(StatusCode::BAD_REQUEST, "The body could not be read.\n");

impl BodyReader {
    pub(super) fn new(bounds: &Bounds) -> BodyReader {
        let memory_budget = Arc::new(Semaphore::new(bounds.buffered_body_bytes));
        BodyReader { max_bytes: bounds.body_bytes, timeout: bounds.body_timeout, memory_budget }
    }

    /// Reads the whole body, or refuses it. Dropping the bytes returns their memory budget.
    pub(super) async fn read(&self, body: impl Body<Data = Bytes> + Unpin) -> Result<Bytes, PlainResponse> {
        let collected = tokio::time::timeout(self.timeout, self.collect(body)).await;
        let buffered = collected.unwrap_or(Err(TOO_SLOW))?;
        if has_too_many_values(&buffered.bytes) {
            return Err(TOO_MANY_VALUES);
        }
        Ok(Bytes::from_owner(buffered))
    }

    async fn collect(
        &self,
        mut body: impl Body<Data = Bytes> + Unpin,
    ) -> Result<BufferedBody, PlainResponse> {
        if body.size_hint().lower() > self.max_bytes as u64 {
            return Err(TOO_LONG);
        }
        let no_bytes =
            Arc::clone(&self.memory_budget).try_acquire_many_owned(0).map_err(|_| OUT_OF_MEMORY_BUDGET)?;
        let mut buffered = BufferedBody { bytes: Vec::new(), permit: no_bytes };
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BROKEN)?.into_data() else { continue };
            if data.len() > self.max_bytes - buffered.bytes.len() {
                return Err(TOO_LONG);
            }
            let size = u32::try_from(data.len()).map_err(|_| TOO_LONG)?;
            let permit = Arc::clone(&self.memory_budget).try_acquire_many_owned(size);
            buffered.permit.merge(permit.map_err(|_| OUT_OF_MEMORY_BUDGET)?);
            buffered.bytes.extend_from_slice(&data);
        }
        Ok(buffered)
    }
}

/// Bytes with their share of the memory budget.
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
            assert_eq!(intake.read(body("123456789")).await.unwrap_err(), TOO_LONG);
            let first = intake.read(body("12345678")).await.unwrap();
            assert_eq!(intake.memory_budget.available_permits(), 4);
            assert_eq!(intake.read(body("12345")).await.unwrap_err(), OUT_OF_MEMORY_BUDGET);
            let second = intake.read(body("1234")).await.unwrap();
            assert_eq!(first, "12345678");
            drop((first, second));
            assert_eq!(intake.memory_budget.available_permits(), 12);
        });
    }
}
