//! Sessions of the older era: few enough, and nothing goes on in them for nobody.
//!
//! The library keeps a session for every `initialize` until it is deleted or has rested for long, and a session takes as
//! much memory as many tasks. Here is a most: one more ends the session that was used least recently, and its host, told
//! 404, greets anew as the protocol wants it. One with an open stream is never ended for another.
//!
//! In this era a connection that breaks does not cancel its request: the host may come back for the answer with the id of
//! the last event it saw, and an answer that is ready before it does is kept for it. If it does not come back in time, the
//! request is cancelled as if the host had said so. A wait is over then, and its result stays unread; tasks go on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use http::{Response, StatusCode};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, GetExtensions, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionHandle, LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::mpsc::Receiver;

use super::client_stream::{ClientStream, is_response};
use super::event_log::EventLog;
use super::gate::plain;
use super::session_table::{RequestKey, SessionCapacity, SessionTable};
use super::{Body, Bounds};

/// After how long a host whose connection broke is to come back.
const RECONNECT_DELAY: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Sessions {
    store: Arc<SessionStore>,
    max_sessions: usize,
    /// One is opened at a time, so that there is never one too many.
    opening: tokio::sync::Mutex<()>,
}

/// The library's sessions, and what we know of them.
#[derive(Debug)]
pub(super) struct SessionStore {
    library: LocalSessionManager,
    table: Mutex<SessionTable>,
    reconnect_window: Duration,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("all sessions are in use")]
    Full,
    #[error("there is no such stream, or no such event in it")]
    NoStream,
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(super) fn new(bounds: &Bounds) -> Sessions {
        let mut library = LocalSessionManager::default();
        library.session_config.keep_alive = Some(bounds.session_idle_timeout);
        // Whether a host can take such an event depends on the protocol it speaks.
        library.session_config.sse_retry = None;
        let come_back_within = bounds.reconnect_window;
        let ledger = Mutex::new(SessionTable::new(bounds.stored_response_bytes));
        let kept = SessionStore { library, table: ledger, reconnect_window: come_back_within };
        Sessions {
            store: Arc::new(kept),
            max_sessions: bounds.sessions,
            opening: tokio::sync::Mutex::default(),
        }
    }

    pub(super) async fn contains(&self, id: &str) -> bool {
        self.store.library.sessions.read().await.contains_key(id)
    }

    /// The library calls it an error of its own when there is no room for a session.
    pub(super) fn map_full_error(&self, response: Response<Body>) -> Response<Body> {
        let is_refused = response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && self.store.with_table(|ledger| ledger.capacity(self.max_sessions)) == SessionCapacity::Full;
        match is_refused {
            true => plain(StatusCode::SERVICE_UNAVAILABLE, "All sessions are in use; try again.\n"),
            false => response,
        }
    }
}

