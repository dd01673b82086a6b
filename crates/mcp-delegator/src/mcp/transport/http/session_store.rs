//! The sessions of rmcp with our own table of them: collects the events of requests, and cancels requests
//! whose client is gone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionHandle, LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::Receiver;

use crate::mcp::transport::http::event_log::{EventLog, is_response};
use crate::mcp::transport::http::session_table::{RequestKey, SessionTable};

/// The retry delay sent to clients: how long to wait before they reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct SessionStore {
    pub(super) library: LocalSessionManager,
    pub(super) table: Mutex<SessionTable>,
    pub(super) reconnect_window: Duration,
}

impl SessionStore {
    pub(super) fn with_table<R>(&self, act: impl FnOnce(&mut SessionTable) -> R) -> R {
        act(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn handle(
        &self,
        id: &SessionId,
    ) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let sessions = self.library.sessions.read().await;
        sessions.get(id).cloned().ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))
    }

    pub(super) fn priming(&self, session: &SessionId) -> Option<Duration> {
        self.with_table(|table| table.takes_priming(session)).then_some(RECONNECT_DELAY)
    }

    /// Moves the events of a request from rmcp into its event log, whether or not a client is connected.
    pub(super) async fn collect_events(
        self: Arc<Self>,
        key: RequestKey,
        log: Arc<EventLog>,
        mut messages: Receiver<ServerSseMessage>,
    ) {
        let mut has_response = false;
        while let Some(event) = messages.recv().await {
            if is_response(&event) {
                has_response = true;
                let bytes = event.message.as_ref().and_then(|message| serde_json::to_vec(message).ok());
                self.with_table(|table| table.store_response(&key, bytes.map_or(0, |bytes| bytes.len())));
            }
            log.push(event);
        }
        if !has_response {
            self.with_table(|table| table.remove_request(&key));
        }
        log.end();
    }

    /// After the reconnect window, drops a request without a connected client. If it has no response yet,
    /// cancels it.
    pub(super) async fn abandon_after_window(&self, key: &RequestKey, streams_opened: u64) {
        tokio::time::sleep(self.reconnect_window).await;
        let Some(request) = self.with_table(|table| table.abandon(key, streams_opened)) else { return };
        self.cancel(&key.session, vec![request], "the client did not reconnect").await;
    }

    pub(super) async fn cancel(&self, session: &SessionId, requests: Vec<RequestId>, reason: &str) {
        let Ok(handle) = self.handle(session).await else { return };
        for request in requests {
            let params = CancelledNotificationParam::new(Some(request), Some(reason.to_owned()));
            let cancelled = ClientJsonRpcMessage::notification(CancelledNotification::new(params).into());
            // If the session has ended meanwhile, so have its requests.
            let _ = handle.push_message(cancelled, None).await;
        }
    }
}
