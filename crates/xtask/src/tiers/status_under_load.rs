//! L2: latency of the MCP server's status while every agent prints its events.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Trial;
use super::bulk::{event_agent, submit_all, wait_all_ended, wait_all_started};
use super::mcp_clients::{HttpClient, StdioClient, measure_at_rate};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::processes::peak_kib;

const AGENTS: usize = 500;
const EVENTS: u64 = 2_000;
const STDIO_REQUESTS_PER_SECOND: u32 = 100;
const HTTP_REQUESTS_PER_SECOND: u32 = 20;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.fit_to_machine(trial.scaled(AGENTS, 10), 3);
    let testbed = trial.testbed(agents)?;
    let (agent, go_file) = event_agent(&testbed, EVENTS, 160)?;
    let server = testbed.server()?;
    let ids = submit_all(&server, &vec![agent.as_path(); agents])?;
    wait_all_started(trial, &testbed, &ids)?;
    let mut stdio = StdioClient::start(&testbed, &agent)?;
    let http = HttpClient::start(&testbed, &agent)?;
    let is_over = AtomicBool::new(false);
    let (mut stdio_ms, mut http_ms) = std::thread::scope(|scope| {
        let stdio_requests =
            scope.spawn(|| measure_at_rate(STDIO_REQUESTS_PER_SECOND, &is_over, || stdio.request_status()));
        let http_requests =
            scope.spawn(|| measure_at_rate(HTTP_REQUESTS_PER_SECOND, &is_over, || http.request_status()));
        std::fs::write(&go_file, "").map_err(LoadError::io("create the go file"))?;
        let ended = wait_all_ended(trial, &testbed.engine(), Duration::from_secs(240), || {});
        is_over.store(true, Ordering::Relaxed);
        let gone = || Err(LoadError::ServerGone);
        let (stdio_ms, http_ms) = (
            stdio_requests.join().unwrap_or_else(|_| gone()),
            http_requests.join().unwrap_or_else(|_| gone()),
        );
        ended?;
        Ok::<_, LoadError>((stdio_ms?, http_ms?))
    })?;
    let peak = |child: &Child| peak_kib(child.id()).map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    Ok(vec![
        Figure::count("agents at once", agents),
        Figure::count("requests over stdio", stdio_ms.len()),
        Figure::at_most(5.0, "status over stdio, p50", percentile(&mut stdio_ms, 50.0), "ms"),
        Figure::at_most(50.0, "status over stdio, p99", percentile(&mut stdio_ms, 99.0), "ms"),
        Figure::at_most(250.0, "status over stdio, longest", percentile(&mut stdio_ms, 100.0), "ms"),
        Figure::count("requests over HTTP", http_ms.len()),
        Figure::at_most(5.0, "status over HTTP, p50", percentile(&mut http_ms, 50.0), "ms"),
        Figure::at_most(50.0, "status over HTTP, p99", percentile(&mut http_ms, 99.0), "ms"),
        Figure::at_most(250.0, "status over HTTP, longest", percentile(&mut http_ms, 100.0), "ms"),
        Figure::at_most(64.0, "server over stdio, peak memory (RSS)", peak(&stdio.child), "MiB"),
        Figure::at_most(64.0, "server over HTTP, peak memory (RSS)", peak(&http.child), "MiB"),
    ])
}
