//! L9: thousands of short tasks through several servers. Whatever grows with their number is a leak.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::Trial;
use super::bulk::wait_all_ended;
use crate::clock::sleep;
use crate::engine_calls::leftovers;
use crate::error::LoadError;
use crate::figures::{Figure, slope};
use crate::processes::{open_files, rss_kib, threads, zombies_of};
use crate::server::handle::Server;
use crate::testbed::Testbed;

const TASKS: usize = 10_000;
const SERVERS: usize = 5;
const SLOTS: usize = 20;
/// More than slots, so that some tasks are always queued.
const CLIENTS: usize = 24;
/// One in so many tasks is cancelled while it runs.
const CANCEL_ONE_IN: u64 = 10;
/// The baseline is sampled after this fraction of the tasks.
const WARM_UP: f64 = 0.1;
const SAMPLES: usize = 40;

/// Resources a server holds.
#[derive(Debug, Clone, Copy)]
struct Sample {
    done: usize,
    server: usize,
    files: usize,
    threads: usize,
    rss_kib: u64,
    /// Size of the database's write-ahead log at that moment; it is removed when the last connection closes.
    log_bytes: u64,
}

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let tasks = trial.scaled(TASKS, 100);
    let testbed = trial.testbed(SLOTS)?;
    let agent = short_agent(&testbed)?;
    let servers: Vec<Server> = (0..SERVERS).map(|_| testbed.server()).collect::<Result<_, _>>()?;
    // Every server has done everything once before the baseline is taken.
    let warm_up = ((tasks as f64 * WARM_UP) as usize).max(SERVERS);
    run_tasks(trial, &testbed, (&servers, &agent), warm_up, &mut Vec::new())?;
    wait_all_ended(trial, &testbed.engine(), Duration::from_secs(120), || {})?;
    settle(trial, &servers)?;
    let before: Vec<Sample> = sample(&testbed, &servers, warm_up);
    let mut samples = before.clone();
    let started = std::time::Instant::now();
    run_tasks(trial, &testbed, (&servers, &agent), tasks - warm_up, &mut samples)?;
    wait_all_ended(trial, &testbed.engine(), Duration::from_secs(120), || {})?;
    let elapsed = started.elapsed();
    settle(trial, &servers)?;
    let after = sample(&testbed, &servers, tasks);
    samples.extend(&after);
    let log_mib =
        samples.iter().map(|sample| sample.log_bytes).max().unwrap_or(0) as f64 / f64::from(1 << 20);
    let largest_change = |pick: fn(&Sample) -> usize| {
        let pairs = before.iter().zip(&after);
        pairs.map(|(before, after)| pick(after).abs_diff(pick(before))).max().unwrap_or(usize::MAX) as f64
    };
    let pids: Vec<u32> = servers.iter().map(Server::pid).collect();
    // A server reaps its children on the next request, if not before.
    servers.iter().try_for_each(|server| server.status().map(drop))?;
    let leftover_counts = count_leftovers(&testbed)?;
    let alive = testbed.processes().iter().filter(|process| !pids.contains(&process.pid)).count();
    Ok(vec![
        Figure::count("tasks", tasks),
        Figure::unbounded("tasks a second", (tasks - warm_up) as f64 / elapsed.as_secs_f64(), ""),
        Figure::at_most(
            5.0,
            "open files of a server, largest change",
            largest_change(|sample| sample.files),
            "",
        ),
        Figure::at_most(
            2.0,
            "threads of a server, largest change",
            largest_change(|sample| sample.threads),
            "",
        ),
        Figure::at_most(
            1.0,
            "memory growth of a server, largest",
            max_memory_slope(&samples),
            "MiB in 1,000 tasks",
        ),
        Figure::at_most(64.0, "write-ahead log of the database, largest", log_mib, "MiB"),
        Figure::must_be_zero("sockets left", leftover_counts.sockets),
        Figure::must_be_zero("launch files left", leftover_counts.launches),
        Figure::must_be_zero("half-written files left", leftover_counts.unfinished),
        Figure::must_be_zero("orphaned files and directories", leftover_counts.orphans),
        Figure::must_be_zero("cgroups left", leftover_counts.cgroups),
        Figure::must_be_zero("tasks neither completed nor cancelled", leftover_counts.other_ends),
        Figure::must_be_zero("processes left", alive),
        Figure::must_be_zero("zombies of the servers", zombies_of(&pids)),
    ])
}

fn short_agent(testbed: &Testbed) -> Result<PathBuf, LoadError> {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"delay_between_ms": [50, 500]},
        {"message": "done"}, {"turn_completed": {}}
    ]);
    testbed.agent("short", &steps)
}

