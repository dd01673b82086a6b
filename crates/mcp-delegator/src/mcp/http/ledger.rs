//! What is known of sessions: when each was used, who listens in it, and which requests nobody has heard the answer of.
//! Nothing here waits or tells anybody.

use std::collections::HashMap;

use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;

/// A request, by the number its session gave the stream of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) session: SessionId,
    pub(super) number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    sessions: HashMap<SessionId, Session>,
    /// Requests that are not answered, as far as anybody who listens has heard.
    open: HashMap<Asked, Request>,
    /// Counts the uses of all sessions.
    uses: u64,
}

#[derive(Debug, Default)]
struct Session {
    last_use: u64,
    streams: usize,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    streams: usize,
    /// How many streams there ever were. Somebody who came back and left again has to be waited for anew.
    listeners: u64,
}

/// Where one more session could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    InsteadOf(SessionId),
    None,
}

impl Ledger {
    pub(super) fn room(&self, most: usize) -> Room {
        if self.sessions.len() < most {
            return Room::Free;
        }
        let unattended = self.sessions.iter().filter(|(_, session)| session.streams == 0);
        let least_recent = unattended.min_by_key(|(_, session)| session.last_use);
        least_recent.map_or(Room::None, |(id, _)| Room::InsteadOf(id.clone()))
    }

    /// A session, known from now on.
    pub(super) fn used(&mut self, id: &SessionId) {
        self.uses += 1;
        self.sessions.entry(id.clone()).or_default().last_use = self.uses;
    }

    /// The same of one that may have been closed meanwhile.
    pub(super) fn touched(&mut self, id: &SessionId) {
        if self.sessions.contains_key(id) {
            self.used(id);
        }
    }

    /// The requests it leaves unanswered.
    pub(super) fn closed(&mut self, id: &SessionId) -> Vec<RequestId> {
        if self.sessions.remove(id).is_none() {
            return Vec::new();
        }
        let left = self.open.extract_if(|asked, _| asked.session == *id);
        left.map(|(_, request)| request.id).collect()
    }

    pub(super) fn asked(&mut self, asked: Asked, id: RequestId) {
        if self.sessions.contains_key(&asked.session) {
            self.open.insert(asked, Request { id, streams: 0, listeners: 0 });
        }
    }

    pub(super) fn answered(&mut self, asked: &Asked) {
        self.open.remove(asked);
    }

    /// Somebody listens.
    pub(super) fn began(&mut self, session: &SessionId, asked: Option<&Asked>) {
        self.touched(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams += 1;
        }
        if let Some(request) = asked.and_then(|asked| self.open.get_mut(asked)) {
            request.streams += 1;
            request.listeners += 1;
        }
    }

    /// Somebody does not listen any more. If nobody else does, and the answer is still to come: how many have listened.
    pub(super) fn ended(&mut self, session: &SessionId, asked: Option<&Asked>) -> Option<u64> {
        self.touched(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams = session.streams.saturating_sub(1);
        }
        let request = self.open.get_mut(asked?)?;
        request.streams = request.streams.saturating_sub(1);
        (request.streams == 0).then_some(request.listeners)
    }

    /// The request, to be cancelled, if nobody has come back since so many had listened.
    pub(super) fn given_up(&mut self, asked: &Asked, listeners: u64) -> Option<RequestId> {
        let request = self.open.get(asked)?;
        let is_left = request.streams == 0 && request.listeners == listeners;
        if is_left { self.open.remove(asked).map(|request| request.id) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::from(name)
    }

    fn with_sessions(names: &[&str]) -> Ledger {
        let mut ledger = Ledger::default();
        names.iter().for_each(|name| ledger.used(&session(name)));
        ledger
    }

    #[test]
    fn the_one_used_least_recently_makes_room_unless_somebody_listens_in_it() {
        let mut ledger = with_sessions(&["a", "b", "c"]);
        assert_eq!(ledger.room(4), Room::Free);
        assert_eq!(ledger.room(3), Room::InsteadOf(session("a")));
        ledger.touched(&session("a"));
        assert_eq!(ledger.room(3), Room::InsteadOf(session("b")));
        ledger.began(&session("b"), None);
        assert_eq!(ledger.room(3), Room::InsteadOf(session("c")));
        ledger.began(&session("a"), None);
        ledger.began(&session("c"), None);
        assert_eq!(ledger.room(3), Room::None);
        ledger.ended(&session("a"), None);
        assert_eq!(ledger.room(3), Room::InsteadOf(session("a")));
        ledger.closed(&session("a"));
        assert_eq!(ledger.room(3), Room::Free);
    }

    #[test]
    fn what_is_closed_is_not_known_again() {
        let mut ledger = with_sessions(&["a"]);
        let asked = Asked { session: session("a"), number: 0 };
        ledger.asked(asked.clone(), RequestId::Number(7));
        ledger.began(&session("a"), Some(&asked));
        assert_eq!(ledger.closed(&session("a")), [RequestId::Number(7)]);
        assert_eq!(ledger.closed(&session("a")), []);
        assert_eq!(ledger.ended(&session("a"), Some(&asked)), None);
        ledger.touched(&session("a"));
        ledger.asked(asked, RequestId::Number(7));
        assert!(ledger.sessions.is_empty() && ledger.open.is_empty(), "{ledger:?}");
    }

    #[test]
    fn a_request_is_given_up_when_nobody_came_back() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), Asked { session: session("a"), number: 3 });
        ledger.asked(asked.clone(), RequestId::Number(7));
        ledger.began(&a, Some(&asked));
        let first = ledger.ended(&a, Some(&asked)).unwrap();
        ledger.began(&a, Some(&asked));
        assert_eq!(ledger.given_up(&asked, first), None, "somebody listens again");
        // One more before the other is gone: a connection that is broken and not yet known to be.
        ledger.began(&a, Some(&asked));
        assert_eq!(ledger.ended(&a, Some(&asked)), None);
        let last = ledger.ended(&a, Some(&asked)).unwrap();
        assert_eq!(ledger.given_up(&asked, first), None, "the later one has a time of its own");
        assert_eq!(ledger.given_up(&asked, last), Some(RequestId::Number(7)));
        assert_eq!(ledger.given_up(&asked, last), None);
    }

    #[test]
    fn what_was_answered_is_not_given_up() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), Asked { session: session("a"), number: 3 });
        ledger.asked(asked.clone(), RequestId::Number(7));
        ledger.began(&a, Some(&asked));
        ledger.answered(&asked);
        assert_eq!(ledger.ended(&a, Some(&asked)), None);
    }
}
