//! What is known of sessions: when each was used, who listens in it, and which requests are not answered, or were answered
//! so lately that a host whose connection broke may come back for it. Nothing here waits or tells anybody.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;

use super::event_log::EventLog;

/// What an answer takes besides its text.
const RESPONSE_OVERHEAD: usize = 1024;

/// A request, by the number its session gave the stream of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RequestKey {
    pub(super) session: SessionId,
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) struct SessionTable {
    sessions: HashMap<SessionId, Session>,
    /// Requests somebody waits for or may come back for.
    requests: HashMap<RequestKey, Request>,
    /// Counts the uses of all sessions.
    use_counter: u64,
    /// What the answers of requests may hold together.
    max_response_bytes: usize,
}

#[derive(Debug, Default)]
struct Session {
    last_use: u64,
    streams: usize,
    /// Whether its host knows the event that only says what to come back with.
    takes_priming: bool,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    events: Arc<EventLog>,
    streams: usize,
    /// How many streams there ever were. Somebody who came back and left again has to be waited for anew.
    streams_opened: u64,
    response: Option<StoredResponse>,
}

#[derive(Debug)]
struct StoredResponse {
    order: u64,
    bytes: usize,
    /// Somebody who listened took it. Whether it arrived is not known, but it is less likely to be asked for again.
    is_delivered: bool,
}

/// Where one more session could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionCapacity {
    Free,
    Evict(SessionId),
    Full,
}

impl SessionTable {
    pub(super) fn new(answer_bytes: usize) -> SessionTable {
        SessionTable {
            sessions: HashMap::new(),
            requests: HashMap::new(),
            use_counter: 0,
            max_response_bytes: answer_bytes,
        }
    }

    pub(super) fn capacity(&self, max_sessions: usize) -> SessionCapacity {
        if self.sessions.len() < max_sessions {
            return SessionCapacity::Free;
        }
        let unattended = self.sessions.iter().filter(|(_, session)| session.streams == 0);
        let least_recent = unattended.min_by_key(|(_, session)| session.last_use);
        least_recent.map_or(SessionCapacity::Full, |(id, _)| SessionCapacity::Evict(id.clone()))
    }

    /// A session, known from now on.
    pub(super) fn insert_or_touch(&mut self, id: &SessionId) {
        self.use_counter += 1;
        self.sessions.entry(id.clone()).or_default().last_use = self.use_counter;
    }

    /// The same of one that may have been closed meanwhile.
    pub(super) fn touch(&mut self, id: &SessionId) {
        if self.sessions.contains_key(id) {
            self.insert_or_touch(id);
        }
    }

    /// The requests it leaves unanswered.
    pub(super) fn close(&mut self, id: &SessionId) -> Vec<RequestId> {
        if self.sessions.remove(id).is_none() {
            return Vec::new();
        }
        let left = self.requests.extract_if(|asked, _| asked.session == *id);
        left.filter(|(_, request)| request.response.is_none()).map(|(_, request)| request.id).collect()
    }

