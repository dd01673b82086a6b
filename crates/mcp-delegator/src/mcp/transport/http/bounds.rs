//! The resources that a client of the HTTP server may use.

use std::time::Duration;

#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) connections: usize,
    /// From the end of a request, or the start of the connection, to the end of the next headers. It also
    /// closes idle connections.
    pub(super) header_timeout: Duration,
    /// From the end of the headers to the end of the body.
    pub(super) body_timeout: Duration,
    /// Without the client reading a byte of the response.
    pub(super) write_timeout: Duration,
    pub(super) body_bytes: usize,
    /// Total of all bodies being read.
    pub(super) buffered_body_bytes: usize,
    pub(super) sessions: usize,
    /// Without a message in the session. Longer than the longest wait.
    pub(super) session_idle_timeout: Duration,
    /// How long a request and its response are retained after the connection broke.
    pub(super) reconnect_window: Duration,
    /// Total of all responses retained for clients that may reconnect.
    pub(super) stored_response_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 512,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            body_bytes: 4 << 20,
            buffered_body_bytes: 16 << 20,
            sessions: 256,
            session_idle_timeout: Duration::from_secs(2 * 60 * 60),
            reconnect_window: Duration::from_secs(30),
            stored_response_bytes: 16 << 20,
        }
    }
}

impl Bounds {
    /// Connections use at most half of the file descriptors; calls need the others.
    pub(super) fn limited_by_open_files(self, max_files: Option<u64>) -> Bounds {
        let half = max_files.map_or(usize::MAX, |files| usize::try_from(files / 2).unwrap_or(usize::MAX));
        Bounds { connections: self.connections.min(half).max(1), ..self }
    }
}
