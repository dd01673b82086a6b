//! F58: HTTP clients that are slow, silent, send huge bodies or garbage, against a server with the usual limits.
//! Meanwhile another server on the same state directory is queried over stdio.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;

use super::Trial;
use super::bulk::run_parallel;
use super::mcp_clients::{HttpClient, StdioClient, measure_at_rate};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::machine::{raise_file_limit, set_default_file_limit};
use crate::processes::{peak_kib, rss_kib};

const SLOW: usize = 1_000;
const SILENT: usize = 10_000;
const HUGE: usize = 8;
const HUGE_BYTES: usize = 100 << 20;
const UNFINISHED_LONG: usize = 64;
const GARBAGE: usize = 200;
const SESSIONS: usize = 10_000;
const STDIO_REQUESTS_PER_SECOND: u32 = 50;
/// The longest body the server accepts.
const MAX_BODY_BYTES: usize = 4 << 20;
const BLOCK_BYTES: usize = 64 << 10;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let testbed = trial.testbed(1)?;
    let agent = testbed.agent("idle", &json!([{"read_stdin": "all"}]))?;
    set_default_file_limit();
    let started = HttpClient::start(&testbed, &agent)
        .and_then(|http| Ok((http, StdioClient::start(&testbed, &agent)?)));
    raise_file_limit();
    let (http, mut stdio) = started?;
    let before = rss_kib(http.child.id()).ok_or(LoadError::ServerGone)?;
    let is_over = AtomicBool::new(false);
    let (counts, mut stdio_ms) = std::thread::scope(|scope| {
        let stdio_requests =
            scope.spawn(|| measure_at_rate(STDIO_REQUESTS_PER_SECOND, &is_over, || stdio.request_status()));
        let counts = run_attacks(trial, &http);
        is_over.store(true, Ordering::Relaxed);
        let stdio_ms = stdio_requests.join().unwrap_or(Err(LoadError::ServerGone))?;
        Ok::<_, LoadError>((counts?, stdio_ms))
    })?;
    let attacks_ended = Instant::now();
    trial.deadline.wait_until(
        "waiting for a response after the attacks",
        std::time::Duration::from_secs(60),
        || Ok(http.request_status().is_ok()),
    )?;
    let recovery_seconds = attacks_ended.elapsed().as_secs_f64();
    let peak = peak_kib(http.child.id()).ok_or(LoadError::ServerGone)?;
    let grown = peak.saturating_sub(before) as f64 / 1024.0;
    let mut figures: Vec<Figure> = counts.into_iter().flat_map(StatusCounts::figures).collect();
    figures.extend([
        Figure::unbounded("first response after the attacks", recovery_seconds, "s"),
        Figure::at_most(64.0, "server over HTTP, peak growth (RSS)", grown, "MiB"),
        Figure::count("requests over stdio meanwhile", stdio_ms.len()),
        Figure::unbounded("status over stdio, p50", percentile(&mut stdio_ms, 50.0), "ms"),
        Figure::at_most(250.0, "status over stdio, p99", percentile(&mut stdio_ms, 99.0), "ms"),
        Figure::unbounded("status over stdio, longest", percentile(&mut stdio_ms, 100.0), "ms"),
    ]);
    Ok(figures)
}

fn run_attacks(trial: &Trial, http: &HttpClient) -> Result<Vec<StatusCounts>, LoadError> {
    Ok(vec![
        unfinished_headers(http, trial.scaled(SLOW, 10))?,
        silent_connections(http, trial.scaled(SILENT, 10))?,
        unfinished_bodies(http, trial.scaled(SLOW, 10))?,
        unfinished_long_bodies(http, trial.scaled(UNFINISHED_LONG, 4))?,
        huge_bodies(http, trial.scaled(HUGE, 2))?,
        garbage(http, trial.scaled(GARBAGE, 8))?,
        sessions(http, trial.scaled(SESSIONS, 10))?,
    ])
}

/// Opens `count` connections, sends `payload` on each, and reads every response to its end.
fn send_from_all(
    http: &HttpClient,
    count: usize,
    payload: &[u8],
    mut counts: StatusCounts,
) -> Result<StatusCounts, LoadError> {
    let connections = (0..count).map(|_| {
        let mut stream = http.connect()?;
        // A refused client cannot send more; the response shows it.
        let _ = stream.write_all(payload);
        Ok(stream)
    });
    let streams = connections.collect::<Result<Vec<TcpStream>, LoadError>>()?;
    streams.into_iter().for_each(|stream| counts.read_status(stream));
    Ok(counts)
}

fn unfinished_headers(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    let counts = StatusCounts::new("slow headers", &[408, NO_RESPONSE]);
    send_from_all(http, count, b"POST /mcp HTTP/1.1\r\nHost: 127", counts)
}

