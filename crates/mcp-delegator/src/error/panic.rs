//! Converts a panic in a handler into an internal error of that call.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{AppError, ErrorCode};

pub fn catch_panics<T>(work: impl FnOnce() -> Result<T, AppError>) -> Result<T, AppError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(panic.as_ref())))
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> AppError {
    let message =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    AppError::new(ErrorCode::Internal, "Internal error: this is a bug in mcp-delegator.")
        .detail(message.unwrap_or("no message").to_owned())
        .suggest("Run the command again with MCP_DELEGATOR_LOG=debug and report the output.")
}
