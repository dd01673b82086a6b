//! The sessions with their last use, open streams and requests. A request stays until the reconnect window of
//! its client has passed. Pure bookkeeping: this module neither waits nor sends.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;

use crate::mcp::transport::http::event_log::{EventLog, StoredResponse};

/// The memory of a stored response besides its text.
const RESPONSE_OVERHEAD: usize = 1024;

#[derive(Debug)]
pub(super) struct SessionTable {
    sessions: HashMap<SessionId, Session>,
    /// Incremented at every use of any session; orders uses and responses.
    use_counter: u64,
    max_response_bytes: usize,
}

#[derive(Debug, Default)]
struct Session {
    last_use: u64,
    streams: usize,
    /// Whether its client understands the priming event (see [`EventLog::new`]).
    takes_priming: bool,
    /// Requests with a connected client, or one that may reconnect, by the number of their stream.
    requests: HashMap<u64, Arc<EventLog>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionCapacity {
    Free,
    Evict(SessionId),
    Full,
}

impl SessionTable {
    pub(super) fn new(max_response_bytes: usize) -> SessionTable {
        SessionTable { sessions: HashMap::new(), use_counter: 0, max_response_bytes }
    }

    pub(super) fn capacity(&self, max_sessions: usize) -> SessionCapacity {
        if self.sessions.len() < max_sessions {
            return SessionCapacity::Free;
        }
        let without_stream = self.sessions.iter().filter(|(_, session)| session.streams == 0);
        let least_recent = without_stream.min_by_key(|(_, session)| session.last_use);
        least_recent.map_or(SessionCapacity::Full, |(id, _)| SessionCapacity::Evict(id.clone()))
    }

    pub(super) fn insert(&mut self, id: &SessionId) {
        self.sessions.insert(id.clone(), Session::default());
        self.touch(id);
    }

    /// Records a use of a session, unless it was closed meanwhile.
    pub(super) fn touch(&mut self, id: &SessionId) {
        self.add_streams(id, 0);
    }

    /// Records that a stream of a session was opened (1) or closed (-1).
    pub(super) fn add_streams(&mut self, id: &SessionId, change: isize) {
        self.use_counter += 1;
        if let Some(session) = self.sessions.get_mut(id) {
            session.last_use = self.use_counter;
            session.streams = session.streams.saturating_add_signed(change);
        }
    }

    /// Removes a session; returns its requests without a response.
    pub(super) fn close(&mut self, id: &SessionId) -> Vec<RequestId> {
        let requests =
            self.sessions.remove(id).into_iter().flat_map(|session| session.requests.into_values());
        requests.filter(|log| log.response().is_none()).map(|log| log.request.clone()).collect()
    }

