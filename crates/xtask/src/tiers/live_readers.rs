//! L13: readers of the event stream of the HTTP API while 500 agents print: what they cost the server, and that a
//! reader that stopped for a while misses no event of its task.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Trial;
use super::bulk::{submit_all, wait_all_started};
use super::mcp_clients::HttpClient;
use crate::clock::sleep;
use crate::error::LoadError;
use crate::figures::Figure;
use crate::processes::{cpu_seconds, peak_kib, rss_kib};

const AGENTS: usize = 500;
const EVENTS_PER_SECOND: f64 = 0.2;
const READERS: usize = 50;
const DURATION_SECONDS: usize = 60;
/// How long one reader stops reading.
const STOP_SECONDS: usize = 20;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.fit_to_machine(trial.scaled(AGENTS, 10), 3);
    let testbed = trial.testbed(agents)?;
    let agent = testbed.agent(
        "slow",
        &json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started",
            {"events": {"per_second": EVENTS_PER_SECOND, "timed": true, "bytes": 200}}
        ]),
    )?;
    let ids = submit_all(&testbed.server()?, &vec![agent.as_path(); agents])?;
    wait_all_started(trial, &testbed, &ids)?;
    let http = HttpClient::start(&testbed, &agent)?;
    let server = http.child.id();
    let phase = |what: &'static str, seconds: usize| -> Result<(f64, f64), LoadError> {
        let (before, started) = (cpu_seconds(&[server]), Instant::now());
        trial.deadline.sleep(what, Duration::from_secs(trial.scaled(seconds, 5) as u64))?;
        let percent = (cpu_seconds(&[server]) - before) / started.elapsed().as_secs_f64() * 100.0;
        Ok((percent, rss_kib(server).ok_or(LoadError::ServerGone)? as f64 / 1024.0))
    };
    let (idle_cpu, idle_memory) = phase("measuring the server without readers", 10)?;
    let is_over = AtomicBool::new(false);
    let (changes, mut figures) = (AtomicU64::new(0), Vec::new());
    thread::scope(|scope| {
        let stop = StopOnDrop(&is_over);
        let path = format!("/api/v1/stream?task={}", ids[0]);
        let stopping = open(&http, &path)?;
        let stop_for = Duration::from_secs(trial.scaled(STOP_SECONDS, 5) as u64);
        let is_over = &is_over;
        let stopped = scope.spawn(move || follow(stopping, is_over, Some(stop_for), &AtomicU64::new(0)));
        let (one_cpu, one_memory) = phase("measuring one reader", DURATION_SECONDS)?;
        for _ in 1..READERS {
            let stream = open(&http, "/api/v1/stream")?;
            scope.spawn(|| follow(stream, is_over, None, &changes));
        }
        let (all_cpu, all_memory) = phase("measuring all readers", DURATION_SECONDS)?;
        drop(stop);
        let (events, missing) = stopped.join().map_err(|_| LoadError::ServerGone)??;
        figures = vec![
            Figure::count("agents at once", agents),
            Figure::unbounded("server without readers, CPU of one core", idle_cpu, "%"),
            Figure::unbounded("server without readers, memory (RSS)", idle_memory, "MiB"),
            Figure::unbounded("one reader, CPU of one core", one_cpu, "%"),
            Figure::unbounded("one reader, memory (RSS)", one_memory, "MiB"),
            Figure::unbounded(format!("{READERS} readers, CPU of one core"), all_cpu, "%"),
            Figure::unbounded(format!("{READERS} readers, memory (RSS)"), all_memory, "MiB"),
            Figure::count("changes that the other readers got", changes.load(Ordering::Relaxed) as usize),
            Figure::count("events of its task that the stopped reader got", events),
            Figure::must_be_zero("events that it missed", missing),
        ];
        Ok::<(), LoadError>(())
    })?;
    let peak = peak_kib(server).ok_or(LoadError::ServerGone)? as f64 / 1024.0;
    figures.push(Figure::unbounded("server, memory at most", peak, "MiB"));
    Ok(figures)
}

/// Also ends the readers if the tier fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn open(http: &HttpClient, path: &str) -> Result<TcpStream, LoadError> {
    let head = http.request_head("GET", "").replace(" /mcp ", &format!(" {path} "));
    let mut stream = http.connect()?;
    stream.write_all(head.as_bytes()).map_err(LoadError::io("send a request over HTTP"))?;
    Ok(stream)
}

/// Reads until it is over, and does nothing for a while after the first event of its task. Returns the number of
/// events, and how many numbers were missing.
fn follow(
    stream: TcpStream,
    is_over: &AtomicBool,
    mut stop_for: Option<Duration>,
    changes: &AtomicU64,
) -> Result<(usize, usize), LoadError> {
    let (mut events, mut last, mut missing) = (0, 0, 0);
    let mut name = String::new();
    for line in BufReader::new(stream).lines() {
        if is_over.load(Ordering::Relaxed) {
            return Ok((events, missing));
        }
        let line = line.map_err(LoadError::io("read the event stream"))?;
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if name == "change" {
            changes.fetch_add(1, Ordering::Relaxed);
        }
        if name == "task_event" {
            let event: serde_json::Value = serde_json::from_str(data).map_err(|_| LoadError::ServerGone)?;
            let number = event["number"].as_u64().unwrap_or(0) as usize;
            missing += number.saturating_sub(last + 1);
            (events, last) = (events + 1, number);
            if events > 2
                && let Some(length) = stop_for.take()
            {
                sleep(length);
            }
        }
    }
    Err(LoadError::ServerGone)
}
