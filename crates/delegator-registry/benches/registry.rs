//! Times of registry operations with 100,000 finished tasks. `cargo bench -p delegator-registry`.
//!
//! Prints a table; nothing here passes or fails. The state directory is below `TMPDIR`, so the results depend on that
//! disk.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and stops on errors")]

#[path = "../tests/registry/support.rs"]
mod support;

use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskEnd, TaskId};
use delegator_registry::{Attempt, Filter, Finish, OpenOptions, Registry, StateDir, TaskFile};
use rusqlite::Connection;
use support::{World, begin, ended, new_task, slots};

const FINISHED: i64 = 100_000;

fn main() {
    measure_memory(&World::new());
    let world = World::new();
    insert_finished_tasks(&world);
    let size = std::fs::metadata(world.path().join("registry.db")).unwrap().len();
    println!("{FINISHED} finished tasks, {} MiB; load {}", size >> 20, load());
    println!("{:<44} {:>10} {:>10} {:>10}", "", "p50", "p99", "max");
    measure_queries(&world);
    measure_changes(&world);
    measure_burst(&world);
    measure_pruning(&world);
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .unwrap_or_default()
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Copies one real task in SQL: submitting all of them would measure the disk.
fn insert_finished_tasks(world: &World) {
    let mut registry = world.registry();
    ended(&mut registry, TaskEnd::Completed, 1_000_000);
    drop(registry);
    let db = Connection::open(world.path().join("registry.db")).unwrap();
    let columns: Vec<String> = db
        .prepare("SELECT name FROM pragma_table_info('tasks') WHERE name NOT IN ('seq', 'id', 'ended_order', 'working_dir', 'input', 'summary', 'state')")
        .unwrap()
        .query_map((), |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let columns = columns.join(", ");
    let numbers =
        format!("WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {FINISHED})");
    db.execute_batch(&format!(
        "BEGIN; \
         {numbers} INSERT INTO tasks (id, ended_order, working_dir, input, summary, state, {columns}) \
         SELECT printf('T-local-%010x', i * 7919), 4 * i, printf('/home/me/project-%d', i % 50), \
         json_object('mode', 'workspace-write', 'note', hex(zeroblob(150))), hex(zeroblob(100)), \
         CASE i % 10 WHEN 0 THEN 'cancelled' ELSE 'completed' END, {columns} FROM n, tasks WHERE seq = 1; \
         {numbers} INSERT INTO transitions (task, from_state, to_state, at_ms, cause) \
         SELECT i, s.value, 'completed', 1, 'copied' FROM n, json_each('[\"queued\", \"starting\", \"working\", \"x\"]') s; \
         {numbers} INSERT INTO labels (key, value, task) SELECT 'team', printf('t%d', i % 20), i FROM n; \
         COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"
    ))
    .unwrap();
}

fn measure(label: &str, rounds: usize, mut step: impl FnMut()) {
    let times = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            step();
            started.elapsed()
        })
        .collect();
    print_row(label, times);
}

fn print_row(label: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| format!("{:.3} ms", times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3);
    println!("{label:<44} {:>10} {:>10} {:>10}", at(50), at(99), at(100));
}

fn measure_queries(world: &World) {
    let registry = world.registry();
    measure("open the directory and the registry", 100, || drop(world.registry()));
    measure("complete status, opening the registry", 100, || status(&world.registry()));
    measure("complete status on an open registry", 200, || status(&registry));
    measure("  counts", 100, || drop(registry.counts().unwrap()));
    let any = Filter::default();
    measure("  ended, five of all", 100, || drop(registry.list_ended(&any, 0, 5, None).unwrap()));
    measure("  ended, none recent", 100, || drop(registry.list_ended(&any, 2_000_000, 5, None).unwrap()));
    measure("  unread below a directory", 100, || {
        drop(registry.unread("/home/me/project-7", None, 5).unwrap())
    });
    measure("  unread, all", 20, || drop(registry.unread("/", None, 5).unwrap()));
    measure("  active", 100, || drop(registry.active().unwrap()));
    let dir = Filter { working_dir: Some("/home/me/project-7".to_owned()), ..Filter::default() };
    measure("  list of a directory, 50 rows", 100, || drop(registry.list(&dir, 50, None).unwrap()));
    let team = [("team".to_owned(), "t3".to_owned())].into_iter().collect();
    let label = Filter { labels: team, ..Filter::default() };
    measure("  list of a label, 50 rows", 100, || drop(registry.list(&label, 50, None).unwrap()));
    measure("  ended with a label, five of 5,000", 100, || {
        drop(registry.list_ended(&label, 0, 5, None).unwrap())
    });
    let rare = Filter { states: vec![State::Timeout], ..Filter::default() };
    measure("  list of a state without tasks", 100, || drop(registry.list(&rare, 50, None).unwrap()));
    let common = Filter { states: vec![State::Completed, State::Cancelled], ..Filter::default() };
    measure("  list of the two states of all tasks", 50, || drop(registry.list(&common, 50, None).unwrap()));
    let prefix = "00000000".parse().unwrap();
    measure("  find by prefix", 100, || drop(registry.find_by_prefix(&prefix).unwrap()));
    measure("  has anything changed?", 10_000, || assert!(registry.change_mark().is_ok()));
}

