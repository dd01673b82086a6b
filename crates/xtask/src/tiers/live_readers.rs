//! L13: readers of the event stream of the HTTP API, and `watch`, while 500 agents print and as many tasks wait: what
//! they cost, and that a reader that stopped for a while misses no event of its task.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::Trial;
use super::bulk::{start_slow_agents, submit_all};
use super::mcp_clients::HttpClient;
use crate::clock::sleep;
use crate::error::LoadError;
use crate::figures::Figure;
use crate::processes::{cpu_seconds, peak_kib, rss_kib};
use crate::testbed::Testbed;

const AGENTS: usize = 500;
const EVENTS_PER_SECOND: f64 = 0.2;
const READERS: usize = 50;
const DURATION_SECONDS: usize = 60;
/// Hides the cursor: part of each frame of `watch`.
const FRAME: &[u8] = b"\x1b[?25l";
/// How long one reader stops reading.
const STOP_SECONDS: usize = 20;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.fit_to_machine(trial.scaled(AGENTS, 10), 3);
    let testbed = trial.testbed(agents)?;
    let submitter = testbed.server()?;
    let (agent, ids) = start_slow_agents(trial, &testbed, &submitter, (agents, EVENTS_PER_SECOND))?;
    let http = HttpClient::start(&testbed, &agent)?;
    let server = http.child.id();
    // The CPU and the memory of a process meanwhile.
    let phase = |what: &'static str, pid: u32, seconds: usize| -> Result<(f64, f64), LoadError> {
        let (before, started) = (cpu_seconds(&[pid]), Instant::now());
        trial.deadline.sleep(what, Duration::from_secs(trial.scaled(seconds, 5) as u64))?;
        let percent = (cpu_seconds(&[pid]) - before) / started.elapsed().as_secs_f64() * 100.0;
        Ok((percent, rss_kib(pid).ok_or(LoadError::ServerGone)? as f64 / 1024.0))
    };
    let idle = phase("measuring the server without readers", server, 10)?;
    let is_over = AtomicBool::new(false);
    let (changes, mut figures) = (AtomicU64::new(0), Vec::new());
    thread::scope(|scope| {
        let stop = StopOnDrop(&is_over);
        let path = format!("/api/v1/stream?task={}", ids[0]);
        let stopping = open_stream(&http, &path)?;
        let stop_for = Duration::from_secs(trial.scaled(STOP_SECONDS, 5) as u64);
        let is_over = &is_over;
        let stopped = scope.spawn(move || follow(stopping, is_over, Some(stop_for), &AtomicU64::new(0)));
        let one = phase("measuring one reader", server, DURATION_SECONDS)?;
        for _ in 1..READERS {
            let stream = open_stream(&http, "/api/v1/stream")?;
            scope.spawn(|| follow(stream, is_over, None, &changes));
        }
        let all = phase("measuring all readers", server, DURATION_SECONDS)?;
        submit_all(&submitter, &vec![agent.as_path(); agents])?;
        let more = phase("measuring all readers of twice the tasks", server, DURATION_SECONDS)?;
        let screen = WatchScreen::open(&testbed, &agent)?;
        let watch = phase("measuring watch", screen.child.id(), DURATION_SECONDS)?;
        let frames = screen.close()?;
        drop(stop);
        let (events, missing) = stopped.join().map_err(|_| LoadError::ServerGone)??;
        figures = vec![
            Figure::count("agents at once", agents),
            Figure::count("frames of watch", frames),
            Figure::count("changes that the other readers got", changes.load(Ordering::Relaxed) as usize),
            Figure::count("events of its task that the stopped reader got", events),
            Figure::must_be_zero("events that it missed", missing),
        ];
        for (what, (cpu, memory)) in [
            ("server without readers".to_owned(), idle),
            ("server, one reader".to_owned(), one),
            (format!("server, {READERS} readers"), all),
            (format!("server, {READERS} readers of {} tasks", 2 * agents), more),
            (format!("watch of {} tasks", 2 * agents), watch),
        ] {
            figures.push(Figure::unbounded(format!("{what}: CPU of one core"), cpu, "%"));
            figures.push(Figure::unbounded(format!("{what}: memory (RSS)"), memory, "MiB"));
        }
        Ok::<(), LoadError>(())
    })?;
    let peak = peak_kib(server).ok_or(LoadError::ServerGone)? as f64 / 1024.0;
    figures.push(Figure::unbounded("server, memory at most", peak, "MiB"));
    Ok(figures)
}

/// `watch` on a terminal of 120 columns and 40 rows.
struct WatchScreen {
    child: Child,
    terminal: File,
    frames: JoinHandle<usize>,
}

impl WatchScreen {
    fn open(testbed: &Testbed, agent: &Path) -> Result<WatchScreen, LoadError> {
        let failed = |error: rustix::io::Errno| LoadError::io("open a terminal")(error.into());
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).map_err(failed)?;
        grantpt(&master).and_then(|()| unlockpt(&master)).map_err(failed)?;
        let name = ptsname(&master, Vec::new()).map_err(failed)?;
        let terminal = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).map_err(failed)?;
        tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })
            .map_err(failed)?;
        let cloned = || terminal.try_clone().map_err(LoadError::io("open a terminal"));
        let mut command = testbed.cli_call(agent, &["watch"]);
        command.env("TERM", "xterm").stdin(cloned()?).stdout(cloned()?).stderr(cloned()?);
        let child = command.spawn().map_err(LoadError::io("start watch"))?;
        let terminal = File::from(master);
        let mut output = terminal.try_clone().map_err(LoadError::io("open a terminal"))?;
        let frames = thread::spawn(move || {
            let (mut frames, mut bytes) = (0, [0; 1 << 16]);
            // Reading fails once `watch` has ended.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                frames += bytes[..read].windows(FRAME.len()).filter(|part| *part == FRAME).count();
            }
            frames
        });
        Ok(WatchScreen { child, terminal, frames })
    }

    /// Returns how many frames were drawn.
    fn close(mut self) -> Result<usize, LoadError> {
        let closed = self.terminal.write_all(b"q").and_then(|()| self.child.wait());
        closed.map_err(LoadError::io("end watch"))?;
        self.frames.join().map_err(|_| LoadError::ServerGone)
    }
}

/// Also ends the readers if the tier fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn open_stream(http: &HttpClient, path: &str) -> Result<TcpStream, LoadError> {
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
