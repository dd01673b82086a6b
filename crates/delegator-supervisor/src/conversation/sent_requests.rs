//! Our JSON-RPC requests that the agent has not answered yet.

use delegator_transcript::wire::json_rpc::RequestId;

#[derive(Debug)]
pub(super) struct SentRequests<R> {
    last_id: i64,
    open: Vec<(i64, R)>,
}

impl<R> Default for SentRequests<R> {
    fn default() -> Self {
        Self { last_id: 0, open: Vec::new() }
    }
}

impl<R> SentRequests<R> {
    pub(super) fn add(&mut self, request: R) -> i64 {
        self.last_id += 1;
        self.open.push((self.last_id, request));
        self.last_id
    }

    /// The request with this id, which is answered now.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<R> {
        let RequestId::Number(id) = id else { return None };
        let index = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(index).1)
    }
}
