//! The events of one request, retained so that a client that reconnects gets those it has missed.
//!
//! rmcp drops a stream together with its response. So all its events are moved here at once, and clients read
//! from here. Events are numbered; an event id consists of the number and the stream. A client that resumes
//! with an id gets the events after it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::watch;

use crate::mcp::transport::listeners::ListenerCount;

/// More than occur while a client reconnects. The response is the last event, so it is never the one that is
/// dropped.
const MAX_EVENTS: usize = 64;

#[derive(Debug)]
pub(super) struct EventLog {
    pub(super) session: SessionId,
    /// The number of the stream in its session.
    pub(super) stream: u64,
    pub(super) request: RequestId,
    inner: Mutex<Inner>,
    /// The number of connections that read this log.
    listeners: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The latest events, with consecutive numbers.
    events: VecDeque<ServerSseMessage>,
    /// The number of the next event.
    next: u64,
    is_over: bool,
    /// The latest subscription. Only it gets events, so that a broken connection that is not yet detected
    /// takes none.
    current_listener: u64,
    waker: Option<Waker>,
    response: Option<StoredResponse>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredResponse {
    pub(super) order: u64,
    pub(super) bytes: usize,
    /// Written to a connection. Whether it arrived is unknown, but the client is less likely to resume for
    /// it.
    pub(super) is_delivered: bool,
}

/// A reader of the log, and its position.
#[derive(Debug)]
pub(super) struct Subscription {
    listener: u64,
    next_event: u64,
}

pub(super) fn is_response(event: &ServerSseMessage) -> bool {
    matches!(event.message.as_deref(), Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))
}

impl EventLog {
    /// With `priming`, event 0 carries only an id to resume with and the retry delay.
    pub(super) fn new(
        session: &SessionId,
        stream: u64,
        request: &RequestId,
        priming: Option<Duration>,
    ) -> EventLog {
        let (session, request) = (session.clone(), request.clone());
        let (inner, listeners) = (Mutex::default(), watch::Sender::default());
        let log = EventLog { session, stream, request, inner, listeners };
        match priming {
            Some(retry) => log.push(ServerSseMessage::retry(retry)),
            None => log.with(|inner| inner.next = 1),
        }
        log
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn listener_count(&self) -> ListenerCount {
        ListenerCount(self.listeners.subscribe())
    }

    /// Whether no connection is open, and only so many were opened. A client that reconnects and disconnects
    /// again gets a new reconnect window.
    pub(super) fn is_abandoned_since(&self, opened: u64) -> bool {
        self.with(|inner| *self.listeners.borrow() == 0 && inner.current_listener == opened)
    }

    pub(super) fn response(&self) -> Option<StoredResponse> {
        self.with(|inner| inner.response)
    }

    pub(super) fn set_response(&self, response: StoredResponse) {
        self.with(|inner| inner.response = Some(response));
    }

    pub(super) fn push(&self, mut event: ServerSseMessage) {
        self.with(|inner| {
            event.event_id = Some(format!("{}/{}", inner.next, self.stream));
            inner.next += 1;
            inner.events.push_back(event);
            if inner.events.len() > MAX_EVENTS {
                inner.events.pop_front();
            }
            inner.wake();
        });
    }

    pub(super) fn end(&self) {
        self.with(|inner| {
            inner.is_over = true;
            inner.wake();
        });
    }

    /// Opens a connection that reads from the beginning.
    pub(super) fn subscribe(&self) -> Subscription {
        self.subscribe_from(0)
    }

    /// Opens a connection that reads from the event after this number. `None`: there is no such event.
    pub(super) fn resume(&self, event: u64) -> Option<Subscription> {
        let exists = self.with(|inner| event < inner.next);
        exists.then(|| self.subscribe_from(event + 1))
    }

    fn subscribe_from(&self, next_event: u64) -> Subscription {
        self.with(|inner| {
            self.listeners.send_modify(|listeners| *listeners += 1);
            inner.current_listener += 1;
            inner.wake();
            Subscription { listener: inner.current_listener, next_event }
        })
    }

    /// A connection was closed. If it was the last, returns how many were opened, for
    /// [`EventLog::is_abandoned_since`].
    pub(super) fn unsubscribe(&self) -> Option<u64> {
        self.with(|inner| {
            self.listeners.send_modify(|listeners| *listeners = listeners.saturating_sub(1));
            (*self.listeners.borrow() == 0).then_some(inner.current_listener)
        })
    }

    pub(super) fn poll_next(
        &self,
        subscription: &mut Subscription,
        context: &Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        self.with(|inner| {
            if subscription.listener != inner.current_listener {
                return Poll::Ready(None);
            }
            let first = inner.next - inner.events.len() as u64;
            let index = subscription.next_event.saturating_sub(first);
            match usize::try_from(index).ok().and_then(|index| inner.events.get(index)) {
                Some(event) => {
                    subscription.next_event = first + index + 1;
                    if is_response(event) {
                        inner.response.iter_mut().for_each(|response| response.is_delivered = true);
                    }
                    Poll::Ready(Some(event.clone()))
                }
                None if inner.is_over => Poll::Ready(None),
                None => {
                    inner.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Inner {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Duration = Duration::from_secs(3);

    fn event_log(priming: Option<Duration>) -> EventLog {
        EventLog::new(&"a".into(), 7, &RequestId::Number(1), priming)
    }

    fn drain(log: &EventLog, subscription: &mut Subscription) -> (Vec<String>, bool) {
        let context = Context::from_waker(Waker::noop());
        let mut ids = Vec::new();
        loop {
            match log.poll_next(subscription, &context) {
                Poll::Ready(Some(event)) => ids.push(event.event_id.unwrap()),
                Poll::Ready(None) => return (ids, true),
                Poll::Pending => return (ids, false),
            }
        }
    }

    #[test]
    fn resuming_client_gets_the_events_after_its_last_one() {
        let log = event_log(Some(RETRY));
        let mut first = log.subscribe();
        log.push(ServerSseMessage::default());
        assert_eq!(drain(&log, &mut first), (vec!["0/7".to_owned(), "1/7".to_owned()], false));
        log.push(ServerSseMessage::default());
        log.end();
        let mut second = log.resume(1).unwrap();
        assert_eq!(drain(&log, &mut first), (vec![], true), "no event is sent twice");
        assert_eq!(drain(&log, &mut second), (vec!["2/7".to_owned()], true));
        assert!(log.resume(3).is_none(), "there was no such event");
    }

    #[test]
    fn without_priming_the_first_message_has_number_1() {
        let log = event_log(None);
        let mut subscription = log.subscribe();
        log.push(ServerSseMessage::default());
        assert_eq!(drain(&log, &mut subscription), (vec!["1/7".to_owned()], false));
    }

    #[test]
    fn oldest_events_are_dropped() {
        let log = event_log(Some(RETRY));
        (0..100).for_each(|_| log.push(ServerSseMessage::default()));
        let mut subscription = log.resume(3).unwrap();
        let (ids, _) = drain(&log, &mut subscription);
        assert_eq!((ids.len(), ids.last().unwrap().as_str()), (MAX_EVENTS, "100/7"));
    }
}
