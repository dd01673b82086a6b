//! Disk errors: `strace` makes the n-th sync or read of every process of a submission fail with EIO.
//!
//! The submission then fails, or its task exists; it is never acknowledged and absent, and a failed sync is never retried
//! and counted as success. The next command works again. `strace` counts per process, so supervisor syncs fail as well.

use std::path::Path;

use delegator_testkit::program::{RunOutput, read_text};

use crate::stage::{Stage, successful_turn};

const MAX_SYNCS: u32 = 50;

/// A run with injected errors, and its trace.
struct FaultyRun {
    run: RunOutput,
    /// Trace lines of calls that were made to fail.
    injected: Vec<String>,
    /// All trace lines.
    traced: Vec<String>,
}

fn run_with_faults(stage: &Stage, calls: &str, when: &str, only: Option<&Path>, args: &[&str]) -> FaultyRun {
    let log = stage.world.home().join("strace.log");
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:error=EIO:when={when}"));
    let mut strace_args = vec!["-f", "-qq", "-y", "--seccomp-bpf", "-o", log.to_str().unwrap()];
    strace_args.extend(["-e", &trace, "-e", &inject, "-e", "signal=none"]);
    strace_args.extend(only.map(|path| ["-P", path.to_str().unwrap()]).iter().flatten());
    strace_args.push(env!("CARGO_BIN_EXE_mcp-delegator"));
    strace_args.extend(args);
    let run = stage.world.run_as(Path::new("strace"), strace_args);
    let traced: Vec<String> = read_text(&log).lines().map(str::to_owned).collect();
    let injected = traced.iter().filter(|line| line.ends_with("(INJECTED)")).cloned().collect();
    FaultyRun { run, injected, traced }
}

/// An acknowledged task exists, and the next command works.
fn assert_consistent(stage: &Stage, faulty: &FaultyRun, round: &str) {
    let response = faulty.run.json();
    match response["data"]["task_id"].as_str() {
        Some(id) => {
            let state = stage.wait_for_end(id)["state"].as_str().unwrap().to_owned();
            assert!(matches!(state.as_str(), "completed" | "failed"), "{round}: {state}");
        }
        None => {
            // An error while the state directory is created is a configuration error.
            let error = (faulty.run.exit, response["error"]["code"].as_str().unwrap());
            let clear = [(Some(1), "IO_ERROR"), (Some(4), "CONFIG_INVALID")].contains(&error);
            assert!(clear, "{round}: {response}");
            let message = response["error"]["message"].as_str().unwrap();
            assert!(message.contains(stage.state_dir().to_str().unwrap()), "{round}: {message}");
        }
    }
    let next = stage.run(&["local", "run", "next"]);
    assert_eq!(next.exit, Some(0), "{round}: {next:?}");
    stage.registry().check().unwrap();
}

/// The trace lines of the submitting process, which made the first call.
fn first_process_lines(lines: &[String]) -> impl Iterator<Item = &String> {
    let process = lines.first().and_then(|line| line.split(' ').next()).unwrap_or_default().to_owned();
    lines.iter().filter(move |line| line.split(' ').next() == Some(process.as_str()))
}

/// Whether the failed sync is one that an acknowledgement depends on: launch file, task directory or new registry.
fn must_fail(stage: &Stage, line: &str) -> bool {
    let state = stage.state_dir().display();
    let of_task = line.contains(&format!("<{state}/tasks"));
    of_task || line.contains(&format!("<{state}/registry.db.new>"))
}

#[test]
fn f35_a_failed_sync_is_never_an_acknowledgement() {
    let (mut faults, mut refused, mut acknowledged, mut last) = (0, 0, 0, 0);
    for n in 1..=MAX_SYNCS {
        if n > last + 3 {
            // No process makes so many syncs.
            break;
        }
        // The first submission creates the registry, the second one finds it.
        let stage = Stage::with_script(successful_turn(&[]));
        for what in ["fresh", "again"] {
            let round = format!("sync {n}, {what}");
            let faulty =
                run_with_faults(&stage, "fsync,fdatasync", &n.to_string(), None, &["local", "exec", "do it"]);
            faults += faulty.injected.len();
            last = if faulty.injected.is_empty() { last } else { n };
            let failed = faulty.run.exit != Some(0);
            *(if failed { &mut refused } else { &mut acknowledged }) += 1;
            let first = first_process_lines(&faulty.traced).find(|line| line.ends_with("(INJECTED)"));
            if let Some(line) = first.filter(|line| must_fail(&stage, line)) {
                assert!(failed, "{round}: acknowledged although {line}");
            }
            assert_consistent(&stage, &faulty, &round);
        }
    }
    eprintln!(
        "{faults} syncs failed, up to the {last}. of a process; {refused} submissions refused, {acknowledged} acknowledged, 0 absent"
    );
    assert!(
        faults > 20 && refused > 3 && last < MAX_SYNCS,
        "{faults} faults, {refused} refused: too few errors were injected"
    );
}

/// Every sync fails, so no submission may be acknowledged.
#[test]
fn f35_a_dead_disk_acknowledges_nothing() {
    let stage = Stage::with_script(successful_turn(&[]));
    stage.run(&["local", "run", "first"]);
    for _ in 0..3 {
        let faulty = run_with_faults(&stage, "fsync,fdatasync", "1+", None, &["local", "exec", "do it"]);
        assert_eq!(faulty.run.exit, Some(1), "{:?}", faulty.run);
        let launch = first_process_lines(&faulty.injected).filter(|line| line.contains("/launch")).count();
        assert!(launch <= 1, "a failed sync was tried again: {:?}", faulty.injected);
        assert_consistent(&stage, &faulty, "every sync");
    }
}

#[test]
fn f35_a_failed_read_names_the_file_and_changes_nothing() {
    let stage = Stage::with_script(successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    let (file, mut failed_reads) = (stage.database(), 0);
    for n in 1..=10 {
        let faulty =
            run_with_faults(&stage, "pread64,read", &n.to_string(), Some(&file), &["local", "status"]);
        if faulty.injected.is_empty() {
            assert_eq!(faulty.run.exit, Some(0), "read {n}: {:?}", faulty.run);
            continue;
        }
        failed_reads += 1;
        let response = faulty.run.json();
        assert_ne!(faulty.run.exit, Some(0), "read {n}: {response}");
        let message = response["error"]["message"].as_str().unwrap();
        assert!(message.contains(file.to_str().unwrap()), "read {n}: {message}");
        assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"], 1);
    }
    assert!(failed_reads > 0, "no read of the registry was made to fail");
}
