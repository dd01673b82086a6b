//! Speed of the fleet's database: claims, events, latencies, a long queue, and size. The reference is what the same server
//! does with bare inserts, measured by pgbench in the same run.
//!
//! Run with `cargo bench -p delegator-fleet`. It starts a durable server of its own, prints a table and asserts no times.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts processes, and panics when its setup fails"
)]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Barrier;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use delegator_domain::task::{Mode, TaskEnd};
use delegator_fleet::{
    Database, DatabaseUrl, FinishedTask, FleetClaim, NewFleetTask, NewSession, OnLost, SessionId, TaskSpec,
    new_id,
};
use delegator_testkit::postgres::PostgresServer;

const QUEUED: usize = 100_000;
const CLAIMS_PER_RUN: usize = 4_000;
const LATENCY_ROUNDS: usize = 300;
const SIZED_TASKS: usize = 1_000;
/// A line of Codex is about this long.
const EVENT_BYTES: usize = 200;
const CHUNK_EVENTS: usize = 40;
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

fn main() {
    let server = PostgresServer::start();
    let database = connect(&server);
    database.migrate().unwrap();
    println!("| figure | value |\n|---|---|");
    row("cores, load before", &format!("{}, {}", std::thread::available_parallelism().unwrap(), load()));
    row("server", &server.value("select split_part(version(), ' ', 2)"));
    for clients in [4, 16] {
        row(&format!("reference: bare inserts/s, {clients} clients"), &bare_inserts(&server, clients));
    }
    for workers in [4, 16] {
        row(&format!("claims/s, {workers} workers"), &claims(&server, workers));
        row(&format!("tasks/s (claim, start, finish), {workers} workers"), &lifecycles(&server, workers));
    }
    row("events stored/s, 4 workers, chunks of 40", &events(&server));
    let (p50, p99) = enqueue_to_claim(&server);
    row("enqueue → claim", &format!("p50 {p50}, p99 {p99}"));
    row("cancel → worker", &format!("p50 {}", cancel_to_worker(&server)));
    for (name, sets) in [("same labels", 1), ("50 sets of labels", 50)] {
        row(&format!("claim of the only task, {name}"), &claim_time(&server, sets, 0));
        row(&format!("claim, {QUEUED} queued, {name}"), &claim_time(&server, sets, QUEUED));
    }
    row("poll of an empty queue", &poll_time(&server));
    row("size of 1,000 tasks without output", &size_of_tasks(&server, 0));
    row("size of 1,000 tasks with 100 KiB of events each", &size_of_tasks(&server, 100 << 10));
    row("load after", &load());
}

