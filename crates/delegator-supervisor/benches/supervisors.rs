//! Cost of a supervisor: memory of a hundred, time from start to agent, time from the agent's exit to its own.
//!
//! `cargo bench -p delegator-supervisor`. Each supervisor is this program again, with a sleeping agent.

#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs and reads its environment")]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use delegator_domain::agents::AgentProtocol;
use delegator_domain::redact::Redactor;
use delegator_domain::task::{TaskId, TaskLocation};
use delegator_supervisor::agent::{LaunchPlan, task_marker};
use delegator_supervisor::conversation::ConversationPlan;
use delegator_supervisor::process::{Owner, ProcessIdentity, SweepLimits, sweep_lost};
use delegator_supervisor::run::{CancelRequest, EndingRecipe, Limits, Ports, RunSpec, Stream, supervise};
use delegator_transcript::FoldOptions;

const SUPERVISORS: usize = 100;
const SCRIPT_VARIABLE: &str = "BENCH_SUPERVISOR";

fn main() {
    match std::env::var(SCRIPT_VARIABLE) {
        Ok(script) => run_one(&script),
        Err(_) => measure(),
    }
}

struct DiscardPorts;

impl Ports for DiscardPorts {
    fn now_ms(&self) -> i64 {
        0
    }

    fn create(&self, _: Stream, _: u32) -> io::Result<File> {
        tempfile::tempfile()
    }

    fn remove(&self, _: Stream, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn cancel_requested(&self) -> Option<CancelRequest> {
        None
    }

    fn on_started(&self, _: &ProcessIdentity) {
        println!("started");
        io::stdout().flush().unwrap();
    }
}

fn task() -> TaskId {
    TaskId::from_random(TaskLocation::Local, [7; 16])
}

fn run_one(script: &str) {
    let environment: Vec<_> = std::env::vars_os().collect();
    let ended = supervise(
        RunSpec {
            task: task(),
            protocol: AgentProtocol::CodexExec,
            plan: LaunchPlan {
                program: "/bin/sh".into(),
                args: vec!["-c".into(), script.into()],
                env: vec![("DELEGATOR_TASK".to_owned(), task_marker(&task(), 0))],
                conversation: ConversationPlan::Once { stdin: vec![b'x'; 4096] },
                ending: EndingRecipe::graceful(Duration::from_secs(5), Duration::from_secs(5)),
                finish: EndingRecipe::close(Duration::from_secs(5)),
                linger: Duration::ZERO,
                expected_thread: None,
            },
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            workdir: File::open("/").unwrap().into(),
            enclosure: None,
            pinned: Vec::new(),
            umask: 0o022,
            limits: Limits::default(),
            max_stream_bytes: 64 << 20,
            max_processes: 4096,
            sweep_exempt: Vec::new(),
            niceness: 0,
            own_niceness: 0,
            sweep: SweepLimits::default(),
            group: None,
            redactor: Redactor::builder()
                .environment(environment.iter().filter_map(|(name, value)| {
                    Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
                }))
                .build(),
            fold: FoldOptions::default(),
            budgets: Vec::new(),
            salvage: false,
            answer_timeout: Duration::from_secs(300),
            leftovers: None,
            verify: None,
        },
        &DiscardPorts,
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{} lines in {:?}, peak {}", ended.report.counts.lines, ended.elapsed, &peak[6..].trim());
}

struct Supervisor {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
    start_time: Duration,
}

fn start(script: &str) -> Supervisor {
    let started = Instant::now();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut process = command.env(SCRIPT_VARIABLE, script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    Supervisor { process, lines, start_time: started.elapsed() }
}

/// Proportional set size of a process, in KiB.
fn memory(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of a process, in nanoseconds.
fn processor_time(pid: u32) -> u64 {
    let times = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    times.split_whitespace().next().unwrap().parse().unwrap()
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> (T, T) {
    values.sort_unstable();
    (values[values.len() / 2], values[values.len() * 99 / 100])
}

fn measure() {
    let item =
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello there"}}"#;
    let scripts = [
        ("silent", "sleep 60".to_owned()),
        (
            "after 1,000 events",
            format!("n=0; while [ $n -lt 1000 ]; do echo '{item}'; n=$((n+1)); done; sleep 60"),
        ),
        (
            "after lines of 60 KB",
            "for n in 1 2 3 4; do head -c 60000 /dev/zero | tr '\\0' x; echo; done; sleep 60".to_owned(),
        ),
    ];
    for (name, script) in scripts {
        let mut all: Vec<Supervisor> = (0..SUPERVISORS).map(|_| start(&script)).collect();
        std::thread::sleep(Duration::from_secs(3));
        let before: u64 = all.iter().map(|supervisor| processor_time(supervisor.process.id())).sum();
        std::thread::sleep(Duration::from_secs(10));
        let after: u64 = all.iter().map(|supervisor| processor_time(supervisor.process.id())).sum();
        let share = (after - before) as f64 / 1e9 / 10.0 / SUPERVISORS as f64 * 100.0;
        let sizes = all.iter().map(|supervisor| memory(supervisor.process.id())).collect();
        let (memory, memory_p99) = median(sizes);
        let (start_p50, slowest) = median(all.iter().map(|supervisor| supervisor.start_time).collect());
        println!(
            "{name:<22} PSS p50 {memory} KiB p99 {memory_p99} KiB   start p50 {start_p50:?} p99 {slowest:?}"
        );
        println!("{:<22} {share:.4} % of a processor each while quiet", "");
        for supervisor in &mut all {
            supervisor.process.kill().unwrap();
            supervisor.process.wait().unwrap();
        }
        // From here on their agents have no supervisor.
        let started = Instant::now();
        let swept = sweep_lost(&task(), &|_| Owner::ThisTask, SweepLimits::default()).unwrap();
        println!("{:<22} {} processes in {:?}", "swept by mark", swept.ended, started.elapsed());
    }
    let floods = [
        ("1,000,000 events", format!("yes '{item}' | head -n 1000000")),
        ("a line of 8 MB", "head -c 8000000 /dev/zero | tr '\\0' x; echo".to_owned()),
        ("a line of 100 MB", "head -c 100000000 /dev/zero | tr '\\0' x; echo".to_owned()),
    ];
    for (name, script) in floods {
        let mut supervisor = start(&script);
        let mut line = String::new();
        supervisor.lines.read_line(&mut line).unwrap();
        print!("{name:<22} {line}");
        supervisor.process.wait().unwrap();
    }
    // From the agent's exit to the exit of its supervisor.
    let ends = (0..SUPERVISORS).map(|_| {
        let mut supervisor = start("sleep 0.02");
        let started = Instant::now();
        supervisor.lines.read_line(&mut String::new()).unwrap();
        supervisor.process.wait().unwrap();
        started.elapsed().saturating_sub(Duration::from_millis(20))
    });
    let (end, slowest) = median(ends.collect());
    println!("agent's end to ours    p50 {end:?} p99 {slowest:?}");
}
