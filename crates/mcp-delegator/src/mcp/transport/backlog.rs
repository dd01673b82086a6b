//! Bounds the memory of responses that a client on stdio does not read.
//!
//! Two things are counted: active requests (dispatched, response not yet serialised) and bytes that wait to
//! be written. The transport dispatches the next request only while both are below their bound; what the
//! client sends meanwhile stays in the pipe, cancellations included. A call that waits for a task or for its
//! user is not active: it leaves the backlog and enters it again before it produces its response. Nothing is
//! ever dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::mcp::RequestContext;

/// Requests that are active at the same time. Each may hold several copies of its response, on a thread of
/// its own.
const MAX_ACTIVE: usize = 12;
/// Bytes that wait to be written. One more response may exceed it.
const MAX_UNWRITTEN: usize = 4 << 20;
/// Responses above the usual length that are produced at the same time. Each costs several times its length.
const MAX_LONG_RESPONSES: usize = 1;

#[derive(Debug)]
pub struct Backlog {
    state: Mutex<BacklogState>,
    changed: Notify,
    long_responses: Semaphore,
}

#[derive(Debug, Default)]
struct BacklogState {
    /// The number of active requests with this id; more than one only if the client repeats an id.
    active: HashMap<RequestId, usize>,
    unwritten: usize,
}

impl BacklogState {
    fn has_capacity(&self) -> bool {
        self.active.values().sum::<usize>() < MAX_ACTIVE && self.is_below_byte_limit()
    }

    fn is_below_byte_limit(&self) -> bool {
        self.unwritten < MAX_UNWRITTEN
    }

    fn enter(&mut self, id: &RequestId) {
        *self.active.entry(id.clone()).or_default() += 1;
    }

    fn leave(&mut self, id: &RequestId) {
        self.active.remove(id);
    }
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog {
            state: Mutex::default(),
            changed: Notify::new(),
            long_responses: Semaphore::new(MAX_LONG_RESPONSES),
        }
    }
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when another request may be dispatched. May be dropped and called again.
    pub async fn wait_for_capacity(&self) {
        self.wait_until(BacklogState::has_capacity, |_| ()).await;
    }

    /// Waits until the condition holds; then `take` changes the state before anything else can.
    async fn wait_until<T>(
        &self,
        holds: fn(&BacklogState) -> bool,
        mut take: impl FnMut(&mut BacklogState) -> T,
    ) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the condition is checked, or a change between the two would be missed.
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if holds(&state) {
                    return take(&mut state);
                }
            }
            changed.await;
        }
    }

    pub fn dispatch(&self, id: &RequestId) {
        self.state().enter(id);
    }

    /// A request ends without a response, or begins to wait.
    pub fn leave(&self, id: &RequestId) {
        self.change(|state| state.leave(id));
    }

    /// A message is serialised; `id` if it is the response to a request.
    pub fn queue(&self, id: Option<&RequestId>, bytes: usize) {
        self.change(|state| {
            id.into_iter().for_each(|id| state.leave(id));
            state.unwritten += bytes;
        });
    }

    pub fn written(&self, bytes: usize) {
        self.change(|state| state.unwritten = state.unwritten.saturating_sub(bytes));
    }

    fn change(&self, act: impl FnOnce(&mut BacklogState)) {
        act(&mut self.state());
        self.changed.notify_waiters();
    }
}

/// The entry of one request in the backlog of its client. Attached to requests over stdio only.
#[derive(Debug, Clone)]
pub struct BacklogEntry {
    pub backlog: Arc<Backlog>,
    pub id: RequestId,
}

/// Awaits something that does not depend on this server; the request does not count as active meanwhile.
pub async fn outside_backlog<T>(context: &RequestContext, work: impl Future<Output = T>) -> T {
    let Some(entry) = context.extensions.get::<BacklogEntry>() else { return work.await };
    entry.backlog.leave(&entry.id);
    let done = work.await;
    entry.backlog.wait_until(BacklogState::has_capacity, |state| state.enter(&entry.id)).await;
    done
}

/// Waits until a long response may be produced. Hold the permit until the response is serialised.
pub async fn acquire_long_response(context: &RequestContext) -> Option<SemaphorePermit<'_>> {
    let entry = context.extensions.get::<BacklogEntry>()?;
    let permit = entry.backlog.long_responses.acquire().await.ok()?;
    entry.backlog.wait_until(BacklogState::is_below_byte_limit, |_| ()).await;
    Some(permit)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn is_ready(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    #[test]
    fn active_requests_are_bounded_and_waiting_ones_do_not_count() {
        let backlog = Backlog::default();
        (0..MAX_ACTIVE as i64).for_each(|number| backlog.dispatch(&id(number)));
        let mut capacity = pin!(backlog.wait_for_capacity());
        assert!(!is_ready(capacity.as_mut()));
        backlog.leave(&id(7));
        assert!(is_ready(capacity.as_mut()));
    }

    #[test]
    fn unwritten_bytes_are_bounded() {
        let backlog = Backlog::default();
        backlog.dispatch(&id(1));
        backlog.queue(Some(&id(1)), MAX_UNWRITTEN);
        let mut capacity = pin!(backlog.wait_for_capacity());
        assert!(!is_ready(capacity.as_mut()));
        backlog.written(MAX_UNWRITTEN);
        assert!(is_ready(capacity.as_mut()));
        assert!(backlog.state().active.is_empty());
    }

    #[test]
    fn every_request_with_a_repeated_id_counts_until_its_first_response() {
        let backlog = Backlog::default();
        (0..MAX_ACTIVE).for_each(|_| backlog.dispatch(&id(1)));
        assert!(!is_ready(pin!(backlog.wait_for_capacity())));
        backlog.queue(Some(&id(1)), 1);
        assert!(is_ready(pin!(backlog.wait_for_capacity())));
    }
}
