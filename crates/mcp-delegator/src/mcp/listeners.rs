//! Whether anybody listens to the answer of a call, where a connection can break and its host come back.
//!
//! To answer what a task did means that its result was read. So such an answer is made when there is somebody to hear it;
//! if nobody comes back, the call is cancelled before it is made, and the result stays unread.

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::sync::watch;

/// Comes with a request whose host may leave and come back: how many listen.
#[derive(Debug, Clone)]
pub struct ListenerCount(pub watch::Receiver<usize>);

/// Returns when somebody listens, at once where nobody could have left.
pub async fn wait_for_listener(context: &RequestContext<RoleServer>) {
    if let Some(ListenerCount(listeners)) = context.extensions.get()
        && listeners.clone().wait_for(|listeners| *listeners > 0).await.is_err()
    {
        // Nobody counts them any more, so nobody will come back. The word that the call is cancelled is on its way; until it
        // is there, the call must not go on.
        std::future::pending().await
    }
}
