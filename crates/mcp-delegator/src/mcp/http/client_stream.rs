//! A stream somebody listens to, while its connection lives.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::Receiver;

use super::event_log::{EventLog, Subscription};
use super::session_table::RequestKey;
use super::sessions::SessionStore;

#[derive(Debug)]
pub(super) struct ClientStream {
    store: Arc<SessionStore>,
    session: SessionId,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// What belongs to a request.
    Request { key: RequestKey, log: Arc<EventLog>, subscription: Subscription },
    /// What belongs to none.
    Standalone { priming: Option<ServerSseMessage>, messages: Receiver<ServerSseMessage> },
}

pub(super) fn is_response(event: &ServerSseMessage) -> bool {
    matches!(event.message.as_deref(), Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))
}

impl ClientStream {
    pub(super) fn request(
        kept: &Arc<SessionStore>,
        asked: RequestKey,
        told: Arc<EventLog>,
        listening: Subscription,
    ) -> ClientStream {
        let session = asked.session.clone();
        ClientStream::new(kept, session, Source::Request { key: asked, log: told, subscription: listening })
    }

    pub(super) fn standalone(
        kept: &Arc<SessionStore>,
        session: &SessionId,
        messages: Receiver<ServerSseMessage>,
        priming: Option<Duration>,
    ) -> ClientStream {
        let priming = priming.map(|retry| ServerSseMessage::priming("0", retry));
        ClientStream::new(kept, session.clone(), Source::Standalone { priming, messages })
    }

    fn new(kept: &Arc<SessionStore>, session: SessionId, source: Source) -> ClientStream {
        kept.with_table(|ledger| ledger.add_stream(&session, source.request_key()));
        if let Source::Request { log: told, .. } = &source {
            told.add_listener();
        }
        ClientStream { store: Arc::clone(kept), session, source }
    }
}

impl Source {
    fn request_key(&self) -> Option<&RequestKey> {
        match self {
            Source::Request { key: asked, .. } => Some(asked),
            Source::Standalone { .. } => None,
        }
    }
}

/// The library counts from 0, which is what a host has heard that has heard nothing.
fn increment_event_id(event: ServerSseMessage) -> ServerSseMessage {
    let number = event.event_id.as_deref().and_then(|id| id.parse::<u64>().ok());
    let mut event = event;
    event.event_id = number.map(|number| (number + 1).to_string());
    event
}

impl Stream for ClientStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let ClientStream { store: kept, source, .. } = &mut *self;
        match source {
            Source::Request { key: asked, log: told, subscription: listening } => {
                let event = ready!(told.poll_next(listening, context));
                if event.as_ref().is_some_and(is_response) {
                    kept.with_table(|ledger| ledger.mark_delivered(asked));
                }
                Poll::Ready(event)
            }
            Source::Standalone { priming, messages } => match priming.take() {
                Some(priming) => Poll::Ready(Some(priming)),
                None => messages.poll_recv(context).map(|event| event.map(increment_event_id)),
            },
        }
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if let Source::Request { log: told, .. } = &self.source {
            told.remove_listener();
        }
        let asked = self.source.request_key();
        let left = self.store.with_table(|ledger| ledger.remove_stream(&self.session, asked));
        // Without a runtime there is no server any more.
        if let (Some(listeners), Some(asked), Ok(runtime)) =
            (left, asked.cloned(), tokio::runtime::Handle::try_current())
        {
            let kept = Arc::clone(&self.store);
            runtime.spawn(async move { kept.abandon_after_window(&asked, listeners).await });
        }
    }
}
