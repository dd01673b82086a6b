//! F35: the disk fails. `strace` makes the n-th sync, or the n-th read, of every process of a submission fail with EIO.
//!
//! A submission then fails, or its task is there; it is never acknowledged and absent, and no sync is tried a second time
//! and called good. The next call works again. `strace` counts per process, so the supervisor's own syncs fail as well.

use std::path::Path;

use delegator_testkit::program::{Run, text_of};

use crate::stage::{Stage, turn};

const SYNCS: u32 = 50;

/// One run with faults, and what `strace` saw of them.
struct Faulty {
    run: Run,
    /// The calls that were made to fail, each with its process, and the file they were about.
    injected: Vec<String>,
    /// All calls of that kind.
    seen: Vec<String>,
}

fn with_faults(stage: &Stage, calls: &str, when: &str, only: Option<&Path>, args: &[&str]) -> Faulty {
    let log = stage.world.home().join("strace.log");
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:error=EIO:when={when}"));
    let mut words = vec!["-f", "-qq", "-y", "--seccomp-bpf", "-o", log.to_str().unwrap()];
    words.extend(["-e", &trace, "-e", &inject, "-e", "signal=none"]);
    words.extend(only.map(|path| ["-P", path.to_str().unwrap()]).iter().flatten());
    words.push(env!("CARGO_BIN_EXE_mcp-delegator"));
    words.extend(args);
    let run = stage.world.run_as(Path::new("strace"), words);
    let seen: Vec<String> = text_of(&log).lines().map(str::to_owned).collect();
    let injected = seen.iter().filter(|line| line.ends_with("(INJECTED)")).cloned().collect();
    Faulty { run, injected, seen }
}

/// What was promised is there, and what comes next works.
fn assert_sound(stage: &Stage, faulty: &Faulty, round: &str) {
    let answer = faulty.run.json();
    match answer["data"]["task_id"].as_str() {
        Some(id) => {
            let state = stage.end_of(id)["state"].as_str().unwrap().to_owned();
            assert!(matches!(state.as_str(), "completed" | "failed"), "{round}: {state}");
        }
        None => {
            // A disk that fails while the directory itself is made is a directory that cannot be used.
            let told = (faulty.run.exit, answer["error"]["code"].as_str().unwrap());
            let clear = [(Some(1), "IO_ERROR"), (Some(4), "CONFIG_INVALID")].contains(&told);
            assert!(clear, "{round}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(stage.state().to_str().unwrap()), "{round}: {message}");
        }
    }
    let next = stage.run(&["local", "run", "next"]);
    assert_eq!(next.exit, Some(0), "{round}: {next:?}");
    stage.registry().check().unwrap();
}

/// The caller's own calls: those of the process that made the first one.
fn own(lines: &[String]) -> impl Iterator<Item = &String> {
    let process = lines.first().and_then(|line| line.split(' ').next()).unwrap_or_default().to_owned();
    lines.iter().filter(move |line| line.split(' ').next() == Some(process.as_str()))
}

/// A failed sync of what an acknowledgement rests on: the launch file, its directories, the registry's log.
fn must_fail(stage: &Stage, line: &str) -> bool {
    let state = stage.state().display();
    let of_task = line.contains(&format!("<{state}/tasks"));
    of_task || line.contains(&format!("<{state}/registry.db.new>"))
}

#[test]
fn f35_a_failed_sync_is_never_an_acknowledgement() {
    let (mut faults, mut refused, mut acknowledged, mut last) = (0, 0, 0, 0);
    for n in 1..=SYNCS {
        if n > last + 3 {
            // Nobody makes so many: there is nothing left to fail.
            break;
        }
        // On a fresh machine the registry is made, too; the second submission finds it there.
        let stage = Stage::playing(turn(&[]));
        for what in ["fresh", "again"] {
            let round = format!("sync {n}, {what}");
            let faulty =
                with_faults(&stage, "fsync,fdatasync", &n.to_string(), None, &["local", "exec", "do it"]);
            faults += faulty.injected.len();
            last = if faulty.injected.is_empty() { last } else { n };
            let failed = faulty.run.exit != Some(0);
            *(if failed { &mut refused } else { &mut acknowledged }) += 1;
            let first = own(&faulty.seen).find(|line| line.ends_with("(INJECTED)"));
            if let Some(line) = first.filter(|line| must_fail(&stage, line)) {
                assert!(failed, "{round}: acknowledged although {line}");
            }
            assert_sound(&stage, &faulty, &round);
        }
    }
    eprintln!(
        "{faults} syncs failed, up to the {last}. of a process; {refused} submissions refused, {acknowledged} acknowledged, 0 absent"
    );
    assert!(
        faults > 20 && refused > 3 && last < SYNCS,
        "{faults} faults, {refused} refused: nothing was shown"
    );
}

/// Every sync of a task's submission fails from the first on: nothing may ever be acknowledged.
#[test]
fn f35_with_a_dead_disk_nothing_is_acknowledged() {
    let stage = Stage::playing(turn(&[]));
    stage.run(&["local", "run", "first"]);
    for _ in 0..3 {
        let faulty = with_faults(&stage, "fsync,fdatasync", "1+", None, &["local", "exec", "do it"]);
        assert_eq!(faulty.run.exit, Some(1), "{:?}", faulty.run);
        let launch = own(&faulty.injected).filter(|line| line.contains("/launch")).count();
        assert!(launch <= 1, "a failed sync was tried again: {:?}", faulty.injected);
        assert_sound(&stage, &faulty, "every sync");
    }
}

#[test]
fn f35_a_failed_read_names_the_file_and_changes_nothing() {
    let stage = Stage::playing(turn(&[]));
    let id = stage.exec(&[]);
    stage.end_of(&id);
    let (file, mut told) = (stage.database(), 0);
    for n in 1..=10 {
        let faulty = with_faults(&stage, "pread64,read", &n.to_string(), Some(&file), &["local", "status"]);
        if faulty.injected.is_empty() {
            assert_eq!(faulty.run.exit, Some(0), "read {n}: {:?}", faulty.run);
            continue;
        }
        told += 1;
        let answer = faulty.run.json();
        assert_ne!(faulty.run.exit, Some(0), "read {n}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(file.to_str().unwrap()), "read {n}: {message}");
        assert_eq!(stage.answer(&["local", "status"])["data"]["summary"]["recently_completed"], 1);
    }
    assert!(told > 0, "no read of the registry was made to fail");
}