fn status(registry: &Registry) {
    registry.active().unwrap();
    registry.queue(50).unwrap();
    registry.list_ended(&Filter::default(), 0, 5, None).unwrap();
    registry.unread("/home/me/project-7", None, 20).unwrap();
}

fn measure_changes(world: &World) {
    let mut registry = world.registry();
    let launch = vec![b'x'; 8 * 1024];
    measure("submit (8 KiB launch)", 300, || drop(registry.submit(&new_task(), &launch, 5).unwrap()));
    let mut claims = Vec::new();
    measure("claim", 300, || claims.extend(registry.claim_next(&slots(1_000), 6).unwrap()));
    let mut next = claims.iter();
    measure("begin work", 300, || begin(&mut registry, next.next().unwrap()));
    let mut next = claims.iter();
    measure("finish", 300, || {
        let claim = next.next().unwrap();
        let attempt = Attempt::working(claim.nonce.clone());
        registry.finish(&claim.task.id, &attempt, &Finish::bare(TaskEnd::Completed), &slots(0), 7).unwrap();
    });
    let dir = registry.dir().task(&claims[0].task.id);
    measure("replace a snapshot", 300, || dir.write(TaskFile::Snapshot, &launch).unwrap());
    measure("replace a report, synced", 300, || dir.write_report(&launch).unwrap());
}

/// 2,000 submits from 20 concurrent callers, each with its own connection.
fn measure_burst(world: &World) {
    let times = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let mut registry = world.registry();
                    let submit = |_| {
                        let started = Instant::now();
                        registry.submit(&new_task(), b"launch", 5).unwrap();
                        started.elapsed()
                    };
                    (0..100).map(submit).collect::<Vec<_>>()
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    print_row("submit, 20 callers without pause", times);
}

/// Creates the files that a finished task leaves.
fn make_directories(registry: &Registry, ids: &[TaskId]) {
    for id in ids {
        let dir = registry.dir().task(id);
        let _ = std::fs::create_dir(dir.path());
        for which in [TaskFile::Events, TaskFile::Stderr, TaskFile::Report, TaskFile::Text, TaskFile::Lock] {
            std::fs::write(dir.file(which), [b'x'; 1_000]).unwrap();
        }
    }
}

/// Submits while 50,000 tasks are pruned with their directories.
fn measure_pruning(world: &World) {
    let mut cleaner = world.registry();
    let old = cleaner.ended_before(i64::MAX, 50_000).unwrap();
    make_directories(&cleaner, &old);
    let done = std::sync::atomic::AtomicBool::new(false);
    let (times, cleaning) = std::thread::scope(|scope| {
        let submits = scope.spawn(|| {
            let mut registry = world.registry();
            let mut times = Vec::new();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let started = Instant::now();
                registry.submit(&new_task(), b"launch", 5).unwrap();
                times.push(started.elapsed());
            }
            times
        });
        let started = Instant::now();
        for chunk in old.chunks(2_000) {
            cleaner.prune(chunk).unwrap();
        }
        let cleaning = started.elapsed();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        (submits.join().unwrap(), cleaning)
    });
    println!(
        "{:<44} {:>10}",
        "prune 50,000 with their directories",
        format!("{:.1} s", cleaning.as_secs_f64())
    );
    print_row("  submits meanwhile", times);
}

/// Memory of a supervisor's connection.
fn measure_memory(world: &World) {
    let dir = StateDir::open(&world.path(), &OpenOptions::of_supervisor()).unwrap();
    let before = anonymous_kib();
    let registries: Vec<_> = (0..20)
        .map(|_| {
            let registry = Registry::open(&dir).unwrap();
            registry.get(&new_task().id).unwrap();
            registry.active().unwrap();
            registry
        })
        .collect();
    let each = (anonymous_kib() - before) / registries.len() as i64;
    println!("{:<44} {:>10}", "memory of a connection (cache 64 KiB)", format!("{each} KiB"));
}

fn anonymous_kib() -> i64 {
    let smaps = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = smaps.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
