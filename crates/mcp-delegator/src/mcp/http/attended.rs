//! A stream somebody listens to, while its connection lives.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::Receiver;

use super::ledger::Asked;
use super::sessions::Kept;
use super::told::{Listening, Told};

#[derive(Debug)]
pub(super) struct Attended {
    kept: Arc<Kept>,
    session: SessionId,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// What belongs to a request.
    Request { asked: Asked, told: Arc<Told>, listening: Listening },
    /// What belongs to none.
    Common { priming: Option<ServerSseMessage>, messages: Receiver<ServerSseMessage> },
}

pub(super) fn is_answer(event: &ServerSseMessage) -> bool {
    matches!(event.message.as_deref(), Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))
}

impl Attended {
    pub(super) fn request(kept: &Arc<Kept>, asked: Asked, told: Arc<Told>, listening: Listening) -> Attended {
        let session = asked.session.clone();
        Attended::new(kept, session, Source::Request { asked, told, listening })
    }

    pub(super) fn common(
        kept: &Arc<Kept>,
        session: &SessionId,
        messages: Receiver<ServerSseMessage>,
        priming: Option<Duration>,
    ) -> Attended {
        let priming = priming.map(|retry| ServerSseMessage::priming("0", retry));
        Attended::new(kept, session.clone(), Source::Common { priming, messages })
    }

    fn new(kept: &Arc<Kept>, session: SessionId, source: Source) -> Attended {
        kept.with(|ledger| ledger.began(&session, source.asked()));
        if let Source::Request { told, .. } = &source {
            told.began();
        }
        Attended { kept: Arc::clone(kept), session, source }
    }
}

impl Source {
    fn asked(&self) -> Option<&Asked> {
        match self {
            Source::Request { asked, .. } => Some(asked),
            Source::Common { .. } => None,
        }
    }
}

/// The library counts from 0, which is what a host has heard that has heard nothing.
fn one_higher(event: ServerSseMessage) -> ServerSseMessage {
    let number = event.event_id.as_deref().and_then(|id| id.parse::<u64>().ok());
    let mut event = event;
    event.event_id = number.map(|number| (number + 1).to_string());
    event
}

impl Stream for Attended {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let Attended { kept, source, .. } = &mut *self;
        match source {
            Source::Request { asked, told, listening } => {
                let event = ready!(told.poll_next(listening, context));
                if event.as_ref().is_some_and(is_answer) {
                    kept.with(|ledger| ledger.taken(asked));
                }
                Poll::Ready(event)
            }
            Source::Common { priming, messages } => match priming.take() {
                Some(priming) => Poll::Ready(Some(priming)),
                None => messages.poll_recv(context).map(|event| event.map(one_higher)),
            },
        }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if let Source::Request { told, .. } = &self.source {
            told.ended();
        }
        let asked = self.source.asked();
        let left = self.kept.with(|ledger| ledger.ended(&self.session, asked));
        // Without a runtime there is no server any more.
        if let (Some(listeners), Some(asked), Ok(runtime)) =
            (left, asked.cloned(), tokio::runtime::Handle::try_current())
        {
            let kept = Arc::clone(&self.kept);
            runtime.spawn(async move { kept.give_up(&asked, listeners).await });
        }
    }
}
