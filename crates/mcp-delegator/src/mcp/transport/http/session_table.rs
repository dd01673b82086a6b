//! The sessions with their last use, open streams and requests. A request stays until the reconnect window of
//! its client has passed. Pure bookkeeping: this module neither waits nor sends.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;

use crate::mcp::transport::http::event_log::EventLog;

/// The memory of a stored response besides its text.
const RESPONSE_OVERHEAD: usize = 1024;

/// A request, identified by its session and the number of its stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RequestKey {
    pub(super) session: SessionId,
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) struct SessionTable {
    sessions: HashMap<SessionId, Session>,
    /// Requests with a connected client, or one that may reconnect.
    requests: HashMap<RequestKey, Request>,
    /// Incremented at every use of any session; orders uses and responses.
    use_counter: u64,
    /// Total limit of stored responses.
    max_response_bytes: usize,
}

#[derive(Debug, Default)]
struct Session {
    last_use: u64,
    streams: usize,
    /// Whether its client understands the priming event (see [`EventLog::new`]).
    takes_priming: bool,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    events: Arc<EventLog>,
    streams: usize,
    /// Streams ever opened. A client that reconnects and disconnects again gets a new reconnect window.
    streams_opened: u64,
    response: Option<StoredResponse>,
}

#[derive(Debug)]
struct StoredResponse {
    order: u64,
    bytes: usize,
    /// Written to a connection. Whether it arrived is unknown, but the client is less likely to resume for
    /// it.
    is_delivered: bool,
}

/// Whether one more session can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionCapacity {
    Free,
    Evict(SessionId),
    Full,
}

impl SessionTable {
    pub(super) fn new(max_response_bytes: usize) -> SessionTable {
        SessionTable {
            sessions: HashMap::new(),
            requests: HashMap::new(),
            use_counter: 0,
            max_response_bytes,
        }
    }

    pub(super) fn capacity(&self, max_sessions: usize) -> SessionCapacity {
        if self.sessions.len() < max_sessions {
            return SessionCapacity::Free;
        }
        let without_stream = self.sessions.iter().filter(|(_, session)| session.streams == 0);
        let least_recent = without_stream.min_by_key(|(_, session)| session.last_use);
        least_recent.map_or(SessionCapacity::Full, |(id, _)| SessionCapacity::Evict(id.clone()))
    }

    pub(super) fn insert_or_touch(&mut self, id: &SessionId) {
        self.use_counter += 1;
        self.sessions.entry(id.clone()).or_default().last_use = self.use_counter;
    }

    /// Records a use of a session, unless it was closed meanwhile.
    pub(super) fn touch(&mut self, id: &SessionId) {
        if self.sessions.contains_key(id) {
            self.insert_or_touch(id);
        }
    }

    /// Removes a session; returns its requests without a response.
    pub(super) fn close(&mut self, id: &SessionId) -> Vec<RequestId> {
        if self.sessions.remove(id).is_none() {
            return Vec::new();
        }
        let removed = self.requests.extract_if(|key, _| key.session == *id);
        removed.filter(|(_, request)| request.response.is_none()).map(|(_, request)| request.id).collect()
    }

