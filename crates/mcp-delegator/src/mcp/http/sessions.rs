//! Sessions of the older era: few enough, and nothing goes on in them for nobody.
//!
//! The library keeps a session for every `initialize` until it is deleted or has rested for long, and a session takes as
//! much memory as many tasks. Here is a most: one more ends the session that was used least recently, and its host, told
//! 404, greets anew as the protocol wants it. One with an open stream is never ended for another.
//!
//! In this era a connection that breaks does not cancel its request: the host may come back for the answer with the id of
//! the last event it saw. If it does not come back in time, the request is cancelled as if the host had said so. A wait is
//! over then, and its result stays unread; tasks go on.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use http::{Response, StatusCode};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionHandle, LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
    StreamableHttpMessageReceiver,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::mpsc::Receiver;

use super::gate::plain;
use super::ledger::{Asked, Ledger, Room};
use super::{Body, Bounds};

#[derive(Debug)]
pub(super) struct Sessions {
    kept: Arc<Kept>,
    most: usize,
    /// One is opened at a time, so that there is never one too many.
    opening: tokio::sync::Mutex<()>,
}

/// The library's sessions, and what we know of them.
#[derive(Debug)]
struct Kept {
    library: LocalSessionManager,
    ledger: Mutex<Ledger>,
    come_back_within: Duration,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("all sessions are in use")]
    Full,
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(super) fn new(bounds: &Bounds) -> Sessions {
        let mut library = LocalSessionManager::default();
        library.session_config.keep_alive = Some(bounds.session_may_rest);
        let come_back_within = bounds.come_back_within;
        let kept = Kept { library, ledger: Mutex::default(), come_back_within };
        Sessions { kept: Arc::new(kept), most: bounds.sessions, opening: tokio::sync::Mutex::default() }
    }

    /// The library calls it an error of its own when there is no room for a session.
    pub(super) fn refusals_told(&self, response: Response<Body>) -> Response<Body> {
        let is_refused = response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && self.kept.with(|ledger| ledger.room(self.most)) == Room::None;
        match is_refused {
            true => plain(StatusCode::SERVICE_UNAVAILABLE, "All sessions are in use; try again.\n"),
            false => response,
        }
    }
}

impl Kept {
    fn with<R>(&self, act: impl FnOnce(&mut Ledger) -> R) -> R {
        act(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn handle(&self, id: &SessionId) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let sessions = self.library.sessions.read().await;
        sessions.get(id).cloned().ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))
    }

    /// A stream somebody listens to, from now on.
    fn attended(self: &Arc<Self>, session: &SessionId, stream: StreamableHttpMessageReceiver) -> Attended {
        let asked = stream.http_request_id.map(|number| Asked { session: session.clone(), number });
        self.with(|ledger| ledger.began(session, asked.as_ref()));
        Attended { kept: Arc::clone(self), session: session.clone(), asked, messages: stream.inner }
    }

    /// Cancels what was asked, unless somebody has come back for it.
    async fn give_up(&self, asked: &Asked, listeners: u64) {
        tokio::time::sleep(self.come_back_within).await;
        let Some(request) = self.with(|ledger| ledger.given_up(asked, listeners)) else { return };
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
        match self.kept.with(|ledger| ledger.room(self.most)) {
            Room::Free => {}
            Room::InsteadOf(session) => self.close_session(&session).await?,
            Room::None => return Err(SessionsError::Full),
        }
        let (id, transport) = self.kept.library.create_session().await?;
        self.kept.with(|ledger| ledger.used(&id));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        Ok(self.kept.library.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        Ok(self.kept.library.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        // The library would let requests go on for a while, in the hope that they end by themselves.
        let unanswered = self.kept.with(|ledger| ledger.closed(id));
        self.kept.cancel(id, unanswered, "the session is over").await;
        Ok(self.kept.library.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let handle = self.kept.handle(id).await?;
        let stream = handle.establish_request_wise_channel().await.map_err(LocalSessionManagerError::from)?;
        let number = stream.http_request_id;
        if let (Some(number), JsonRpcMessage::Request(request)) = (number, &message) {
            let asked = Asked { session: id.clone(), number };
            self.kept.with(|ledger| ledger.asked(asked, request.id.clone()));
        }
        let attended = self.kept.attended(id, stream);
        handle.push_message(message, number).await.map_err(LocalSessionManagerError::from)?;
        Ok(attended)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        self.kept.library.accept_message(id, message).await?;
        self.kept.with(|ledger| ledger.touched(id));
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let handle = self.kept.handle(id).await?;
        let stream = handle.establish_common_channel().await.map_err(LocalSessionManagerError::from)?;
        Ok(self.kept.attended(id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let handle = self.kept.handle(id).await?;
        let last = last_event_id.parse().map_err(LocalSessionManagerError::from)?;
        let stream = handle.resume(last).await.map_err(LocalSessionManagerError::from)?;
        Ok(self.kept.attended(id, stream))
    }
}

/// The messages of one stream, while its connection lives.
#[derive(Debug)]
struct Attended {
    kept: Arc<Kept>,
    session: SessionId,
    asked: Option<Asked>,
    messages: Receiver<ServerSseMessage>,
}

impl Stream for Attended {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let next = self.messages.poll_recv(context);
        if let (Poll::Ready(Some(event)), Some(asked)) = (&next, &self.asked) {
            let message = event.message.as_deref();
            if matches!(message, Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))) {
                self.kept.with(|ledger| ledger.answered(asked));
            }
        }
        next
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        let left = self.kept.with(|ledger| ledger.ended(&self.session, self.asked.as_ref()));
        // Without a runtime there is no server any more.
        if let (Some(listeners), Some(asked), Ok(runtime)) =
            (left, self.asked.take(), tokio::runtime::Handle::try_current())
        {
            let kept = Arc::clone(&self.kept);
            runtime.spawn(async move { kept.give_up(&asked, listeners).await });
        }
    }
}
