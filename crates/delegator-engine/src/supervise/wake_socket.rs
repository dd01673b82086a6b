//! The wake socket of a supervisor: any datagram makes it check the registry at once for a cancel request,
//! messages and answers.
//!
//! Datagrams carry no information and are not trusted: the request itself is in the registry. A lost datagram
//! delays the check by at most a second; a repeated or forged one costs one extra check.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use super::received_signals::EndSignals;
use delegator_registry::{TaskDir, private_runtime_dir, remove_if_exists, socket_path};

/// Publishes the path in the task directory. Signals also wake the supervisor through the socket.
pub(crate) fn listen(dir: &TaskDir, signals: &EndSignals) -> io::Result<UnixDatagram> {
    let path = choose_path(dir)?;
    private_runtime_dir(&path).map_err(io::Error::other)?;
    // Left by an earlier attempt: we hold the task lock, so no process uses it.
    remove_if_exists(&path)?;
    let socket = UnixDatagram::bind(&path)?;
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    socket.set_nonblocking(true)?;
    dir.publish_socket(&path).map_err(io::Error::other)?;
    // Without this a signal is noticed within a second.
    let _ = signals.wake(&path);
    Ok(socket)
}

pub(crate) fn wake(dir: &TaskDir) {
    let Ok(Some(path)) = dir.published_socket() else { return };
    if let Ok(socket) = UnixDatagram::unbound() {
        // Ignored: the supervisor checks the registry within a second anyway.
        let _ = socket.set_nonblocking(true).and_then(|()| socket.send_to(b"look", path));
    }
}

fn choose_path(dir: &TaskDir) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let candidates = [PathBuf::from(format!("/run/user/{user}")), Path::new("/tmp").to_owned()];
    let usable: Vec<PathBuf> = candidates.into_iter().filter(|candidate| candidate.is_dir()).collect();
    socket_path(dir.path(), dir.id(), user, &usable).map_err(io::Error::other)
}
