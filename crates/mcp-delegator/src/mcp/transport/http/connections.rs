//! The connections, and which of them may stay.
//!
//! A connection is *waiting* until a request of it is authorised. Waiting connections share a few slots, and
//! the one that waits longest gives way to a new one, so that clients without the token can occupy neither
//! these slots nor the others, which are for authorised connections. The first authorised request decides for
//! its connection, because the check of the process at the other end is expensive.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use tokio::net::TcpStream;
use tokio::sync::{Notify, OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::mcp::transport::http::responses::PlainResponse;

/// One slot in this many is for waiting connections.
const WAITING_SHARE: usize = 4;

/// How often the other tasks get their turn before a connection is evicted: to learn that a request has
/// arrived, to read it, and to authorise it.
const TURNS_TO_READ: usize = 3;

/// Whether a client, given by its address and ours, belongs to a task.
pub type IsInTask = Arc<dyn Fn(SocketAddr, SocketAddr) -> bool + Send + Sync>;

const IN_TASK: PlainResponse = PlainResponse::new(
    StatusCode::FORBIDDEN,
    "This client belongs to a task, or its process cannot be identified. Tasks cannot use this server.\n",
);
const FULL: PlainResponse = PlainResponse::new(StatusCode::SERVICE_UNAVAILABLE, "Too many connections.\n");

pub(super) struct Connections {
    waiting: Mutex<VecDeque<Arc<Connection>>>,
    max_waiting: usize,
    authorised: Arc<Semaphore>,
    is_in_task: IsInTask,
}

pub(super) struct Connection {
    /// The addresses of the client and of this end.
    addresses: Option<(SocketAddr, SocketAddr)>,
    admission: OnceCell<Result<OwnedSemaphorePermit, PlainResponse>>,
    /// It must give way to a new connection.
    pub(super) evicted: Notify,
}

impl Connections {
    pub(super) fn new(max_connections: usize, is_in_task: IsInTask) -> Connections {
        let max_waiting = (max_connections / WAITING_SHARE).max(1);
        let max_authorised = max_connections.saturating_sub(max_waiting).max(1);
        Connections {
            waiting: Mutex::default(),
            max_waiting,
            authorised: Arc::new(Semaphore::new(max_authorised)),
            is_in_task,
        }
    }

    /// Adds a waiting connection. One whose request has arrived is no reason to evict another.
    pub(super) async fn add(&self, stream: &TcpStream) -> Arc<Connection> {
        for _ in 0..TURNS_TO_READ {
            if self.lock().len() >= self.max_waiting {
                tokio::task::yield_now().await;
            }
        }
        let addresses = stream.peer_addr().and_then(|peer| Ok((peer, stream.local_addr()?))).ok();
        let connection =
            Arc::new(Connection { addresses, admission: OnceCell::new(), evicted: Notify::new() });
        let mut waiting = self.lock();
        if waiting.len() >= self.max_waiting
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.evicted.notify_one();
        }
        waiting.push_back(Arc::clone(&connection));
        connection
    }

    /// Ends the waiting of a connection; false if it does not wait any more.
    pub(super) fn remove(&self, connection: &Arc<Connection>) -> bool {
        let mut waiting = self.lock();
        let position = waiting.iter().position(|other| Arc::ptr_eq(other, connection));
        position.and_then(|position| waiting.remove(position)).is_some()
    }

    /// Admits a connection on which a valid token was received.
    pub(super) async fn authorise(&self, connection: &Arc<Connection>) -> Result<(), PlainResponse> {
        let admit = async {
            if !self.remove(connection) {
                return Err(FULL);
            }
            let permit = Arc::clone(&self.authorised).try_acquire_owned().map_err(|_| FULL)?;
            let (is_in_task, addresses) = (Arc::clone(&self.is_in_task), connection.addresses);
            let check = move || addresses.is_none_or(|(peer, own)| is_in_task(peer, own));
            match tokio::task::spawn_blocking(check).await {
                Ok(false) => Ok(permit),
                Ok(true) | Err(_) => Err(IN_TASK),
            }
        };
        let admission = connection.admission.get_or_init(|| admit).await;
        admission.as_ref().map(|_| ()).map_err(|refusal| *refusal)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Connection>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