/// Submits the tasks, waits for most and cancels some; samples the servers at intervals.
fn run_tasks(
    trial: &Trial,
    testbed: &Testbed,
    (servers, agent): (&[Server], &Path),
    tasks: usize,
    samples: &mut Vec<Sample>,
) -> Result<(), LoadError> {
    let (next, every) = (AtomicUsize::new(0), (tasks / SAMPLES).max(1));
    let new_samples = Mutex::new(Vec::new());
    let deadline = trial.deadline.clone();
    let seed = trial.options.seed;
    let client = |number: usize| -> Result<(), LoadError> {
        let mut random = fastrand::Rng::with_seed(seed ^ (number as u64) << 32);
        loop {
            deadline.check("soaking")?;
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= tasks {
                return Ok(());
            }
            run_task(&servers[random.usize(..servers.len())], agent, &mut random)?;
            if index % every == 0 {
                let sampled = sample(testbed, servers, index);
                new_samples.lock().unwrap_or_else(PoisonError::into_inner).extend(sampled);
            }
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().try_for_each(|client| client.join().unwrap_or(Err(LoadError::ServerGone)))
    })?;
    samples.extend(new_samples.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

fn run_task(server: &Server, agent: &Path, random: &mut fastrand::Rng) -> Result<(), LoadError> {
    let id = server.submit(agent, "be quick", None)?;
    if random.u64(..CANCEL_ONE_IN) == 0 {
        sleep(Duration::from_millis(random.u64(..300)));
        server.cancel(&id, Duration::from_secs(30))?;
    } else {
        server.wait(&id, Duration::from_secs(120))?;
    }
    Ok(())
}

fn sample(testbed: &Testbed, servers: &[Server], done: usize) -> Vec<Sample> {
    let log_bytes = std::fs::metadata(testbed.state_dir().join("registry.db-wal")).map_or(0, |log| log.len());
    let sample_of = |(server, handle): (usize, &Server)| Sample {
        done,
        server,
        files: open_files(handle.pid()),
        threads: threads(handle.pid()),
        rss_kib: rss_kib(handle.pid()).unwrap_or(0),
        log_bytes,
    };
    servers.iter().enumerate().map(sample_of).collect()
}

/// Waits until the servers are idle: two consecutive samples of threads and open files agree.
fn settle(trial: &Trial, servers: &[Server]) -> Result<(), LoadError> {
    let threads_and_files =
        || servers.iter().map(|server| (threads(server.pid()), open_files(server.pid()))).collect::<Vec<_>>();
    let mut last = threads_and_files();
    trial.deadline.wait_until("waiting for the servers to become idle", Duration::from_secs(30), || {
        sleep(Duration::from_millis(500));
        let now = threads_and_files();
        let is_settled = now == last;
        last = now;
        Ok(is_settled)
    })
}

/// Growth of the fastest growing server, in MiB per 1,000 tasks.
fn max_memory_slope(samples: &[Sample]) -> f64 {
    let points_of = |server: usize| -> Vec<(f64, f64)> {
        let its_samples = samples.iter().filter(|sample| sample.server == server);
        its_samples.map(|sample| (sample.done as f64 / 1000.0, sample.rss_kib as f64 / 1024.0)).collect()
    };
    (0..SERVERS).map(|server| slope(&points_of(server))).fold(f64::MIN, f64::max)
}

#[derive(Debug, Default)]
struct Leftovers {
    sockets: usize,
    launches: usize,
    unfinished: usize,
    orphans: usize,
    cgroups: usize,
    other_ends: usize,
}

fn count_leftovers(testbed: &Testbed) -> Result<Leftovers, LoadError> {
    use delegator_domain::task::State;
    let registry = testbed.engine().registry()?;
    let counts = registry.counts()?;
    let ended_well = [State::Completed, State::Cancelled];
    let other_ends =
        counts.iter().filter(|(state, _)| !ended_well.contains(state)).map(|(_, count)| count as usize);
    let mut leftover_counts = Leftovers {
        orphans: leftovers(&registry)?.len(),
        other_ends: other_ends.sum(),
        cgroups: count_our_cgroups(Path::new("/sys/fs/cgroup"), 4),
        ..Leftovers::default()
    };
    let read = |path: &Path| std::fs::read_dir(path).map_err(LoadError::io("look for leftovers"));
    for task in read(&testbed.state_dir().join("tasks"))?.flatten() {
        for file in read(&task.path())?.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            leftover_counts.launches += usize::from(name == "launch");
            leftover_counts.sockets += usize::from(name == "control.sock");
            let socket_path =
                (name == "control.path").then(|| std::fs::read_to_string(file.path()).unwrap_or_default());
            leftover_counts.sockets += usize::from(
                socket_path.is_some_and(|path| Path::new(&path).exists() && !path.ends_with("control.sock")),
            );
            leftover_counts.unfinished += usize::from(name.contains("tmp") || name.contains("part"));
        }
    }
    Ok(leftover_counts)
}

fn count_our_cgroups(dir: &Path, depth: usize) -> usize {
    if depth == 0 {
        return 0;
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| {
            let is_ours = entry.file_name().to_string_lossy().contains("delegator");
            usize::from(is_ours) + count_our_cgroups(&entry.path(), depth - 1)
        })
        .sum()
}
