//! Whether a client is connected to receive the response of a call, where a client may disconnect and
//! reconnect.
//!
//! Producing the response with a task's result marks the result as read. So the response is produced only
//! while a client is connected. If none reconnects, the call is cancelled first, and the result stays unread.

use tokio::sync::watch;

use crate::mcp::RequestContext;

/// The number of connected clients. Attached to requests whose client may reconnect.
#[derive(Debug, Clone)]
pub struct ListenerCount(pub watch::Receiver<usize>);

/// Returns when a client is connected; at once for requests without a listener count.
pub async fn wait_for_listener(context: &RequestContext) {
    if let Some(ListenerCount(listeners)) = context.extensions.get()
        && listeners.clone().wait_for(|listeners| *listeners > 0).await.is_err()
    {
        // The session is gone, so no client can reconnect. The cancellation of this call is on its way; until
        // it arrives, the call must not continue.
        std::future::pending().await
    }
}
