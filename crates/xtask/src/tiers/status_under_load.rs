//! L2: what the MCP server answers, and how soon, while every agent tells its events.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Trial;
use super::crowd::{all_have_ended, all_have_spoken, chatter, submit_all};
use super::hosts::{OverHttp, OverStdio, paced};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::processes::peak_kib;

const AGENTS: usize = 500;
const EVENTS: u64 = 2_000;
/// Questions a second.
const OVER_STDIO: u32 = 100;
const OVER_HTTP: u32 = 20;

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
