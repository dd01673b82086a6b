//! The server on standard input and output.
//!
//! A line is a message. One that is too long is dropped without being held, one that is no JSON is ignored, and the next
//! one is read as if nothing had been. The end of the input is the end of the server; tasks go on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use tokio::io::{Stdin, Stdout};
use tokio::sync::Notify;

use crate::fault::{AppError, ErrorCode};

/// The longest message that is taken: a task of 100,000 characters fits many times over.
const MAX_LINE: usize = 16 << 20;
/// How long calls that are still at work may hold up the end.
const LAST_ORDERS: Duration = Duration::from_secs(1);

/// Until the input ends.
pub fn serve(server: impl ServerHandler) -> Result<(), AppError> {
    let runtime = super::runtime()?;
    let served = runtime.block_on(async {
        let hung_up = Arc::new(Notify::new());
        let lines = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout())
            .with_max_line_length(MAX_LINE);
        let transport = Lines { lines, is_greeted: false, hung_up: Arc::clone(&hung_up) };
        let serving = async {
            match server.serve(transport).await {
                Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
                // Whoever connects and says nothing has not failed.
                Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        };
        tokio::select! {
            served = serving => served,
            () = async { hung_up.notified().await; tokio::time::sleep(LAST_ORDERS).await } => Ok(()),
        }
    });
    // What is stuck by now, a write to somebody who does not read for one, is not waited for.
    runtime.shutdown_background();
    served.map_err(|error| AppError::new(ErrorCode::IoError, format!("Serving ended: {error}.")))
}

/// Lines, with more patience at the beginning than the library has: it gives up when the first message is no request.
struct Lines {
    lines: AsyncRwTransport<RoleServer, Stdin, Stdout>,
    is_greeted: bool,
    /// Told at the end of the input, because the library then waits for calls that may take long.
    hung_up: Arc<Notify>,
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.lines.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.lines.receive().await else {
                self.hung_up.notify_one();
                return None;
            };
            self.is_greeted |= matches!(message, JsonRpcMessage::Request(_));
            if self.is_greeted {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.lines.close().await
    }
}
