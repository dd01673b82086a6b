//! The supervisor's private socket: a datagram means "look".
//!
//! It says nothing and is trusted with nothing: what is to be done stands in the registry. So a message that is lost,
//! doubled or made up costs at most a second, or a look.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use super::end_signals::EndSignals;
use delegator_registry::{TaskDir, private_runtime_dir, socket_path};

/// Binds the task's socket and says where it is. Signals wake the supervisor through it, too.
pub(crate) fn listen(dir: &TaskDir, signals: &EndSignals) -> io::Result<UnixDatagram> {
    let path = choose_path(dir)?;
    private_runtime_dir(&path).map_err(io::Error::other)?;
    // One of an earlier attempt: the lock says that nobody listens there any more.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixDatagram::bind(&path)?;
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    socket.set_nonblocking(true)?;
    dir.publish_socket(&path).map_err(io::Error::other)?;
    // Without it a signal is noticed within a second.
    let _ = signals.wake(&path);
    Ok(socket)
}

/// Wakes the task's supervisor, if it listens.
pub(crate) fn wake(dir: &TaskDir) {
    let Ok(Some(path)) = dir.published_socket() else { return };
    if let Ok(socket) = UnixDatagram::unbound() {
        // Nobody there, or a full queue: the flag in the registry is seen within a second anyway.
        let _ = socket.set_nonblocking(true).and_then(|()| socket.send_to(b"look", path));
    }
}

fn choose_path(dir: &TaskDir) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let candidates = [PathBuf::from(format!("/run/user/{user}")), Path::new("/tmp").to_owned()];
    let usable: Vec<PathBuf> = candidates.into_iter().filter(|candidate| candidate.is_dir()).collect();
    socket_path(dir.path(), dir.id(), user, &usable).map_err(io::Error::other)
}
