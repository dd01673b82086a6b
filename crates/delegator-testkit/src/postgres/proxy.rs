//! A proxy between a client and the server, which cuts or hangs connections and loses single messages.
//!
//! Two threads per connection copy the bytes of one direction each. It finds a message by its text, so the client must
//! not use TLS.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What the proxy does when a message of a client contains a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Closes the connection without forwarding the message: the server never gets it.
    Request,
    /// Forwards the message, waits for the reply and closes the connection without forwarding that.
    Reply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    Forwarded,
    Hanging,
    Cut,
}

#[derive(Debug)]
struct State {
    traffic: Traffic,
    loss: Option<(Loss, Vec<u8>)>,
    lost: usize,
    streams: Vec<TcpStream>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    target: u16,
}

/// Serves until the test process ends; dropping it cuts all connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy to a loopback port.
    pub fn start(target: u16) -> Proxy {
        Proxy::start_at(Ipv4Addr::LOCALHOST, target)
    }

    /// A proxy that listens on another address of this machine.
    pub fn start_at(address: Ipv4Addr, target: u16) -> Proxy {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { traffic: Traffic::Forwarded, loss: None, lost: 0, streams: Vec::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), target });
        let connections = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&connections);
                std::thread::spawn(move || serve(client, &shared));
            }
        });
        Proxy { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes all connections, and every new one at once.
    pub fn cut(&self) {
        let mut state = self.shared.lock();
        state.traffic = Traffic::Cut;
        for stream in state.streams.drain(..) {
            close(&stream);
        }
        self.shared.changed.notify_all();
    }

    /// Forwards nothing more; connections stay open.
    pub fn hang(&self) {
        self.set(Traffic::Hanging);
    }

    /// Forwards again, also what arrived while it was hanging.
    pub fn forward(&self) {
        self.set(Traffic::Forwarded);
    }

    /// Loses the next message that contains the text, or the reply to it.
    pub fn lose(&self, loss: Loss, text: &str) {
        self.shared.lock().loss = Some((loss, text.as_bytes().to_vec()));
    }

    /// How many messages were lost.
    pub fn lost(&self) -> usize {
        self.shared.lock().lost
    }

    fn set(&self, traffic: Traffic) {
        self.shared.lock().traffic = traffic;
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the proxy hangs. False: the connection was cut.
    fn may_forward(&self) -> bool {
        let mut state = self.lock();
        while state.traffic == Traffic::Hanging {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.traffic == Traffic::Forwarded
    }
}

fn serve(client: TcpStream, shared: &Arc<Shared>) {
    if !shared.may_forward() {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target)) else {
        return;
    };
    let loses_reply = Arc::new(Mutex::new(false));
    {
        let mut state = shared.lock();
        if state.traffic == Traffic::Cut {
            return;
        }
        state.streams.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
    }
    let connection = Connection { client, server, loses_reply };
    let replies = connection.duplicate();
    let shared_by_replies = Arc::clone(shared);
    std::thread::spawn(move || replies.copy_replies(&shared_by_replies));
    connection.copy_requests(shared);
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
    loses_reply: Arc<Mutex<bool>>,
}

impl Connection {
    fn duplicate(&self) -> Connection {
        Connection {
            client: self.client.try_clone().unwrap(),
            server: self.server.try_clone().unwrap(),
            loses_reply: Arc::clone(&self.loses_reply),
        }
    }

    fn copy_requests(mut self, shared: &Shared) {
        let mut buffer = [0; 65_536];
        // The bytes before the current ones, because a text may arrive in two parts.
        let mut recent = Vec::new();
        while let Ok(length @ 1..) = self.client.read(&mut buffer) {
            let bytes = &buffer[..length];
            if !shared.may_forward() {
                break;
            }
            match take_loss(shared, &recent, bytes) {
                Some(Loss::Request) => break,
                Some(Loss::Reply) => *self.loses_reply.lock().unwrap() = true,
                None => {}
            }
            recent.extend_from_slice(bytes);
            recent.drain(..recent.len().saturating_sub(64));
            if self.server.write_all(bytes).is_err() {
                break;
            }
        }
        self.close();
    }

    fn copy_replies(mut self, shared: &Shared) {
        let mut buffer = [0; 65_536];
        while let Ok(length @ 1..) = self.server.read(&mut buffer) {
            if *self.loses_reply.lock().unwrap() {
                shared.lock().lost += 1;
                break;
            }
            if !shared.may_forward() || self.client.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        self.close();
    }

    fn close(&self) {
        close(&self.client);
        close(&self.server);
    }
}

/// Disarms the loss if the text ends in these bytes.
fn take_loss(shared: &Shared, recent: &[u8], bytes: &[u8]) -> Option<Loss> {
    let mut state = shared.lock();
    let (loss, text) = state.loss.as_ref()?;
    let before = &recent[recent.len().saturating_sub(text.len() - 1)..];
    let loss = [before, bytes].concat().windows(text.len()).any(|part| part == text).then_some(*loss)?;
    state.loss = None;
    if loss == Loss::Request {
        state.lost += 1;
    }
    Some(loss)
}

/// The other thread of the connection may have closed it already.
fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
