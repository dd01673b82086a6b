//! F58: peers that are slow, silent, greedy or talk nonsense, at an HTTP server with the usual limits, while somebody else
//! asks another server of the same state directory over stdio.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;

use super::Trial;
use super::crowd::side_by_side;
use super::hosts::{OverHttp, OverStdio, paced};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::machine::{raise_file_limit, usual_file_limit};
use crate::processes::{peak_kib, rss_kib};

const SLOW: usize = 1_000;
const SILENT: usize = 10_000;
const HUGE: usize = 8;
const HUGE_BYTES: usize = 100 << 20;
const UNFINISHED: usize = 64;
const GARBAGE: usize = 200;
const SESSIONS: usize = 10_000;
/// Questions a second over stdio meanwhile.
const MEANWHILE: u32 = 50;
/// The longest body that is taken.
const LONGEST: usize = 4 << 20;
const BLOCK: usize = 64 << 10;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let stage = trial.stage(1)?;
    let agent = stage.agent("idle", &json!([{"read_stdin": "all"}]))?;
    usual_file_limit();
    let started =
        OverHttp::start(&stage, &agent).and_then(|http| Ok((http, OverStdio::start(&stage, &agent)?)));
    raise_file_limit();
    let (http, mut stdio) = started?;
    let before = rss_kib(http.child.id()).ok_or(LoadError::ServerGone)?;
    let over = AtomicBool::new(false);
    let (told, mut took) = std::thread::scope(|scope| {
        let meanwhile = scope.spawn(|| paced(MEANWHILE, &over, || stdio.ask()));
        let told = be_rude(trial, &http);
        over.store(true, Ordering::Relaxed);
        let took = meanwhile.join().unwrap_or(Err(LoadError::ServerGone))?;
        Ok::<_, LoadError>((told?, took))
    })?;
    let asked = Instant::now();
    trial
        .patience
        .until("being answered again", std::time::Duration::from_secs(60), || Ok(http.ask().is_ok()))?;
    let again = asked.elapsed().as_secs_f64();
    let most = peak_kib(http.child.id()).ok_or(LoadError::ServerGone)?;
    let grown = most.saturating_sub(before) as f64 / 1024.0;
    let mut figures: Vec<Figure> = told.into_iter().flat_map(Told::figures).collect();
    figures.extend([
        Figure::told("afterwards: answered again after", again, "s"),
        Figure::at_most(64.0, "server over HTTP, most it grew (RSS)", grown, "MiB"),
        Figure::count("questions over stdio meanwhile", took.len()),
        Figure::told("status over stdio, p50", percentile(&mut took, 50.0), "ms"),
        Figure::at_most(250.0, "status over stdio, p99", percentile(&mut took, 99.0), "ms"),
        Figure::told("status over stdio, longest", percentile(&mut took, 100.0), "ms"),
    ]);
    Ok(figures)
}

fn be_rude(trial: &Trial, http: &OverHttp) -> Result<Vec<Told>, LoadError> {
    Ok(vec![
        headers_without_end(http, trial.scaled(SLOW, 10))?,
        nothing_at_all(http, trial.scaled(SILENT, 10))?,
        bodies_without_end(http, trial.scaled(SLOW, 10))?,
        long_bodies_without_end(http, trial.scaled(UNFINISHED, 4))?,
        huge_bodies(http, trial.scaled(HUGE, 2))?,
        garbage(http, trial.scaled(GARBAGE, 8))?,
        sessions(http, trial.scaled(SESSIONS, 10))?,
    ])
}

/// Every one says this much and waits for the end.
fn all_say(http: &OverHttp, count: usize, words: &[u8], mut told: Told) -> Result<Told, LoadError> {
    let said = (0..count).map(|_| {
        let mut stream = http.connect()?;
        // Whoever was refused cannot be told more; the answer shows it.
        let _ = stream.write_all(words);
        Ok(stream)
    });
    let streams = said.collect::<Result<Vec<TcpStream>, LoadError>>()?;
    streams.into_iter().for_each(|stream| told.hear(stream));
    Ok(told)
}

fn headers_without_end(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    let told = Told::of("slow headers", &[408, 503]);
    all_say(http, count, b"POST /mcp HTTP/1.1\r\nHost: 127", told)
}

