//! Sessions of protocols before 2026-07-28: bounded in number, and no request runs on without a client.
//!
//! rmcp holds a session for every `initialize` until it is deleted or idle for long, and a session takes as
//! much memory as many tasks. So their number is limited: one more session evicts the least recently used
//! one. Its client gets 404 and initializes again, as the protocol demands. A session with an open stream is
//! never evicted.
//!
//! In these protocols a broken connection does not cancel its request: the client may reconnect with the id
//! of the last event it received, and a response that is ready meanwhile is stored for it. If the client does
//! not reconnect in time, the request is cancelled as if the client had cancelled it. A wait ends then, and
//! its result stays unread; tasks continue.

use std::sync::{Arc, Mutex};

use futures_core::Stream;
use http::{Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use crate::mcp::transport::http::bounds::Bounds;
use crate::mcp::transport::http::event_log::EventLog;
use crate::mcp::transport::http::responses::{Body, PlainResponse};
use crate::mcp::transport::http::session_store::{ClientStream, SessionStore};
use crate::mcp::transport::http::session_table::{SessionCapacity, SessionTable};

#[derive(Debug)]
pub(super) struct Sessions {
    store: Arc<SessionStore>,
    max_sessions: usize,
    /// Sessions are opened one at a time, so that their number never exceeds the limit.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("all sessions are in use")]
    Full,
    #[error("unknown stream or event id")]
    NoStream,
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(super) fn new(bounds: &Bounds) -> Sessions {
        let mut library = LocalSessionManager::default();
        library.session_config.keep_alive = Some(bounds.session_idle_timeout);
        // Whether a client understands the retry event depends on its protocol version.
        library.session_config.sse_retry = None;
        let reconnect_window = bounds.reconnect_window;
        let table = Mutex::new(SessionTable::new(bounds.stored_response_bytes));
        let store = SessionStore { library, table, reconnect_window };
        Sessions {
            store: Arc::new(store),
            max_sessions: bounds.sessions,
            opening: tokio::sync::Mutex::default(),
        }
    }

    pub(super) async fn contains(&self, id: &str) -> bool {
        self.store.library.sessions.read().await.contains_key(id)
    }

    /// rmcp responds 500 when `create_session` fails; if the reason is the session limit, it becomes 503.
    pub(super) fn map_full_error(&self, response: Response<Body>) -> Response<Body> {
        let is_full = response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && self.store.with_table(|table| table.capacity(self.max_sessions)) == SessionCapacity::Full;
        if is_full {
            PlainResponse::new(StatusCode::SERVICE_UNAVAILABLE, "All sessions are in use; try again.\n")
                .into()
        } else {
            response
        }
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionsError> {
        let _guard = self.opening.lock().await;
        match self.store.with_table(|table| table.capacity(self.max_sessions)) {
            SessionCapacity::Free => {}
            SessionCapacity::Evict(session) => self.close_session(&session).await?,
            SessionCapacity::Full => return Err(SessionsError::Full),
        }
        let (id, transport) = self.store.library.create_session().await?;
        self.store.with_table(|table| table.insert(&id));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        let response = self.store.library.initialize_session(id, message).await?;
        self.store.with_table(|table| table.set_takes_priming(id, takes_priming(&response)));
        Ok(response)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        Ok(self.store.library.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        // Without this, rmcp would let the requests run on for a while.
        let unanswered = self.store.with_table(|table| table.close(id));
        self.store.cancel(id, unanswered, "the session ended").await;
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
        let log = Arc::new(EventLog::new(id, number, &request.id, self.store.priming(id)));
        self.store.with_table(|table| table.open_request(&log));
        request.request.extensions_mut().insert(log.listener_count());
        let client_stream = ClientStream::request(&self.store, Arc::clone(&log), log.subscribe());
        tokio::spawn(Arc::clone(&self.store).collect_events(log, stream.inner));
        handle.push_message(message, Some(number)).await.map_err(LocalSessionManagerError::from)?;
        Ok(client_stream)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        self.store.library.accept_message(id, message).await?;
        self.store.with_table(|table| table.touch(id));
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
            // rmcp resumes with the named event itself, and its ids are one lower than ours, so the id needs
            // no conversion.
            let last = last_event_id.parse().map_err(LocalSessionManagerError::from)?;
            let stream = handle.resume(last).await.map_err(LocalSessionManagerError::from)?;
            return Ok(ClientStream::standalone(&self.store, id, stream.inner, None));
        };
        let (Ok(event), Ok(number)) = (event.parse(), number.parse()) else {
            return Err(SessionsError::NoStream);
        };
        let log =
            self.store.with_table(|table| table.event_log(id, number)).ok_or(SessionsError::NoStream)?;
        let subscription = log.resume(event).ok_or(SessionsError::NoStream)?;
        Ok(ClientStream::request(&self.store, log, subscription))
    }
}

/// Clients of older protocols parse every event as a message, and would fail on an empty one.
fn takes_priming(response: &ServerJsonRpcMessage) -> bool {
    let JsonRpcMessage::Response(response) = response else { return false };
    let ServerResult::InitializeResult(result) = &response.result else { return false };
    result.protocol_version >= ProtocolVersion::V_2025_11_25
}
