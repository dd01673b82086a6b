//! L2: what the MCP server answers, and how soon, while every agent tells its events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Trial;
use super::crowd::{all_have_ended, all_have_spoken, chatter, submit_all};
use crate::clock::{milliseconds, pause_until};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::processes::peak_kib;
use crate::stage::Stage;

const AGENTS: usize = 500;
const EVENTS: u64 = 2_000;
/// Questions a second.
const OVER_STDIO: u32 = 100;
const OVER_HTTP: u32 = 20;
const STATELESS: &str = "2026-07-28";

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.with_room(trial.scaled(AGENTS, 10), 3);
    let stage = trial.stage(agents)?;
    let (agent, go) = chatter(&stage, EVENTS, 160)?;
    let server = stage.server()?;
    let ids = submit_all(&server, &vec![agent.as_path(); agents])?;
    all_have_spoken(trial, &stage, &ids)?;
    let mut stdio = OverStdio::start(&stage, &agent)?;
    let http = OverHttp::start(&stage, &agent)?;
    let over = AtomicBool::new(false);
    let (mut by_stdio, mut by_http) = std::thread::scope(|scope| {
        let one = scope.spawn(|| paced(OVER_STDIO, &over, || stdio.ask()));
        let other = scope.spawn(|| paced(OVER_HTTP, &over, || http.ask()));
        std::fs::write(&go, "").map_err(LoadError::io("give the sign"))?;
        let ended = all_have_ended(trial, &stage.door(), Duration::from_secs(240), || {});
        over.store(true, Ordering::Relaxed);
        let gone = || Err(LoadError::ServerGone);
        let (one, other) = (one.join().unwrap_or_else(|_| gone()), other.join().unwrap_or_else(|_| gone()));
        ended?;
        Ok::<_, LoadError>((one?, other?))
    })?;
    let peak = |child: &Child| peak_kib(child.id()).map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    Ok(vec![
        Figure::count("agents at once", agents),
        Figure::count("questions over stdio", by_stdio.len()),
        Figure::at_most(5.0, "status over stdio, p50", percentile(&mut by_stdio, 50.0), "ms"),
        Figure::at_most(50.0, "status over stdio, p99", percentile(&mut by_stdio, 99.0), "ms"),
        Figure::at_most(250.0, "status over stdio, longest", percentile(&mut by_stdio, 100.0), "ms"),
        Figure::count("questions over HTTP", by_http.len()),
        Figure::at_most(5.0, "status over HTTP, p50", percentile(&mut by_http, 50.0), "ms"),
        Figure::at_most(50.0, "status over HTTP, p99", percentile(&mut by_http, 99.0), "ms"),
        Figure::at_most(250.0, "status over HTTP, longest", percentile(&mut by_http, 100.0), "ms"),
        Figure::at_most(64.0, "server over stdio, most memory (RSS)", peak(&stdio.child), "MiB"),
        Figure::at_most(64.0, "server over HTTP, most memory (RSS)", peak(&http.child), "MiB"),
    ])
}

/// Asks in a rhythm until it is over; how long each answer took, in ms.
fn paced(
    a_second: u32,
    over: &AtomicBool,
    mut ask: impl FnMut() -> Result<(), LoadError>,
) -> Result<Vec<f64>, LoadError> {
    let begun = Instant::now();
    let mut took = Vec::new();
    for number in 0_u32.. {
        pause_until(begun + Duration::from_secs(1) * number / a_second);
        if over.load(Ordering::Relaxed) {
            break;
        }
        let asked = Instant::now();
        ask()?;
        took.push(milliseconds(asked.elapsed()));
    }
    Ok(took)
}

/// The status of one state directory, as a host asks for it.
fn question() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "_codex_local_status", "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

fn is_an_answer(text: &str) -> Result<(), LoadError> {
    match text.contains(" running, ") {
        true => Ok(()),
        false => Err(LoadError::ServerGone),
    }
}

struct OverStdio {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl OverStdio {
    fn start(stage: &Stage, agent: &Path) -> Result<OverStdio, LoadError> {
        let mut command = stage.call(agent, &["serve"]);
        let mut child =
            command.stdin(Stdio::piped()).spawn().map_err(LoadError::io("start a server on stdio"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = pipes.ok_or(LoadError::ServerGone)?;
        let mut server = OverStdio { child, questions, answers: BufReader::new(answers) };
        server.ask()?;
        Ok(server)
    }

    fn ask(&mut self) -> Result<(), LoadError> {
        writeln!(self.questions, "{}", question()).map_err(LoadError::io("ask over stdio"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(LoadError::io("be answered over stdio"))?;
        is_an_answer(&line)
    }
}

struct OverHttp {
    child: Child,
    address: String,
    token: String,
}

impl OverHttp {
    fn start(stage: &Stage, agent: &Path) -> Result<OverHttp, LoadError> {
        let mut command = stage.call(agent, &["serve", "--http", "127.0.0.1:0"]);
        let mut child =
            command.stderr(Stdio::piped()).spawn().map_err(LoadError::io("start a server on HTTP"))?;
        let said = BufReader::new(child.stderr.take().ok_or(LoadError::ServerGone)?);
        let address = said
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_suffix("/mcp")?.rsplit_once("http://")?.1.to_owned()));
        let token = std::fs::read_to_string(stage.state_dir().join("http-token"));
        let token = token.map_err(LoadError::io("read the token"))?.trim().to_owned();
        let server = OverHttp { child, address: address.ok_or(LoadError::ServerGone)?, token };
        server.ask()?;
        Ok(server)
    }

    fn ask(&self) -> Result<(), LoadError> {
        let (body, OverHttp { address, token, .. }) = (question().to_string(), self);
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: _codex_local_status\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        is_an_answer(&asked().map_err(LoadError::io("ask over HTTP"))?)
    }
}
