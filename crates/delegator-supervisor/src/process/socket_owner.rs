//! Finds the process at the other end of a TCP connection, if it is on this machine.
//!
//! The kernel's list of sockets names the inode of the other end, and `/proc/<pid>/fd` the process that holds
//! it. A process can forbid to read its descriptors; then it is only known that the owner is one of those
//! processes.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicI32, Ordering};

use super::tree::for_each_pid;

const SOCKET_LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The process that was found last. Most clients connect more than once, and the search of all processes is
/// expensive.
static LAST_HOLDER: AtomicI32 = AtomicI32::new(0);

/// The process that holds one end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketOwner {
    /// Its address is not one of this machine.
    Remote,
    Process(i32),
    /// No process holds it any more.
    Closed,
    /// One of these processes, whose descriptors cannot be read. Empty if no process can be the owner: it
    /// hides its socket, or it cannot be seen from here.
    Hidden(Vec<i32>),
}

/// The owner of the socket that is connected from `local` to `remote`.
pub fn socket_owner(local: SocketAddr, remote: SocketAddr) -> SocketOwner {
    let lists = SOCKET_LISTS.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let sockets = lists.filter_map(|list| find_socket(&list, local, remote)).collect::<Vec<_>>();
    match sockets.first() {
        Some(socket) if socket.inode == 0 => SocketOwner::Closed,
        Some(socket) => find_holder(socket),
        None if is_own_address(local.ip()) => SocketOwner::Closed,
        None => SocketOwner::Remote,
    }
}

/// Only an address of this machine can be bound.
fn is_own_address(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[derive(Debug, PartialEq, Eq)]
struct Socket {
    /// 0 once it is closed.
    inode: u64,
    uid: u32,
}

fn find_socket(list: &str, local: SocketAddr, remote: SocketAddr) -> Option<Socket> {
    let (local, remote) = (encode(local), encode(remote));
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (own, other) = (fields.next()?, fields.next()?);
        let is_wanted = local.iter().any(|text| text == own) && remote.iter().any(|text| text == other);
        let uid = fields.nth(4).filter(|_| is_wanted)?.parse().ok()?;
        Some(Socket { uid, inode: fields.nth(1)?.parse().ok()? })
    })
}

/// The texts of an address in the lists: words of the machine's byte order and the port, in hexadecimal
/// digits. An IPv6 socket may have an IPv4 address.
fn encode(address: SocketAddr) -> Vec<String> {
    let text = |bytes: &[u8]| {
        let words = bytes.chunks_exact(4).filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
        let words: String = words.map(|word| format!("{word:08X}")).collect();
        format!("{words}:{:04X}", address.port())
    };
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => vec![text(&ip.octets()), text(&ip.to_ipv6_mapped().octets())],
        IpAddr::V6(ip) => vec![text(&ip.octets())],
    }
}

fn find_holder(socket: &Socket) -> SocketOwner {
    let last = LAST_HOLDER.load(Ordering::Relaxed);
    let (mut holder, mut unreadable) = (holds(last, socket).unwrap_or(false).then_some(last), Vec::new());
    for_each_pid(|pid| match holder.is_none().then(|| holds(pid, socket)) {
        Some(Ok(true)) => holder = Some(pid),
        Some(Err(_)) if effective_uid(pid) == Some(socket.uid) => unreadable.push(pid),
        _ => {}
    });
    LAST_HOLDER.store(holder.unwrap_or(0), Ordering::Relaxed);
    holder.map_or(SocketOwner::Hidden(unreadable), SocketOwner::Process)
}

/// Whether a process has the socket open; an error if its descriptors cannot be read.
fn holds(pid: i32, socket: &Socket) -> io::Result<bool> {
    let link = format!("socket:[{}]", socket.inode);
    let mut files = std::fs::read_dir(format!("/proc/{pid}/fd"))?;
    Ok(files.any(|file| file.is_ok_and(|file| std::fs::read_link(file.path()).is_ok_and(|to| *to == *link))))
}

fn effective_uid(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_owner_is_the_process_that_holds_the_other_end() {
        let me = i32::try_from(std::process::id()).unwrap();
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            let host = if address == "[::1]:0" { "::1" } else { "127.0.0.1" };
            let client = TcpStream::connect((host, port)).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let own = accepted.local_addr().unwrap();
            assert_eq!(socket_owner(peer, own), SocketOwner::Process(me), "{address}");
            drop(client);
            assert_eq!(socket_owner(peer, own), SocketOwner::Closed, "{address}");
            drop(accepted);
            assert_eq!(socket_owner(peer, own), SocketOwner::Closed, "{address}: no such socket");
        }
        let documentation: SocketAddr = "192.0.2.7:4711".parse().unwrap();
        assert_eq!(socket_owner(documentation, "127.0.0.1:7777".parse().unwrap()), SocketOwner::Remote);
    }

    #[test]
    fn a_socket_that_no_process_has_open_is_hidden() {
        let found = find_holder(&Socket { inode: u64::MAX, uid: u32::MAX });
        assert_eq!(found, SocketOwner::Hidden(Vec::new()));
    }

    #[test]
    fn other_lines_do_not_match() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                    0: 0100007F:1E61 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 42 1 x 20 4 30 10 -1\n";
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        if cfg!(target_endian = "little") {
            let found = find_socket(list, address(7777), address(50000));
            assert_eq!(found, Some(Socket { inode: 42, uid: 1000 }));
        }
        assert_eq!(find_socket(list, address(50000), address(7777)), None, "the other end");
        assert_eq!(find_socket("", address(1), address(2)), None);
    }
}
