//! One connection of a client: the CONNECT request of the proxy protocol, TLS, then HTTP requests until it hangs up.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::routes::{self, Request};
use super::{Backend, Fault};

/// The only host that the proxy answers for.
pub(super) const HOST: &str = "chatgpt.com";

/// Errors end the connection: the client hung up.
pub(super) fn serve(stream: TcpStream, tls: Arc<ServerConfig>, backend: &Mutex<Backend>) {
    let _ = serve_until_closed(stream, tls, backend);
}

fn serve_until_closed(stream: TcpStream, tls: Arc<ServerConfig>, backend: &Mutex<Backend>) -> io::Result<()> {
    let mut plain = BufReader::new(stream);
    let Some(request) = read_request(&mut plain)? else { return Ok(()) };
    let is_ours = request.method == "CONNECT" && request.path == format!("{HOST}:443");
    if !is_ours {
        return plain.get_mut().write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    }
    plain.get_mut().write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
    let mut secure = BufReader::new(StreamOwned::new(connection, plain.into_inner()));
    while let Some(request) = read_request(&mut secure)? {
        match routes::respond(&request, &mut backend.lock().unwrap()) {
            Ok(response) => write_response(secure.get_mut(), 200, &response.to_string())?,
            Err(Fault::HttpError(status)) => {
                write_response(secure.get_mut(), status, "{\"detail\": \"refused by the test\"}")?;
            }
            Err(Fault::Garbage) => write_response(secure.get_mut(), 200, "<html>a gateway</html>")?,
            Err(Fault::Hang) => return io::copy(&mut secure, &mut io::sink()).map(|_| ()),
        }
    }
    Ok(())
}

/// Reads one request; `None` if the client sends no more.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? <= 2 {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, path, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

fn write_response(stream: &mut impl Write, status: u16, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    stream.flush()
}