fn row(name: &str, value: &str) {
    println!("| {name} | {value} |");
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

fn connect(server: &PostgresServer) -> Database {
    Database::new(&DatabaseUrl::parse(&server.url()).unwrap())
}

fn open_session(database: &Database, labels: BTreeMap<String, String>) -> SessionId {
    let session = NewSession {
        worker: new_id(),
        workspace: new_id(),
        slots: 1_000,
        labels,
        version: "bench".to_owned(),
        lease: Duration::from_secs(3_600),
    };
    database.open_session(&session).unwrap().id
}

fn spec() -> TaskSpec {
    TaskSpec {
        environment: "env_site".to_owned(),
        repo_url: "https://git.example.org/me/site".to_owned(),
        branch: None,
        setup: None,
        mode: Mode::WorkspaceWrite,
        push: false,
        text: "fix the login test ".repeat(20),
        title: "fix the login test".to_owned(),
        labels: BTreeMap::new(),
        submitter_task: None,
    }
}

fn submit(database: &Database) -> String {
    let task = NewFleetTask {
        id: new_id(),
        idempotency: None,
        spec: spec(),
        labels: BTreeMap::new(),
        priority: 0,
        on_lost: OnLost::Fail,
        max_claims: 2,
    };
    database.submit(&task).unwrap().id
}

/// Queues tasks in one statement, spread evenly over sets of labels.
fn enqueue(server: &PostgresServer, tasks: usize, sets: usize) {
    let spec = serde_json::to_string(&spec()).unwrap();
    server.execute(&format!(
        "insert into delegator.tasks (id, spec_version, spec, labels, priority, on_lost, max_claims)
         select gen_random_uuid()::text, 1, '{spec}',
            case when {sets} = 1 then '{{}}' else format('{{\"set\":\"%s\"}}', n % {sets}) end, n % 3, 'fail', 2
         from generate_series(1, {tasks}) n"
    ));
    server.execute("vacuum analyze delegator.tasks");
}

fn clear(server: &PostgresServer) {
    server.execute("truncate delegator.tasks, delegator.sessions cascade");
}

/// The limit of the server and its disk: one small row per commit.
fn bare_inserts(server: &PostgresServer, clients: usize) -> String {
    server.execute("create table if not exists reference (id bigint generated always as identity, t text)");
    let script = server.directory().join("insert.sql");
    std::fs::write(&script, "insert into reference (t) values (md5(random()::text));\n").unwrap();
    let url = server.url();
    let clients = clients.to_string();
    let arguments = ["--no-vacuum", "--jobs=2", "--time=5", "--client", &clients, "--file"];
    let output = Command::new("pgbench").args(arguments).arg(&script).arg(url).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate =
        text.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap_or_else(|| panic!("{output:?}"));
    format!("{:.0}", rate.split_whitespace().next().unwrap().parse::<f64>().unwrap())
}

/// Runs `work` in every worker at once until it has done nothing; returns how often per second it did something.
fn rate(server: &PostgresServer, workers: usize, work: impl Fn(&Database, &SessionId) -> bool + Sync) -> f64 {
    let barrier = Barrier::new(workers + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let database = connect(server);
                    let session = open_session(&database, BTreeMap::new());
                    barrier.wait();
                    let mut done = 0;
                    while work(&database, &session) {
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        barrier.wait();
        let started = Instant::now();
        let done: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        f64::from(done) / started.elapsed().as_secs_f64()
    })
}

fn claims(server: &PostgresServer, workers: usize) -> String {
    enqueue(server, CLAIMS_PER_RUN, 1);
    let rate = rate(server, workers, |database, session| !database.claim(session, 1).unwrap().is_empty());
    clear(server);
    format!("{rate:.0}")
}

fn lifecycles(server: &PostgresServer, workers: usize) -> String {
    enqueue(server, CLAIMS_PER_RUN, 1);
    let rate = rate(server, workers, |database, session| {
        let claimed = database.claim(session, 1).unwrap();
        claimed.iter().for_each(|task| run_and_finish(database, &task.claim, 0));
        !claimed.is_empty()
    });
    clear(server);
    format!("{rate:.0}")
}

fn run_and_finish(database: &Database, claim: &FleetClaim, event_bytes: usize) {
    database.start(claim).unwrap();
    let chunk = event_lines();
    let mut stored = 0;
    while stored < event_bytes as u64 {
        stored = database.append_events(claim, stored, &chunk).unwrap();
    }
    let result = format!("{{\"summary\":\"{}\"}}", "done ".repeat(400));
    database.finish(claim, &FinishedTask { end: TaskEnd::Completed, result, blobs: Vec::new() }).unwrap();
}

/// Lines that do not compress better than those of an agent.
fn event_lines() -> Vec<u8> {
    let mut lines = String::new();
    for _ in 0..CHUNK_EVENTS {
        let line = format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"{}\",\"text\":\"", new_id());
        lines += &line;
        while lines.len() % EVENT_BYTES < EVENT_BYTES - 40 {
            lines += &new_id()[..8];
            lines.push(' ');
        }
        lines += "\"}}\n";
    }
    lines.into_bytes()
}

fn events(server: &PostgresServer) -> String {
    const CHUNKS: usize = 400;
    enqueue(server, 4, 1);
    let chunks = rate(server, 4, |database, session| {
        let claimed = database.claim(session, 1).unwrap();
        let Some(task) = claimed.first() else { return false };
        database.start(&task.claim).unwrap();
        let mut stored = 0;
        for _ in 0..CHUNKS {
            stored = database.append_events(&task.claim, stored, &event_lines()).unwrap();
        }
        true
    }) * CHUNKS as f64;
    clear(server);
    let events = chunks * CHUNK_EVENTS as f64;
    format!("{events:.0} ({chunks:.0} chunks, {:.1} MB)", events * EVENT_BYTES as f64 / 1e6)
}