    pub(super) fn set_takes_priming(&mut self, id: &SessionId, takes_priming: bool) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.takes_priming = takes_priming;
        }
    }

    pub(super) fn takes_priming(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.takes_priming)
    }

    pub(super) fn open_request(&mut self, key: RequestKey, id: RequestId, events: Arc<EventLog>) {
        if self.sessions.contains_key(&key.session) {
            self.requests.insert(key, Request { id, events, streams: 0, streams_opened: 0, response: None });
        }
    }

    /// The events of a request, if a client may still resume it.
    pub(super) fn event_log(&self, key: &RequestKey) -> Option<Arc<EventLog>> {
        self.requests.get(key).map(|request| Arc::clone(&request.events))
    }

    pub(super) fn store_response(&mut self, key: &RequestKey, bytes: usize) {
        self.use_counter += 1;
        let order = self.use_counter;
        if let Some(request) = self.requests.get_mut(key) {
            let bytes = bytes.saturating_add(RESPONSE_OVERHEAD);
            request.response = Some(StoredResponse { order, bytes, is_delivered: false });
        }
        self.evict_responses(order);
    }

    /// Evicts responses until the rest fits: delivered ones first, then the others, each oldest first, never
    /// the latest.
    fn evict_responses(&mut self, latest: u64) {
        let responses =
            || self.requests.iter().filter_map(|(key, request)| Some((key, request.response.as_ref()?)));
        let mut bytes: usize = responses().map(|(_, response)| response.bytes).sum();
        if bytes <= self.max_response_bytes {
            return;
        }
        let earlier = responses().filter(|(_, response)| response.order != latest);
        let mut earlier: Vec<_> = earlier
            .map(|(key, response)| ((!response.is_delivered, response.order), response.bytes, key.clone()))
            .collect();
        earlier.sort_by_key(|(rank, ..)| *rank);
        for (_, size, key) in earlier {
            if bytes <= self.max_response_bytes {
                return;
            }
            bytes -= size;
            self.requests.remove(&key);
        }
    }

    /// The response was written to a connection.
    pub(super) fn mark_delivered(&mut self, key: &RequestKey) {
        if let Some(response) = self.requests.get_mut(key).and_then(|request| request.response.as_mut()) {
            response.is_delivered = true;
        }
    }

    /// The request ended without a response.
    pub(super) fn remove_request(&mut self, key: &RequestKey) {
        self.requests.remove(key);
    }

    pub(super) fn add_stream(&mut self, session: &SessionId, key: Option<&RequestKey>) {
        self.touch(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams += 1;
        }
        if let Some(request) = key.and_then(|key| self.requests.get_mut(key)) {
            request.streams += 1;
            request.streams_opened += 1;
        }
    }

    /// If this was the last stream of a request, returns its `streams_opened`, for [`SessionTable::abandon`].
    pub(super) fn remove_stream(&mut self, session: &SessionId, key: Option<&RequestKey>) -> Option<u64> {
        self.touch(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams = session.streams.saturating_sub(1);
        }
        let request = self.requests.get_mut(key?)?;
        request.streams = request.streams.saturating_sub(1);
        (request.streams == 0).then_some(request.streams_opened)
    }

    /// Removes a request if no stream was opened since. Returns the id to cancel if it has no response.
    pub(super) fn abandon(&mut self, key: &RequestKey, streams_opened: u64) -> Option<RequestId> {
        let request = self.requests.get(key)?;
        if request.streams > 0 || request.streams_opened != streams_opened {
            return None;
        }
        let request = self.requests.remove(key)?;
        request.response.is_none().then_some(request.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::from(name)
    }

    fn with_sessions(names: &[&str]) -> SessionTable {
        let mut table = SessionTable::new(10 * RESPONSE_OVERHEAD);
        names.iter().for_each(|name| table.insert_or_touch(&session(name)));
        table
    }

    fn open_request_in_a(table: &mut SessionTable, number: u64) -> RequestKey {
        let key = RequestKey { session: session("a"), number };
        table.open_request(key.clone(), RequestId::Number(7), Arc::new(EventLog::new(number, None)));
        key
    }

    #[test]
    fn least_recently_used_session_without_a_stream_is_evicted() {
        let mut table = with_sessions(&["a", "b", "c"]);
        assert_eq!(table.capacity(4), SessionCapacity::Free);
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("a")));
        table.touch(&session("a"));
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("b")));
        table.add_stream(&session("b"), None);
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("c")));
        table.add_stream(&session("a"), None);
        table.add_stream(&session("c"), None);
        assert_eq!(table.capacity(3), SessionCapacity::Full);
        table.remove_stream(&session("a"), None);
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("a")));
        table.close(&session("a"));
        assert_eq!(table.capacity(3), SessionCapacity::Free);
    }

    #[test]
    fn closed_sessions_do_not_come_back() {
        let mut table = with_sessions(&["a"]);
        let with_response = open_request_in_a(&mut table, 1);
        table.store_response(&with_response, 0);
        let key = open_request_in_a(&mut table, 0);
        table.add_stream(&session("a"), Some(&key));
        assert_eq!(table.close(&session("a")), [RequestId::Number(7)]);
        assert_eq!(table.close(&session("a")), []);
        assert_eq!(table.remove_stream(&session("a"), Some(&key)), None);
        table.touch(&session("a"));
        table.open_request(key, RequestId::Number(7), Arc::new(EventLog::new(0, None)));
        assert!(table.sessions.is_empty() && table.requests.is_empty(), "{table:?}");
    }

    #[test]
    fn request_is_abandoned_only_if_no_stream_was_opened_since() {
        let mut table = with_sessions(&["a"]);
        let (a, key) = (session("a"), open_request_in_a(&mut table, 3));
        table.add_stream(&a, Some(&key));
        let first = table.remove_stream(&a, Some(&key)).unwrap();
        table.add_stream(&a, Some(&key));
        assert_eq!(table.abandon(&key, first), None, "a client is connected again");
        // A second stream while the first is still open: its connection is broken, but not yet detected.
        table.add_stream(&a, Some(&key));
        assert_eq!(table.remove_stream(&a, Some(&key)), None);
        let last = table.remove_stream(&a, Some(&key)).unwrap();
        assert_eq!(table.abandon(&key, first), None, "the later stream has its own reconnect window");
        assert_eq!(table.abandon(&key, last), Some(RequestId::Number(7)));
        assert_eq!(table.abandon(&key, last), None);
    }

    #[test]
    fn stored_response_is_dropped_without_a_cancellation() {
        let mut table = with_sessions(&["a"]);
        let (a, key) = (session("a"), open_request_in_a(&mut table, 3));
        table.add_stream(&a, Some(&key));
        let streams_opened = table.remove_stream(&a, Some(&key)).unwrap();
        table.store_response(&key, 100);
        assert!(table.event_log(&key).is_some());
        assert_eq!(table.abandon(&key, streams_opened), None);
        assert!(table.event_log(&key).is_none());
    }

    #[test]
    fn removed_requests_cannot_be_resumed() {
        let mut table = with_sessions(&["a"]);
        let (a, key) = (session("a"), open_request_in_a(&mut table, 3));
        table.add_stream(&a, Some(&key));
        table.remove_request(&key);
        assert_eq!(table.remove_stream(&a, Some(&key)), None);
    }

    #[test]
    fn delivered_responses_are_evicted_first() {
        let mut table = with_sessions(&["a"]);
        let all: Vec<RequestKey> = (0..4).map(|number| open_request_in_a(&mut table, number)).collect();
        for key in &all[..3] {
            table.store_response(key, 2 * RESPONSE_OVERHEAD);
        }
        table.mark_delivered(&all[1]);
        let retained =
            |table: &SessionTable| all.iter().map(|key| table.event_log(key).is_some()).collect::<Vec<_>>();
        table.store_response(&all[3], 3 * RESPONSE_OVERHEAD);
        assert_eq!(retained(&table), [true, false, true, true]);
        let more = open_request_in_a(&mut table, 4);
        table.store_response(&more, 100 * RESPONSE_OVERHEAD);
        assert_eq!(retained(&table), [false; 4]);
        assert!(table.event_log(&more).is_some(), "the latest response is retained, whatever its size");
    }
}
