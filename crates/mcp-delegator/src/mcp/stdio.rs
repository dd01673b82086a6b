//! The server on standard input and output.
//!
//! A line is a message. One that is too long is dropped without being held, one that is no JSON is ignored, and the next
//! one is read as if nothing had been. The end of the input is the end of the server; tasks go on.

use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;

use super::server::Server;
use crate::fault::{AppError, ErrorCode};

/// The longest message that is taken: a task of 100,000 characters fits many times over.
const MAX_LINE: usize = 16 << 20;
/// How long calls that are still at work may hold up the end.
const LAST_ORDERS: Duration = Duration::from_millis(500);

/// Until the input ends.
pub fn serve(server: Server) -> Result<(), AppError> {
    let runtime = super::runtime()?;
    let served = runtime.block_on(async {
        let transport = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout())
            .with_max_line_length(MAX_LINE);
        match server.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            // Whoever connects and says nothing has not failed.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    runtime.shutdown_timeout(LAST_ORDERS);
    served.map_err(|error| AppError::new(ErrorCode::IoError, format!("Serving ended: {error}.")))
}