/// From the call that submits to the answer of the claim, in a fleet that waits for work.
fn enqueue_to_claim(server: &PostgresServer) -> (String, String) {
    let (sender, claimed_at) = mpsc::channel();
    let mut times = std::thread::scope(|scope| {
        scope.spawn(move || {
            let database = connect(server);
            let session = open_session(&database, BTreeMap::new());
            let mut listener = database.listener(&session, CHECK_INTERVAL);
            let mut claimed = 0;
            while claimed < LATENCY_ROUNDS {
                listener.wait(Duration::from_secs(1));
                for _ in database.claim(&session, 1).unwrap() {
                    claimed += 1;
                    sender.send(Instant::now()).unwrap();
                }
            }
        });
        let database = connect(server);
        let round = |_| {
            let started = Instant::now();
            submit(&database);
            claimed_at.recv().unwrap() - started
        };
        (0..LATENCY_ROUNDS).map(round).collect::<Vec<_>>()
    });
    clear(server);
    (percentile(&mut times, 50), percentile(&mut times, 99))
}

/// From the call that cancels until the worker knows.
fn cancel_to_worker(server: &PostgresServer) -> String {
    let database = connect(server);
    let session = open_session(&database, BTreeMap::new());
    let (ready, is_ready) = mpsc::channel();
    let (sender, noticed_at) = mpsc::channel();
    let mut times = std::thread::scope(|scope| {
        scope.spawn(|| {
            let worker = connect(server);
            let mut listener = worker.listener(&session, CHECK_INTERVAL);
            for _ in 0..LATENCY_ROUNDS {
                submit(&worker);
                let claimed = worker.claim(&session, 1).unwrap();
                let claim = &claimed[0].claim;
                worker.start(claim).unwrap();
                // The hint of the submission, or nothing.
                listener.wait(Duration::from_millis(20));
                ready.send(claim.task.clone()).unwrap();
                while worker.heartbeat(&session).unwrap().tasks.iter().all(|task| task.cancel.is_none()) {
                    listener.wait(Duration::from_secs(1));
                }
                sender.send(Instant::now()).unwrap();
                let end = TaskEnd::Cancelled { reason: None };
                let end = FinishedTask { end, result: "{}".to_owned(), blobs: Vec::new() };
                worker.finish(claim, &end).unwrap();
            }
        });
        let round = |_| {
            let task = is_ready.recv().unwrap();
            let started = Instant::now();
            database.cancel(&task, None).unwrap();
            noticed_at.recv().unwrap() - started
        };
        (0..LATENCY_ROUNDS).map(round).collect::<Vec<_>>()
    });
    clear(server);
    percentile(&mut times, 50)
}

/// The time of one claim with this many tasks in the queue; a worker that has the labels of one set.
fn claim_time(server: &PostgresServer, sets: usize, queued: usize) -> String {
    let labels = match sets {
        1 => BTreeMap::new(),
        _ => BTreeMap::from([("set".to_owned(), "7".to_owned())]),
    };
    if queued > 0 {
        enqueue(server, queued, sets);
    }
    let database = connect(server);
    let session = open_session(&database, labels);
    let mut times: Vec<Duration> = (0..LATENCY_ROUNDS)
        .map(|_| {
            if queued == 0 {
                submit(&database);
            }
            let started = Instant::now();
            assert_eq!(database.claim(&session, 1).unwrap().len(), 1);
            started.elapsed()
        })
        .collect();
    clear(server);
    format!("p50 {}, p99 {}", percentile(&mut times, 50), percentile(&mut times, 99))
}

fn poll_time(server: &PostgresServer) -> String {
    let database = connect(server);
    let session = open_session(&database, BTreeMap::new());
    let poll = |_| {
        let started = Instant::now();
        assert_eq!(database.claim(&session, 1).unwrap(), []);
        started.elapsed()
    };
    let mut times: Vec<Duration> = (0..LATENCY_ROUNDS).map(poll).collect();
    format!("p50 {}, p99 {}", percentile(&mut times, 50), percentile(&mut times, 99))
}

fn size_of_tasks(server: &PostgresServer, event_bytes: usize) -> String {
    let size = "select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'delegator' and c.relkind = 'r'";
    let bytes = || server.value(size).parse::<f64>().unwrap();
    let before = bytes();
    enqueue(server, SIZED_TASKS, 1);
    let database = connect(server);
    let session = open_session(&database, BTreeMap::new());
    while let Some(task) = database.claim(&session, 1).unwrap().first() {
        run_and_finish(&database, &task.claim, event_bytes);
    }
    let size = bytes() - before;
    clear(server);
    format!("{:.1} MB", size / 1e6)
}

fn percentile(times: &mut [Duration], percent: usize) -> String {
    times.sort();
    let time = times[(times.len() * percent / 100).min(times.len() - 1)];
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
