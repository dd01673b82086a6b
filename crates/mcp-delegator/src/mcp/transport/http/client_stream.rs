//! An event stream to a client, for as long as its connection lives. Creating and dropping it updates the
//! session table.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::Receiver;

use crate::mcp::transport::http::event_log::{EventLog, Subscription, is_response};
use crate::mcp::transport::http::session_store::SessionStore;
use crate::mcp::transport::http::session_table::RequestKey;

#[derive(Debug)]
pub(super) struct ClientStream {
    store: Arc<SessionStore>,
    session: SessionId,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The events of one request.
    Request { key: RequestKey, log: Arc<EventLog>, subscription: Subscription },
    /// Messages that belong to no request.
    Standalone { priming: Option<ServerSseMessage>, messages: Receiver<ServerSseMessage> },
}

impl ClientStream {
    pub(super) fn request(
        store: &Arc<SessionStore>,
        key: RequestKey,
        log: Arc<EventLog>,
        subscription: Subscription,
    ) -> ClientStream {
        let session = key.session.clone();
        ClientStream::new(store, session, Source::Request { key, log, subscription })
    }

    pub(super) fn standalone(
        store: &Arc<SessionStore>,
        session: &SessionId,
        messages: Receiver<ServerSseMessage>,
        priming: Option<Duration>,
    ) -> ClientStream {
        let priming = priming.map(|retry| ServerSseMessage::priming("0", retry));
        ClientStream::new(store, session.clone(), Source::Standalone { priming, messages })
    }

    fn new(store: &Arc<SessionStore>, session: SessionId, source: Source) -> ClientStream {
        store.with_table(|table| table.add_stream(&session, source.request_key()));
        if let Source::Request { log, .. } = &source {
            log.add_listener();
        }
        ClientStream { store: Arc::clone(store), session, source }
    }
}

impl Source {
    fn request_key(&self) -> Option<&RequestKey> {
        match self {
            Source::Request { key, .. } => Some(key),
            Source::Standalone { .. } => None,
        }
    }
}

/// rmcp numbers from 0, but a client that has received nothing resumes with 0, so ours start at 1.
fn increment_event_id(event: ServerSseMessage) -> ServerSseMessage {
    let number = event.event_id.as_deref().and_then(|id| id.parse::<u64>().ok());
    let mut event = event;
    event.event_id = number.map(|number| (number + 1).to_string());
    event
}

impl Stream for ClientStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let ClientStream { store, source, .. } = &mut *self;
        match source {
            Source::Request { key, log, subscription } => {
                let event = ready!(log.poll_next(subscription, context));
                if event.as_ref().is_some_and(is_response) {
                    store.with_table(|table| table.mark_delivered(key));
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
        if let Source::Request { log, .. } = &self.source {
            log.remove_listener();
        }
        let key = self.source.request_key();
        let abandoned = self.store.with_table(|table| table.remove_stream(&self.session, key));
        // Without a runtime the server has ended.
        if let (Some(streams_opened), Some(key), Ok(runtime)) =
            (abandoned, key.cloned(), tokio::runtime::Handle::try_current())
        {
            let store = Arc::clone(&self.store);
            runtime.spawn(async move { store.abandon_after_window(&key, streams_opened).await });
        }
    }
}
