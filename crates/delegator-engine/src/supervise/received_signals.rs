//! Signals to a supervisor: SIGTERM and SIGINT cancel its task, SIGHUP does nothing.
//!
//! A handler only sets a flag and wakes the run loop through the wake socket. The loop treats the flag like a
//! cancel request: the agent is ended and swept as usual, and the end is recorded. A signal that arrives
//! after the agent has ended changes nothing.
//!
//! A signal is never set to "ignored", because the agent would inherit that.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The signals that this process received. The default handles none.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndSignals {
    is_installed: bool,
    terminate: Arc<AtomicBool>,
    interrupt: Arc<AtomicBool>,
}

impl EndSignals {
    pub(crate) fn install() -> io::Result<EndSignals> {
        let signals = EndSignals { is_installed: true, ..EndSignals::default() };
        flag::register(SIGTERM, Arc::clone(&signals.terminate))?;
        flag::register(SIGINT, Arc::clone(&signals.interrupt))?;
        flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
        Ok(signals)
    }

    /// Every handled signal sends a datagram to this socket. Without it a signal is noticed within a second.
    pub(crate) fn wake(&self, path: &Path) -> io::Result<()> {
        for signal in [SIGTERM, SIGINT].into_iter().filter(|_| self.is_installed) {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            low_level::pipe::register(signal, socket)?;
        }
        Ok(())
    }

    pub(crate) fn reason(&self) -> Option<String> {
        let received = [(&self.terminate, "SIGTERM"), (&self.interrupt, "SIGINT")];
        let (_, name) = received.into_iter().find(|(flag, _)| flag.load(Ordering::SeqCst))?;
        Some(format!("ended by a signal: its supervisor received {name}"))
    }
}
