//! The sessions of rmcp with our own table of them, and the event streams to their clients: collects the
//! events of requests, and cancels requests whose client is gone.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use rmcp::model::{CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionHandle, LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::Receiver;

use crate::mcp::transport::http::event_log::{EventLog, Subscription, is_response};
use crate::mcp::transport::http::session_table::SessionTable;

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
        log: Arc<EventLog>,
        mut messages: Receiver<ServerSseMessage>,
    ) {
        let mut has_response = false;
        while let Some(event) = messages.recv().await {
            if is_response(&event) {
                has_response = true;
                let bytes = event.message.as_ref().and_then(|message| serde_json::to_vec(message).ok());
                self.with_table(|table| table.store_response(&log, bytes.map_or(0, |bytes| bytes.len())));
            }
            log.push(event);
        }
        if !has_response {
            self.with_table(|table| table.remove_request(&log));
        }
        log.end();
    }

    /// After the reconnect window, drops a request without a connected client. If it has no response yet,
    /// cancels it.
    async fn abandon_after_window(self: Arc<Self>, log: Weak<EventLog>, opened: u64) {
        tokio::time::sleep(self.reconnect_window).await;
        let Some(log) = log.upgrade() else { return };
        if self.with_table(|table| table.abandon(&log, opened)) {
            self.cancel(&log.session, vec![log.request.clone()], "the client did not reconnect").await;
        }
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

/// An event stream to a client, for as long as its connection lives. Creating and dropping it updates the
/// session table.
#[derive(Debug)]
pub(super) struct ClientStream {
    store: Arc<SessionStore>,
    session: SessionId,
    source: StreamSource,
}

#[derive(Debug)]
enum StreamSource {
    Request {
        log: Arc<EventLog>,
        subscription: Subscription,
    },
    /// Messages that belong to no request.
    Standalone {
        priming: Option<ServerSseMessage>,
        messages: Receiver<ServerSseMessage>,
    },
}

impl ClientStream {
    pub(super) fn request(
        store: &Arc<SessionStore>,
        log: Arc<EventLog>,
        subscription: Subscription,
    ) -> ClientStream {
        ClientStream::new(store, &log.session.clone(), StreamSource::Request { log, subscription })
    }

    pub(super) fn standalone(
        store: &Arc<SessionStore>,
        session: &SessionId,
        messages: Receiver<ServerSseMessage>,
        priming: Option<Duration>,
    ) -> ClientStream {
        let priming = priming.map(|retry| ServerSseMessage::priming("0", retry));
        ClientStream::new(store, session, StreamSource::Standalone { priming, messages })
    }

    fn new(store: &Arc<SessionStore>, session: &SessionId, source: StreamSource) -> ClientStream {
        store.with_table(|table| table.add_streams(session, 1));
        ClientStream { store: Arc::clone(store), session: session.clone(), source }
    }
}

/// rmcp numbers from 0, but a client that has received nothing resumes with 0, so ours start at 1.
fn increment_event_id(mut event: ServerSseMessage) -> ServerSseMessage {
    let number = event.event_id.and_then(|id| id.parse::<u64>().ok());
    event.event_id = number.map(|number| (number + 1).to_string());
    event
}

impl Stream for ClientStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match &mut self.source {
            StreamSource::Request { log, subscription } => log.poll_next(subscription, context),
            StreamSource::Standalone { priming, messages } => match priming.take() {
                Some(priming) => Poll::Ready(Some(priming)),
                None => messages.poll_recv(context).map(|event| event.map(increment_event_id)),
            },
        }
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.store.with_table(|table| table.add_streams(&self.session, -1));
        let StreamSource::Request { log, .. } = &self.source else { return };
        // Without a runtime the server has ended.
        if let (Some(opened), Ok(runtime)) = (log.unsubscribe(), tokio::runtime::Handle::try_current()) {
            // Not the log itself: its memory is to be freed as soon as its response is evicted.
            runtime.spawn(Arc::clone(&self.store).abandon_after_window(Arc::downgrade(log), opened));
        }
    }
}
