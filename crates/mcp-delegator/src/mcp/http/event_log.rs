//! What was told on the stream of one request, kept so that a host whose connection broke hears the rest when it comes back.
//!
//! The library forgets a stream with its answer. So everything it says there is taken from it at once, and whoever listens
//! is told from here. Events are numbered; the id of one names its number and its stream, and a host that comes back with
//! it is told what came after it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::watch;

use crate::mcp::listeners::ListenerCount;

/// More than are told while somebody is away. The answer is the last one, so it is never the one that is forgotten.
const MAX_EVENTS: usize = 64;

#[derive(Debug)]
pub(super) struct EventLog {
    stream: u64,
    inner: Mutex<Inner>,
    listeners: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The latest, each numbered one higher than the one before it.
    events: VecDeque<ServerSseMessage>,
    /// The number of the next one.
    next: u64,
    is_over: bool,
    /// Who came last. Nothing is told twice, so a connection that is broken and not yet known to be hears no more.
    current_listener: u64,
    waker: Option<Waker>,
}

/// One who listens, and what it wants to hear next.
#[derive(Debug)]
pub(super) struct Subscription {
    listener: u64,
    next_event: u64,
}

impl EventLog {
    /// The event of the number 0 only says what to come back with, and after how long.
    pub(super) fn new(stream: u64, priming: Option<Duration>) -> EventLog {
        let told = EventLog { stream, inner: Mutex::default(), listeners: watch::Sender::default() };
        match priming {
            Some(retry) => told.push(ServerSseMessage::retry(retry)),
            None => told.with(|inner| inner.next = 1),
        }
        told
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn listener_count(&self) -> ListenerCount {
        ListenerCount(self.listeners.subscribe())
    }

    /// One more connection lives on which this is heard.
    pub(super) fn add_listener(&self) {
        self.listeners.send_modify(|listeners| *listeners += 1);
    }

    pub(super) fn remove_listener(&self) {
        self.listeners.send_modify(|listeners| *listeners = listeners.saturating_sub(1));
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

    /// Nothing else will be told.
    pub(super) fn end(&self) {
        self.with(|inner| {
            inner.is_over = true;
            inner.wake();
        });
    }

    /// From the beginning.
    pub(super) fn subscribe(&self) -> Subscription {
        self.with(|inner| inner.subscribe_from(0))
    }

    /// From what came after the event of this number. `None`: there was no such event.
    pub(super) fn resume(&self, event: u64) -> Option<Subscription> {
        self.with(|inner| (event < inner.next).then(|| inner.subscribe_from(event + 1)))
    }

    pub(super) fn poll_next(
        &self,
        listening: &mut Subscription,
        context: &Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        self.with(|inner| {
            if listening.listener != inner.current_listener {
                return Poll::Ready(None);
            }
            let first = inner.next - inner.events.len() as u64;
            let place = listening.next_event.saturating_sub(first);
            match usize::try_from(place).ok().and_then(|place| inner.events.get(place)) {
                Some(event) => {
                    listening.next_event = first + place + 1;
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
    fn subscribe_from(&mut self, wants: u64) -> Subscription {
        self.current_listener += 1;
        self.wake();
        Subscription { listener: self.current_listener, next_event: wants }
    }

    fn wake(&mut self) {
        if let Some(waiting) = self.waker.take() {
            waiting.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Duration = Duration::from_secs(3);

    fn drain(told: &EventLog, listening: &mut Subscription) -> (Vec<String>, bool) {
        let context = Context::from_waker(Waker::noop());
        let mut ids = Vec::new();
        loop {
            match told.poll_next(listening, &context) {
                Poll::Ready(Some(event)) => ids.push(event.event_id.unwrap()),
                Poll::Ready(None) => return (ids, true),
                Poll::Pending => return (ids, false),
            }
        }
    }

    #[test]
    fn resuming_client_gets_the_events_after_its_last_one() {
        let told = EventLog::new(7, Some(RETRY));
        let mut first = told.subscribe();
        told.push(ServerSseMessage::default());
        assert_eq!(drain(&told, &mut first), (vec!["0/7".to_owned(), "1/7".to_owned()], false));
        told.push(ServerSseMessage::default());
        told.end();
        let mut second = told.resume(1).unwrap();
        assert_eq!(drain(&told, &mut first), (vec![], true), "nothing is told twice");
        assert_eq!(drain(&told, &mut second), (vec!["2/7".to_owned()], true));
        assert!(told.resume(3).is_none(), "there was no such event");
    }

    #[test]
    fn without_priming_the_first_message_has_number_1() {
        let told = EventLog::new(7, None);
        let mut listening = told.subscribe();
        told.push(ServerSseMessage::default());
        assert_eq!(drain(&told, &mut listening), (vec!["1/7".to_owned()], false));
    }

    #[test]
    fn oldest_events_are_dropped() {
        let told = EventLog::new(7, Some(RETRY));
        (0..100).for_each(|_| told.push(ServerSseMessage::default()));
        let mut listening = told.resume(3).unwrap();
        let (ids, _) = drain(&told, &mut listening);
        assert_eq!((ids.len(), ids.last().unwrap().as_str()), (MAX_EVENTS, "100/7"));
    }
}
