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

use super::attended::{Attended, is_answer};
use super::gate::plain;
use super::ledger::{Asked, Ledger, Room};
use super::told::Told;
use super::{Body, Bounds};

/// After how long a host whose connection broke is to come back.
const COME_BACK_AFTER: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Sessions {
    kept: Arc<Kept>,
    most: usize,
    /// One is opened at a time, so that there is never one too many.
    opening: tokio::sync::Mutex<()>,
}

/// The library's sessions, and what we know of them.
#[derive(Debug)]
pub(super) struct Kept {
    library: LocalSessionManager,
    ledger: Mutex<Ledger>,
    come_back_within: Duration,
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
        library.session_config.keep_alive = Some(bounds.session_may_rest);
        // Whether a host can take such an event depends on the protocol it speaks.
        library.session_config.sse_retry = None;
        let come_back_within = bounds.come_back_within;
        let ledger = Mutex::new(Ledger::new(bounds.answer_bytes));
        let kept = Kept { library, ledger, come_back_within };
        Sessions { kept: Arc::new(kept), most: bounds.sessions, opening: tokio::sync::Mutex::default() }
    }

    pub(super) async fn knows(&self, id: &str) -> bool {
        self.kept.library.sessions.read().await.contains_key(id)
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
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Ledger) -> R) -> R {
        act(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn handle(&self, id: &SessionId) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let sessions = self.library.sessions.read().await;
        sessions.get(id).cloned().ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))
    }

    fn priming(&self, session: &SessionId) -> Option<Duration> {
        self.with(|ledger| ledger.takes_priming(session)).then_some(COME_BACK_AFTER)
    }

    /// Takes what the library says to a request, whether or not anybody listens.
    async fn take(self: Arc<Self>, asked: Asked, told: Arc<Told>, mut messages: Receiver<ServerSseMessage>) {
        let mut is_answered = false;
        while let Some(event) = messages.recv().await {
            if is_answer(&event) {
                is_answered = true;
                let bytes = event.message.as_ref().and_then(|message| serde_json::to_vec(message).ok());
                self.with(|ledger| ledger.answered(&asked, bytes.map_or(0, |bytes| bytes.len())));
            }
            told.push(event);
        }
        if !is_answered {
            self.with(|ledger| ledger.dropped(&asked));
        }
        told.end();
    }

    /// Forgets what was asked, and cancels it if it is not answered, unless somebody has come back for it.
    pub(super) async fn give_up(&self, asked: &Asked, listeners: u64) {
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
        let answer = self.kept.library.initialize_session(id, message).await?;
        self.kept.with(|ledger| ledger.greeted(id, takes_priming(&answer)));
        Ok(answer)
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
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let handle = self.kept.handle(id).await?;
        let stream = handle.establish_request_wise_channel().await.map_err(LocalSessionManagerError::from)?;
        let (Some(number), JsonRpcMessage::Request(request)) = (stream.http_request_id, &mut message) else {
            return Err(SessionsError::NoStream);
        };
        let asked = Asked { session: id.clone(), number };
        let told = Arc::new(Told::new(number, self.kept.priming(id)));
        self.kept.with(|ledger| ledger.asked(asked.clone(), request.id.clone(), Arc::clone(&told)));
        request.request.extensions_mut().insert(told.audience());
        let attended = Attended::request(&self.kept, asked.clone(), Arc::clone(&told), told.listen());
        tokio::spawn(Arc::clone(&self.kept).take(asked, told, stream.inner));
        handle.push_message(message, Some(number)).await.map_err(LocalSessionManagerError::from)?;
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
        Ok(Attended::common(&self.kept, id, stream.inner, self.kept.priming(id)))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let Some((event, number)) = last_event_id.split_once('/') else {
            let handle = self.kept.handle(id).await?;
            // The library would begin with the event that is named, and counts one less than we do.
            let last = last_event_id.parse().map_err(LocalSessionManagerError::from)?;
            let stream = handle.resume(last).await.map_err(LocalSessionManagerError::from)?;
            return Ok(Attended::common(&self.kept, id, stream.inner, None));
        };
        let (Ok(event), Ok(number)) = (event.parse(), number.parse()) else {
            return Err(SessionsError::NoStream);
        };
        let asked = Asked { session: id.clone(), number };
        let told = self.kept.with(|ledger| ledger.told(&asked)).ok_or(SessionsError::NoStream)?;
        let listening = told.resume(event).ok_or(SessionsError::NoStream)?;
        Ok(Attended::request(&self.kept, asked, told, listening))
    }
}

/// Hosts of older protocols take every event for a message.
fn takes_priming(greeting: &ServerJsonRpcMessage) -> bool {
    let JsonRpcMessage::Response(response) = greeting else { return false };
    let ServerResult::InitializeResult(agreed) = &response.result else { return false };
    agreed.protocol_version >= ProtocolVersion::V_2025_11_25
}