fn nothing_at_all(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    all_say(http, count, b"", Told::of("silent connections", &[NO_WORD, 503]))
}

fn bodies_without_end(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    let words = http.head("POST", "Content-Length: 100\r\n") + "{\"jsonrpc\":";
    all_say(http, count, words.as_bytes(), Told::of("slow bodies", &[408, 503]))
}

fn long_bodies_without_end(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    let head = http.head("POST", &format!("Content-Length: {LONGEST}\r\n"));
    let words = [head.into_bytes(), vec![b'x'; LONGEST - 1]].concat();
    all_say(http, count, &words, Told::of("bodies of 4 MiB less a byte", &[408, 503]))
}

fn huge_bodies(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    let numbers: Vec<usize> = (0..count).collect();
    let streams = side_by_side(&numbers, count, |number| {
        let chunk = [format!("{BLOCK:x}\r\n").as_bytes(), &[b'['; BLOCK], b"\r\n"].concat();
        let (head, block) = match number % 2 {
            0 => (http.head("POST", &format!("Content-Length: {HUGE_BYTES}\r\n")), vec![b'['; BLOCK]),
            _ => (http.head("POST", "Transfer-Encoding: chunked\r\n"), chunk),
        };
        let mut stream = http.connect()?;
        let _ = stream.write_all(head.as_bytes());
        let _ = (0..HUGE_BYTES / BLOCK).try_for_each(|_| stream.write_all(&block));
        Ok(stream)
    })?;
    let mut told = Told::of("bodies of 100 MiB", &[413, 503]);
    streams.into_iter().for_each(|stream| told.hear(stream));
    Ok(told)
}

fn garbage(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    let body = |text: String| {
        let more = format!("Content-Length: {}\r\nConnection: close\r\n", text.len());
        (http.head("POST", &more) + &text).into_bytes()
    };
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let in_a_row = (http.head("POST", "Content-Length: 2\r\n") + "{}").repeat(100).into_bytes();
    let kinds = [
        bytes.clone(),
        [in_a_row, bytes].concat(),
        body("[".repeat(LONGEST - 1)),
        body("[".repeat(10_000)),
        body(format!("[{}1]", "1,".repeat(LONGEST / 2 - 2))),
        body(format!("[{}1]", "1,".repeat(10_000))),
    ];
    let mut told = Told::of("garbage, deep and wide JSON", &[400, 413]);
    for words in kinds.iter().cycle().take(count) {
        told = all_say(http, 1, words, told)?;
    }
    Ok(told)
}

fn sessions(http: &OverHttp, count: usize) -> Result<Told, LoadError> {
    let mut told = Told::of("sessions nobody deletes", &[200]);
    for _ in 0..count {
        told.note(&http.greet()?);
    }
    Ok(told)
}

/// What peers of one kind were told, by status.
struct Told {
    who: &'static str,
    expected: &'static [u16],
    counts: BTreeMap<u16, usize>,
}

/// The connection was ended without one.
const NO_WORD: u16 = 0;

impl Told {
    fn of(who: &'static str, expected: &'static [u16]) -> Told {
        Told { who, expected, counts: BTreeMap::new() }
    }

    /// Until the server ends it; one that does not is told nothing that was expected.
    fn hear(&mut self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.add(u16::MAX),
            _ => self.note(&String::from_utf8_lossy(&bytes)),
        }
    }

    fn note(&mut self, answer: &str) {
        let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        self.add(status.unwrap_or(NO_WORD));
    }

    fn add(&mut self, status: u16) {
        *self.counts.entry(status).or_default() += 1;
    }

    fn figures(mut self) -> Vec<Figure> {
        let who = self.who;
        let mut figures = Vec::new();
        for status in self.expected {
            let count = self.counts.remove(status).unwrap_or(0);
            let what = match *status {
                NO_WORD => format!("{who}: closed"),
                status => format!("{who}: told {status}"),
            };
            figures.push(Figure::count(what, count));
        }
        let others: Vec<String> = self.counts.keys().map(u16::to_string).collect();
        let what = match others.is_empty() {
            true => format!("{who}: anything else"),
            false => format!("{who}: anything else ({})", others.join(", ")),
        };
        figures.push(Figure::none_of(what, self.counts.values().sum()));
        figures
    }
}