impl SessionStore {
    pub(super) fn with_table<R>(&self, act: impl FnOnce(&mut SessionTable) -> R) -> R {
        act(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn handle(&self, id: &SessionId) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let sessions = self.library.sessions.read().await;
        sessions.get(id).cloned().ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))
    }

    fn priming(&self, session: &SessionId) -> Option<Duration> {
        self.with_table(|ledger| ledger.takes_priming(session)).then_some(RECONNECT_DELAY)
    }

    /// Takes what the library says to a request, whether or not anybody listens.
    async fn collect_events(
        self: Arc<Self>,
        asked: RequestKey,
        told: Arc<EventLog>,
        mut messages: Receiver<ServerSseMessage>,
    ) {
        let mut is_answered = false;
        while let Some(event) = messages.recv().await {
            if is_response(&event) {
                is_answered = true;
                let bytes = event.message.as_ref().and_then(|message| serde_json::to_vec(message).ok());
                self.with_table(|ledger| ledger.store_response(&asked, bytes.map_or(0, |bytes| bytes.len())));
            }
            told.push(event);
        }
        if !is_answered {
            self.with_table(|ledger| ledger.remove_request(&asked));
        }
        told.end();
    }

    /// Forgets what was asked, and cancels it if it is not answered, unless somebody has come back for it.
    pub(super) async fn abandon_after_window(&self, asked: &RequestKey, listeners: u64) {
        tokio::time::sleep(self.reconnect_window).await;
        let Some(request) = self.with_table(|ledger| ledger.abandon(asked, listeners)) else { return };
        self.cancel(&asked.session, vec![request], "nobody listens").await;
    }

    async fn cancel(&self, session: &SessionId, requests: Vec<RequestId>, reason: &str) {
        let Ok(handle) = self.handle(session).await else { return };
        for request in requests {
            let params = CancelledNotificationParam::new(Some(request), Some(reason.to_owned()));
            let cancelled = ClientJsonRpcMessage::notification(CancelledNotification::new(params).into());
            // A session that ended meanwhile has ended its requests.
            let _ = handle.push_message(cancelled, None).await;
        }
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionsError> {
        let _alone = self.opening.lock().await;
        match self.store.with_table(|ledger| ledger.capacity(self.max_sessions)) {
            SessionCapacity::Free => {}
            SessionCapacity::Evict(session) => self.close_session(&session).await?,
            SessionCapacity::Full => return Err(SessionsError::Full),
        }
        let (id, transport) = self.store.library.create_session().await?;
        self.store.with_table(|ledger| ledger.insert_or_touch(&id));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        let answer = self.store.library.initialize_session(id, message).await?;
        self.store.with_table(|ledger| ledger.set_takes_priming(id, takes_priming(&answer)));
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        Ok(self.store.library.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        // The library would let requests go on for a while, in the hope that they end by themselves.
        let unanswered = self.store.with_table(|ledger| ledger.close(id));
        self.store.cancel(id, unanswered, "the session is over").await;
        Ok(self.store.library.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let handle = self.store.handle(id).await?;
        let stream = handle.establish_request_wise_channel().await.map_err(LocalSessionManagerError::from)?;
        let (Some(number), JsonRpcMessage::Request(request)) = (stream.http_request_id, &mut message) else {
            return Err(SessionsError::NoStream);
        };
        let asked = RequestKey { session: id.clone(), number };
        let told = Arc::new(EventLog::new(number, self.store.priming(id)));
        self.store
            .with_table(|ledger| ledger.open_request(asked.clone(), request.id.clone(), Arc::clone(&told)));
        request.request.extensions_mut().insert(told.listener_count());
        let attended = ClientStream::request(&self.store, asked.clone(), Arc::clone(&told), told.subscribe());
        tokio::spawn(Arc::clone(&self.store).collect_events(asked, told, stream.inner));
        handle.push_message(message, Some(number)).await.map_err(LocalSessionManagerError::from)?;
        Ok(attended)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        self.store.library.accept_message(id, message).await?;
        self.store.with_table(|ledger| ledger.touch(id));
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let handle = self.store.handle(id).await?;
        let stream = handle.establish_common_channel().await.map_err(LocalSessionManagerError::from)?;
        Ok(ClientStream::standalone(&self.store, id, stream.inner, self.store.priming(id)))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let Some((event, number)) = last_event_id.split_once('/') else {
            let handle = self.store.handle(id).await?;
            // The library would begin with the event that is named, and counts one less than we do.
            let last = last_event_id.parse().map_err(LocalSessionManagerError::from)?;
            let stream = handle.resume(last).await.map_err(LocalSessionManagerError::from)?;
            return Ok(ClientStream::standalone(&self.store, id, stream.inner, None));
        };
        let (Ok(event), Ok(number)) = (event.parse(), number.parse()) else {
            return Err(SessionsError::NoStream);
        };
        let asked = RequestKey { session: id.clone(), number };
        let told = self.store.with_table(|ledger| ledger.event_log(&asked)).ok_or(SessionsError::NoStream)?;
        let listening = told.resume(event).ok_or(SessionsError::NoStream)?;
        Ok(ClientStream::request(&self.store, asked, told, listening))
    }
}

/// Hosts of older protocols take every event for a message.
fn takes_priming(greeting: &ServerJsonRpcMessage) -> bool {
    let JsonRpcMessage::Response(response) = greeting else { return false };
    let ServerResult::InitializeResult(agreed) = &response.result else { return false };
    agreed.protocol_version >= ProtocolVersion::V_2025_11_25
}