    pub(super) fn set_takes_priming(&mut self, id: &SessionId, takes_priming: bool) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.takes_priming = takes_priming;
        }
    }

    pub(super) fn takes_priming(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.takes_priming)
    }

    pub(super) fn open_request(&mut self, asked: RequestKey, id: RequestId, told: Arc<EventLog>) {
        if self.sessions.contains_key(&asked.session) {
            self.requests
                .insert(asked, Request { id, events: told, streams: 0, streams_opened: 0, response: None });
        }
    }

    /// What was told to a request somebody may come back for.
    pub(super) fn event_log(&self, asked: &RequestKey) -> Option<Arc<EventLog>> {
        self.requests.get(asked).map(|request| Arc::clone(&request.events))
    }

    pub(super) fn store_response(&mut self, asked: &RequestKey, bytes: usize) {
        self.use_counter += 1;
        let order = self.use_counter;
        if let Some(request) = self.requests.get_mut(asked) {
            let bytes = bytes.saturating_add(RESPONSE_OVERHEAD);
            request.response = Some(StoredResponse { order, bytes, is_delivered: false });
        }
        self.evict_responses(order);
    }

    /// Those that were taken first, then those nobody has come back for, each from the oldest on, but not the latest.
    fn evict_responses(&mut self, latest: u64) {
        let answers =
            || self.requests.iter().filter_map(|(asked, request)| Some((asked, request.response.as_ref()?)));
        let mut bytes: usize = answers().map(|(_, answer)| answer.bytes).sum();
        if bytes <= self.max_response_bytes {
            return;
        }
        let earlier = answers().filter(|(_, answer)| answer.order != latest);
        let mut earlier: Vec<_> = earlier
            .map(|(asked, answer)| ((!answer.is_delivered, answer.order), answer.bytes, asked.clone()))
            .collect();
        earlier.sort_by_key(|(rank, ..)| *rank);
        for (_, size, asked) in earlier {
            if bytes <= self.max_response_bytes {
                return;
            }
            bytes -= size;
            self.requests.remove(&asked);
        }
    }

    /// Somebody who listened took the answer.
    pub(super) fn mark_delivered(&mut self, asked: &RequestKey) {
        if let Some(answer) = self.requests.get_mut(asked).and_then(|request| request.response.as_mut()) {
            answer.is_delivered = true;
        }
    }

    /// It will not be answered.
    pub(super) fn remove_request(&mut self, asked: &RequestKey) {
        self.requests.remove(asked);
    }

    /// Somebody listens.
    pub(super) fn add_stream(&mut self, session: &SessionId, asked: Option<&RequestKey>) {
        self.touch(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams += 1;
        }
        if let Some(request) = asked.and_then(|asked| self.requests.get_mut(asked)) {
            request.streams += 1;
            request.streams_opened += 1;
        }
    }

    /// Somebody does not listen any more. If nobody else does, and somebody may come back: how many have listened.
    pub(super) fn remove_stream(&mut self, session: &SessionId, asked: Option<&RequestKey>) -> Option<u64> {
        self.touch(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams = session.streams.saturating_sub(1);
        }
        let request = self.requests.get_mut(asked?)?;
        request.streams = request.streams.saturating_sub(1);
        (request.streams == 0).then_some(request.streams_opened)
    }

    /// Forgets the request if nobody has come back since so many had listened. One that is not answered is to be cancelled.
    pub(super) fn abandon(&mut self, asked: &RequestKey, listeners: u64) -> Option<RequestId> {
        let request = self.requests.get(asked)?;
        if request.streams > 0 || request.streams_opened != listeners {
            return None;
        }
        let request = self.requests.remove(asked)?;
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
        let mut ledger = SessionTable::new(10 * RESPONSE_OVERHEAD);
        names.iter().for_each(|name| ledger.insert_or_touch(&session(name)));
        ledger
    }

    fn open_request_in_a(ledger: &mut SessionTable, number: u64) -> RequestKey {
        let asked = RequestKey { session: session("a"), number };
        ledger.open_request(asked.clone(), RequestId::Number(7), Arc::new(EventLog::new(number, None)));
        asked
    }

    #[test]
    fn least_recently_used_session_without_a_stream_is_evicted() {
        let mut ledger = with_sessions(&["a", "b", "c"]);
        assert_eq!(ledger.capacity(4), SessionCapacity::Free);
        assert_eq!(ledger.capacity(3), SessionCapacity::Evict(session("a")));
        ledger.touch(&session("a"));
        assert_eq!(ledger.capacity(3), SessionCapacity::Evict(session("b")));
        ledger.add_stream(&session("b"), None);
        assert_eq!(ledger.capacity(3), SessionCapacity::Evict(session("c")));
        ledger.add_stream(&session("a"), None);
        ledger.add_stream(&session("c"), None);
        assert_eq!(ledger.capacity(3), SessionCapacity::Full);
        ledger.remove_stream(&session("a"), None);
        assert_eq!(ledger.capacity(3), SessionCapacity::Evict(session("a")));
        ledger.close(&session("a"));
        assert_eq!(ledger.capacity(3), SessionCapacity::Free);
    }

    #[test]
    fn closed_sessions_do_not_come_back() {
        let mut ledger = with_sessions(&["a"]);
        let answered = open_request_in_a(&mut ledger, 1);
        ledger.store_response(&answered, 0);
        let asked = open_request_in_a(&mut ledger, 0);
        ledger.add_stream(&session("a"), Some(&asked));
        assert_eq!(ledger.close(&session("a")), [RequestId::Number(7)]);
        assert_eq!(ledger.close(&session("a")), []);
        assert_eq!(ledger.remove_stream(&session("a"), Some(&asked)), None);
        ledger.touch(&session("a"));
        ledger.open_request(asked, RequestId::Number(7), Arc::new(EventLog::new(0, None)));
        assert!(ledger.sessions.is_empty() && ledger.requests.is_empty(), "{ledger:?}");
    }

    #[test]
    fn request_is_abandoned_only_if_no_stream_was_opened_since() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), open_request_in_a(&mut ledger, 3));
        ledger.add_stream(&a, Some(&asked));
        let first = ledger.remove_stream(&a, Some(&asked)).unwrap();
        ledger.add_stream(&a, Some(&asked));
        assert_eq!(ledger.abandon(&asked, first), None, "somebody listens again");
        // One more before the other is gone: a connection that is broken and not yet known to be.
        ledger.add_stream(&a, Some(&asked));
        assert_eq!(ledger.remove_stream(&a, Some(&asked)), None);
        let last = ledger.remove_stream(&a, Some(&asked)).unwrap();
        assert_eq!(ledger.abandon(&asked, first), None, "the later one has a time of its own");
        assert_eq!(ledger.abandon(&asked, last), Some(RequestId::Number(7)));
        assert_eq!(ledger.abandon(&asked, last), None);
    }

    #[test]
    fn stored_response_is_dropped_without_a_cancellation() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), open_request_in_a(&mut ledger, 3));
        ledger.add_stream(&a, Some(&asked));
        let listeners = ledger.remove_stream(&a, Some(&asked)).unwrap();
        ledger.store_response(&asked, 100);
        assert!(ledger.event_log(&asked).is_some());
        assert_eq!(ledger.abandon(&asked, listeners), None);
        assert!(ledger.event_log(&asked).is_none());
    }

    #[test]
    fn removed_requests_cannot_be_resumed() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), open_request_in_a(&mut ledger, 3));
        ledger.add_stream(&a, Some(&asked));
        ledger.remove_request(&asked);
        assert_eq!(ledger.remove_stream(&a, Some(&asked)), None);
    }

    #[test]
    fn delivered_responses_are_evicted_first() {
        let mut ledger = with_sessions(&["a"]);
        let all: Vec<RequestKey> = (0..4).map(|number| open_request_in_a(&mut ledger, number)).collect();
        for asked in &all[..3] {
            ledger.store_response(asked, 2 * RESPONSE_OVERHEAD);
        }
        ledger.mark_delivered(&all[1]);
        let kept = |ledger: &SessionTable| {
            all.iter().map(|asked| ledger.event_log(asked).is_some()).collect::<Vec<_>>()
        };
        ledger.store_response(&all[3], 3 * RESPONSE_OVERHEAD);
        assert_eq!(kept(&ledger), [true, false, true, true]);
        let more = open_request_in_a(&mut ledger, 4);
        ledger.store_response(&more, 100 * RESPONSE_OVERHEAD);
        assert_eq!(kept(&ledger), [false; 4]);
        assert!(ledger.event_log(&more).is_some(), "the latest is kept, however long it is");
    }
}
