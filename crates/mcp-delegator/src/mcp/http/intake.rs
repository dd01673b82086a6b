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
use crate::mcp::hearing::has_too_many_values;

#[derive(Debug)]
pub(super) struct Intake {
    most_bytes: usize,
    may_take: Duration,
    /// One permit, one byte.
    room: Arc<Semaphore>,
}

/// Why a body was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    TooLong,
    TooManyValues,
    TooSlow,
    NoRoom,
    Broken,
}

impl Refused {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Refused::TooLong | Refused::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
            Refused::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Refused::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Refused::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Refused::TooLong => "The body is too long.\n",
            Refused::TooManyValues => "The body has too many values.\n",
            Refused::TooSlow => "The body did not come in time.\n",
            Refused::NoRoom => "Too many bodies are being read; try again.\n",
            Refused::Broken => "The body could not be read.\n",
        }
    }
}

impl Intake {
    pub(super) fn new(bounds: &Bounds) -> Intake {
        let room = Arc::new(Semaphore::new(bounds.bytes_at_once));
        Intake { most_bytes: bounds.body_bytes, may_take: bounds.body_may_take, room }
    }

    /// The whole body. Its room is given back when whoever gets it drops it.
    pub(super) async fn read(&self, body: impl Body<Data = Bytes> + Unpin) -> Result<Bytes, Refused> {
        let collected = tokio::time::timeout(self.may_take, self.collect(body)).await;
        let held = collected.unwrap_or(Err(Refused::TooSlow))?;
        if has_too_many_values(&held.bytes) {
            return Err(Refused::TooManyValues);
        }
        Ok(Bytes::from_owner(held))
    }

    async fn collect(&self, mut body: impl Body<Data = Bytes> + Unpin) -> Result<Held, Refused> {
        if body.size_hint().lower() > self.most_bytes as u64 {
            return Err(Refused::TooLong);
        }
        let nothing = Arc::clone(&self.room).try_acquire_many_owned(0).map_err(|_| Refused::NoRoom)?;
        let mut held = Held { bytes: Vec::new(), room: nothing };
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refused::Broken)?.into_data() else { continue };
            if data.len() > self.most_bytes - held.bytes.len() {
                return Err(Refused::TooLong);
            }
            let size = u32::try_from(data.len()).map_err(|_| Refused::TooLong)?;
            let room = Arc::clone(&self.room).try_acquire_many_owned(size);
            held.room.merge(room.map_err(|_| Refused::NoRoom)?);
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

/// Bytes, and the room they take.
struct Held {
    bytes: Vec<u8>,
    room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn intake(bytes_at_once: usize) -> Intake {
        let bounds = Bounds { body_bytes: 8, bytes_at_once, ..Bounds::default() };
        Intake::new(&bounds)
    }

    fn body(text: &'static str) -> Full<Bytes> {
        Full::new(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn room_is_given_back_with_the_body() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let intake = intake(12);
            assert_eq!(intake.read(body("123456789")).await.unwrap_err(), Refused::TooLong);
            let first = intake.read(body("12345678")).await.unwrap();
            assert_eq!(intake.room.available_permits(), 4);
            assert_eq!(intake.read(body("12345")).await.unwrap_err(), Refused::NoRoom);
            let second = intake.read(body("1234")).await.unwrap();
            assert_eq!(first, "12345678");
            drop((first, second));
            assert_eq!(intake.room.available_permits(), 12);
        });
    }
}
