//! What is known of sessions: when each was used, who listens in it, and which requests are not answered, or were answered
//! so lately that a host whose connection broke may come back for it. Nothing here waits or tells anybody.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;

use super::told::Told;

/// What an answer takes besides its text.
const AROUND_ANSWER: usize = 1024;

/// A request, by the number its session gave the stream of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) session: SessionId,
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) struct Ledger {
    sessions: HashMap<SessionId, Session>,
    /// Requests somebody waits for or may come back for.
    open: HashMap<Asked, Request>,
    /// Counts the uses of all sessions.
    uses: u64,
    /// What the answers of requests may hold together.
    answer_bytes: usize,
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
    told: Arc<Told>,
    streams: usize,
    /// How many streams there ever were. Somebody who came back and left again has to be waited for anew.
    listeners: u64,
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Answer {
    order: u64,
    bytes: usize,
    /// Somebody who listened took it. Whether it arrived is not known, but it is less likely to be asked for again.
    is_taken: bool,
}

/// Where one more session could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    InsteadOf(SessionId),
    None,
}

impl Ledger {
    pub(super) fn new(answer_bytes: usize) -> Ledger {
        Ledger { sessions: HashMap::new(), open: HashMap::new(), uses: 0, answer_bytes }
    }

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
        left.filter(|(_, request)| request.answer.is_none()).map(|(_, request)| request.id).collect()
    }

    pub(super) fn greeted(&mut self, id: &SessionId, takes_priming: bool) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.takes_priming = takes_priming;
        }
    }

    pub(super) fn takes_priming(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.takes_priming)
    }

    pub(super) fn asked(&mut self, asked: Asked, id: RequestId, told: Arc<Told>) {
        if self.sessions.contains_key(&asked.session) {
            self.open.insert(asked, Request { id, told, streams: 0, listeners: 0, answer: None });
        }
    }

    /// What was told to a request somebody may come back for.
    pub(super) fn told(&self, asked: &Asked) -> Option<Arc<Told>> {
        self.open.get(asked).map(|request| Arc::clone(&request.told))
    }

    pub(super) fn answered(&mut self, asked: &Asked, bytes: usize) {
        self.uses += 1;
        let order = self.uses;
        if let Some(request) = self.open.get_mut(asked) {
            let bytes = bytes.saturating_add(AROUND_ANSWER);
            request.answer = Some(Answer { order, bytes, is_taken: false });
        }
        self.forget_more_than_fit(order);
    }

    /// Those that were taken first, then those nobody has come back for, each from the oldest on, but not the latest.
    fn forget_more_than_fit(&mut self, latest: u64) {
        let answers =
            || self.open.iter().filter_map(|(asked, request)| Some((asked, request.answer.as_ref()?)));
        let mut bytes: usize = answers().map(|(_, answer)| answer.bytes).sum();
        if bytes <= self.answer_bytes {
            return;
        }
        let earlier = answers().filter(|(_, answer)| answer.order != latest);
        let mut earlier: Vec<_> = earlier
            .map(|(asked, answer)| ((!answer.is_taken, answer.order), answer.bytes, asked.clone()))
            .collect();
        earlier.sort_by_key(|(rank, ..)| *rank);
        for (_, size, asked) in earlier {
            if bytes <= self.answer_bytes {
                return;
            }
            bytes -= size;
            self.open.remove(&asked);
        }
    }

    /// Somebody who listened took the answer.
    pub(super) fn taken(&mut self, asked: &Asked) {
        if let Some(answer) = self.open.get_mut(asked).and_then(|request| request.answer.as_mut()) {
            answer.is_taken = true;
        }
    }

    /// It will not be answered.
    pub(super) fn dropped(&mut self, asked: &Asked) {
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

    /// Somebody does not listen any more. If nobody else does, and somebody may come back: how many have listened.
    pub(super) fn ended(&mut self, session: &SessionId, asked: Option<&Asked>) -> Option<u64> {
        self.touched(session);
        if let Some(session) = self.sessions.get_mut(session) {
            session.streams = session.streams.saturating_sub(1);
        }
        let request = self.open.get_mut(asked?)?;
        request.streams = request.streams.saturating_sub(1);
        (request.streams == 0).then_some(request.listeners)
    }

    /// Forgets the request if nobody has come back since so many had listened. One that is not answered is to be cancelled.
    pub(super) fn given_up(&mut self, asked: &Asked, listeners: u64) -> Option<RequestId> {
        let request = self.open.get(asked)?;
        if request.streams > 0 || request.listeners != listeners {
            return None;
        }
        let request = self.open.remove(asked)?;
        request.answer.is_none().then_some(request.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::from(name)
    }

    fn with_sessions(names: &[&str]) -> Ledger {
        let mut ledger = Ledger::new(10 * AROUND_ANSWER);
        names.iter().for_each(|name| ledger.used(&session(name)));
        ledger
    }

    fn asked(ledger: &mut Ledger, number: u64) -> Asked {
        let asked = Asked { session: session("a"), number };
        ledger.asked(asked.clone(), RequestId::Number(7), Arc::new(Told::new(number, None)));
        asked
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
        let answered = asked(&mut ledger, 1);
        ledger.answered(&answered, 0);
        let asked = asked(&mut ledger, 0);
        ledger.began(&session("a"), Some(&asked));
        assert_eq!(ledger.closed(&session("a")), [RequestId::Number(7)]);
        assert_eq!(ledger.closed(&session("a")), []);
        assert_eq!(ledger.ended(&session("a"), Some(&asked)), None);
        ledger.touched(&session("a"));
        ledger.asked(asked, RequestId::Number(7), Arc::new(Told::new(0, None)));
        assert!(ledger.sessions.is_empty() && ledger.open.is_empty(), "{ledger:?}");
    }

    #[test]
    fn a_request_is_given_up_when_nobody_came_back() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), asked(&mut ledger, 3));
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
    fn an_answer_is_kept_until_nobody_came_back_and_then_nothing_is_cancelled() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), asked(&mut ledger, 3));
        ledger.began(&a, Some(&asked));
        let listeners = ledger.ended(&a, Some(&asked)).unwrap();
        ledger.answered(&asked, 100);
        assert!(ledger.told(&asked).is_some());
        assert_eq!(ledger.given_up(&asked, listeners), None);
        assert!(ledger.told(&asked).is_none());
    }

    #[test]
    fn what_will_not_be_answered_is_not_come_back_for() {
        let mut ledger = with_sessions(&["a"]);
        let (a, asked) = (session("a"), asked(&mut ledger, 3));
        ledger.began(&a, Some(&asked));
        ledger.dropped(&asked);
        assert_eq!(ledger.ended(&a, Some(&asked)), None);
    }

    #[test]
    fn answers_that_were_taken_make_room_for_those_that_were_not() {
        let mut ledger = with_sessions(&["a"]);
        let all: Vec<Asked> = (0..4).map(|number| asked(&mut ledger, number)).collect();
        for asked in &all[..3] {
            ledger.answered(asked, 2 * AROUND_ANSWER);
        }
        ledger.taken(&all[1]);
        let kept = |ledger: &Ledger| all.iter().map(|asked| ledger.told(asked).is_some()).collect::<Vec<_>>();
        ledger.answered(&all[3], 3 * AROUND_ANSWER);
        assert_eq!(kept(&ledger), [true, false, true, true]);
        let more = asked(&mut ledger, 4);
        ledger.answered(&more, 100 * AROUND_ANSWER);
        assert_eq!(kept(&ledger), [false; 4]);
        assert!(ledger.told(&more).is_some(), "the latest is kept, however long it is");
    }
}