fn silent_connections(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    send_from_all(http, count, b"", StatusCounts::new("silent connections", &[NO_RESPONSE]))
}

fn unfinished_bodies(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    let payload = http.request_head("POST", "Content-Length: 100\r\n") + "{\"jsonrpc\":";
    send_from_all(http, count, payload.as_bytes(), StatusCounts::new("slow bodies", &[408, 503]))
}

fn unfinished_long_bodies(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    let head = http.request_head("POST", &format!("Content-Length: {MAX_BODY_BYTES}\r\n"));
    let payload = [head.into_bytes(), vec![b'x'; MAX_BODY_BYTES - 1]].concat();
    send_from_all(http, count, &payload, StatusCounts::new("bodies of 4 MiB less a byte", &[408, 503]))
}

fn huge_bodies(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    let numbers: Vec<usize> = (0..count).collect();
    let streams = run_parallel(&numbers, count, |number| {
        let chunk = [format!("{BLOCK_BYTES:x}\r\n").as_bytes(), &[b'['; BLOCK_BYTES], b"\r\n"].concat();
        let (head, block) = match number % 2 {
            0 => (
                http.request_head("POST", &format!("Content-Length: {HUGE_BYTES}\r\n")),
                vec![b'['; BLOCK_BYTES],
            ),
            _ => (http.request_head("POST", "Transfer-Encoding: chunked\r\n"), chunk),
        };
        let mut stream = http.connect()?;
        let _ = stream.write_all(head.as_bytes());
        let _ = (0..HUGE_BYTES / BLOCK_BYTES).try_for_each(|_| stream.write_all(&block));
        Ok(stream)
    })?;
    let mut counts = StatusCounts::new("bodies of 100 MiB", &[413, 503]);
    streams.into_iter().for_each(|stream| counts.read_status(stream));
    Ok(counts)
}

fn garbage(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    let body = |text: String| {
        let headers = format!("Content-Length: {}\r\nConnection: close\r\n", text.len());
        (http.request_head("POST", &headers) + &text).into_bytes()
    };
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let pipelined = (http.request_head("POST", "Content-Length: 2\r\n") + "{}").repeat(100).into_bytes();
    let kinds = [
        bytes.clone(),
        [pipelined, bytes].concat(),
        body("[".repeat(MAX_BODY_BYTES - 1)),
        body("[".repeat(10_000)),
        body(format!("[{}1]", "1,".repeat(MAX_BODY_BYTES / 2 - 2))),
        body(format!("[{}1]", "1,".repeat(10_000))),
    ];
    let mut counts = StatusCounts::new("garbage, deep and wide JSON", &[400, 413]);
    for payload in kinds.iter().cycle().take(count) {
        counts = send_from_all(http, 1, payload, counts)?;
    }
    Ok(counts)
}

fn sessions(http: &HttpClient, count: usize) -> Result<StatusCounts, LoadError> {
    let mut counts = StatusCounts::new("sessions that are never deleted", &[200]);
    for _ in 0..count {
        counts.count_response(&http.initialize()?);
    }
    Ok(counts)
}

/// Responses to one kind of client, by status.
struct StatusCounts {
    attack: &'static str,
    expected: &'static [u16],
    counts: BTreeMap<u16, usize>,
}

/// The connection was closed without a response.
const NO_RESPONSE: u16 = 0;

impl StatusCounts {
    fn new(attack: &'static str, expected: &'static [u16]) -> StatusCounts {
        StatusCounts { attack, expected, counts: BTreeMap::new() }
    }

    /// Reads until the server closes the connection. A connection that stays open counts as an unexpected status.
    fn read_status(&mut self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.add(u16::MAX),
            _ => self.count_response(&String::from_utf8_lossy(&bytes)),
        }
    }

    fn count_response(&mut self, response: &str) {
        let status = response.strip_prefix("HTTP/1.1 ").and_then(|status| status.get(..3)?.parse().ok());
        self.add(status.unwrap_or(NO_RESPONSE));
    }

    fn add(&mut self, status: u16) {
        *self.counts.entry(status).or_default() += 1;
    }

    fn figures(mut self) -> Vec<Figure> {
        let attack = self.attack;
        let mut figures = Vec::new();
        for status in self.expected {
            let count = self.counts.remove(status).unwrap_or(0);
            let what = match *status {
                NO_RESPONSE => format!("{attack}: closed"),
                status => format!("{attack}: status {status}"),
            };
            figures.push(Figure::count(what, count));
        }
        let others: Vec<String> = self.counts.keys().map(u16::to_string).collect();
        let what = match others.is_empty() {
            true => format!("{attack}: other responses"),
            false => format!("{attack}: other responses ({})", others.join(", ")),
        };
        figures.push(Figure::must_be_zero(what, self.counts.values().sum()));
        figures
    }
}