    pub(super) fn set_takes_priming(&mut self, id: &SessionId, takes_priming: bool) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.takes_priming = takes_priming;
        }
    }

    pub(super) fn takes_priming(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.takes_priming)
    }

    pub(super) fn open_request(&mut self, log: &Arc<EventLog>) {
        if let Some(session) = self.sessions.get_mut(&log.session) {
            session.requests.insert(log.stream, Arc::clone(log));
        }
    }

    /// The events of a request, if a client may still resume it.
    pub(super) fn event_log(&self, session: &SessionId, stream: u64) -> Option<Arc<EventLog>> {
        self.sessions.get(session)?.requests.get(&stream).cloned()
    }

    pub(super) fn store_response(&mut self, log: &EventLog, bytes: usize) {
        self.use_counter += 1;
        let bytes = bytes.saturating_add(RESPONSE_OVERHEAD);
        log.set_response(StoredResponse { order: self.use_counter, bytes, is_delivered: false });
        self.evict_responses(self.use_counter);
    }

    /// Evicts responses until the rest fits: delivered ones first, then the others, each oldest first, never
    /// the latest.
    fn evict_responses(&mut self, latest: u64) {
        let logs = self.sessions.values().flat_map(|session| session.requests.values());
        let mut responses: Vec<_> = logs.filter_map(|log| Some((log.response()?, Arc::clone(log)))).collect();
        let mut bytes: usize = responses.iter().map(|(response, _)| response.bytes).sum();
        responses.sort_by_key(|(response, _)| (!response.is_delivered, response.order));
        for (response, log) in responses {
            if bytes <= self.max_response_bytes {
                return;
            }
            if response.order != latest {
                bytes -= response.bytes;
                self.remove_request(&log);
            }
        }
    }

    /// Whether the request was still there.
    pub(super) fn remove_request(&mut self, log: &EventLog) -> bool {
        let session = self.sessions.get_mut(&log.session);
        session.is_some_and(|session| session.requests.remove(&log.stream).is_some())
    }

    /// Removes a request if it has no stream, and none but these was opened. Returns whether to cancel it,
    /// because it has no response.
    pub(super) fn abandon(&mut self, log: &EventLog, opened: u64) -> bool {
        log.is_abandoned_since(opened) && self.remove_request(log) && log.response().is_none()
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
        names.iter().for_each(|name| table.insert(&session(name)));
        table
    }

    fn open_request_in_a(table: &mut SessionTable, number: u64) -> Arc<EventLog> {
        let log = Arc::new(EventLog::new(&session("a"), number, &RequestId::Number(7), None));
        table.open_request(&log);
        log
    }

    fn is_stored(table: &SessionTable, log: &EventLog) -> bool {
        table.event_log(&log.session, log.stream).is_some()
    }

    #[test]
    fn least_recently_used_session_without_a_stream_is_evicted() {
        let mut table = with_sessions(&["a", "b", "c"]);
        assert_eq!(table.capacity(4), SessionCapacity::Free);
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("a")));
        table.touch(&session("a"));
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("b")));
        table.add_streams(&session("b"), 1);
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("c")));
        table.add_streams(&session("a"), 1);
        table.add_streams(&session("c"), 1);
        assert_eq!(table.capacity(3), SessionCapacity::Full);
        table.add_streams(&session("a"), -1);
        assert_eq!(table.capacity(3), SessionCapacity::Evict(session("a")));
        table.close(&session("a"));
        assert_eq!(table.capacity(3), SessionCapacity::Free);
    }

    #[test]
    fn closed_sessions_do_not_come_back() {
        let mut table = with_sessions(&["a"]);
        let with_response = open_request_in_a(&mut table, 1);
        table.store_response(&with_response, 0);
        let log = open_request_in_a(&mut table, 0);
        assert_eq!(table.close(&session("a")), [RequestId::Number(7)]);
        assert_eq!(table.close(&session("a")), []);
        table.touch(&session("a"));
        table.open_request(&log);
        assert!(!table.remove_request(&log));
        assert!(table.sessions.is_empty(), "{table:?}");
    }

    #[test]
    fn request_is_abandoned_only_if_no_stream_was_opened_since() {
        let mut table = with_sessions(&["a"]);
        let log = open_request_in_a(&mut table, 3);
        log.subscribe();
        let first = log.unsubscribe().unwrap();
        log.subscribe();
        assert!(!table.abandon(&log, first), "a client is connected again");
        // A second stream while the first is still open: its connection is broken, but not yet detected.
        log.subscribe();
        assert_eq!(log.unsubscribe(), None);
        let last = log.unsubscribe().unwrap();
        assert!(!table.abandon(&log, first), "the later stream has its own reconnect window");
        assert!(table.abandon(&log, last));
        assert!(!table.abandon(&log, last));
    }

    #[test]
    fn stored_response_is_dropped_without_a_cancellation() {
        let mut table = with_sessions(&["a"]);
        let log = open_request_in_a(&mut table, 3);
        log.subscribe();
        let opened = log.unsubscribe().unwrap();
        table.store_response(&log, 100);
        assert!(is_stored(&table, &log));
        assert!(!table.abandon(&log, opened));
        assert!(!is_stored(&table, &log));
    }

    #[test]
    fn delivered_responses_are_evicted_first() {
        let mut table = with_sessions(&["a"]);
        let all: Vec<_> = (0..4).map(|number| open_request_in_a(&mut table, number)).collect();
        for log in &all[..3] {
            table.store_response(log, 2 * RESPONSE_OVERHEAD);
        }
        all[1].set_response(StoredResponse { is_delivered: true, ..all[1].response().unwrap() });
        let retained = |table: &SessionTable| all.iter().map(|log| is_stored(table, log)).collect::<Vec<_>>();
        table.store_response(&all[3], 3 * RESPONSE_OVERHEAD);
        assert_eq!(retained(&table), [true, false, true, true]);
        let more = open_request_in_a(&mut table, 4);
        table.store_response(&more, 100 * RESPONSE_OVERHEAD);
        assert_eq!(retained(&table), [false; 4]);
        assert!(is_stored(&table, &more), "the latest response is retained, whatever its size");
    }
}
