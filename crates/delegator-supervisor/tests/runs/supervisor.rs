//! The supervisor's side: reads cases from a file and writes their results to one.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::agents::AgentProtocol;
use delegator_domain::redact::Redactor;
use delegator_domain::task::{ExitStatus, TaskEnd};
use delegator_supervisor::agent::{LaunchPlan, ShellSnapshots};
use delegator_supervisor::conversation::ConversationPlan;
use delegator_supervisor::process::{Cgroup, ProcessIdentity, SweepLimits};
use delegator_supervisor::run::{
    CancelRequest, EndingRecipe, LimitWarning, Limits, Ports, RunResult, RunSpec, Snapshot, Stream, supervise,
};
use delegator_transcript::FoldOptions;
use serde_json::{Value, json};

use crate::world::Case;

pub(crate) fn run_cases(folder: &Path) {
    let cases: Vec<Case> =
        serde_json::from_slice(&std::fs::read(folder.join("cases.json")).unwrap()).unwrap();
    let stdin = io::stdin();
    rustix::fs::fcntl_setfl(&stdin, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut ends = Vec::new();
    for case in cases {
        let ports = FilePorts { folder: folder.to_path_buf(), stdin: &stdin, has_stdin: Cell::new(true) };
        let result = supervise(spec(case, folder), &ports);
        ends.push(to_json(&result));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
    let results = json!({
        "ends": ends,
        "peak": peak,
        "fds": std::fs::read_dir("/proc/self/fd").unwrap().count(),
        "no_children": rustix::process::wait(rustix::process::WaitOptions::NOHANG).is_err(),
    });
    std::fs::write(folder.join("ended.new"), results.to_string()).unwrap();
    std::fs::rename(folder.join("ended.new"), folder.join("ended.json")).unwrap();
}

fn spec(case: Case, folder: &Path) -> RunSpec {
    let millis = Duration::from_millis;
    let grace = millis(case.grace_ms);
    let workdir = File::open(folder.join("work")).unwrap();
    if let Some(renamed) = &case.rename_workdir {
        std::fs::rename(folder.join("work"), folder.join(renamed)).unwrap();
        std::fs::create_dir(folder.join("work")).unwrap();
    }
    let task = case.task.parse().unwrap();
    RunSpec {
        group: case.grouped.then(|| Cgroup::create(&task)).flatten(),
        task,
        protocol: AgentProtocol::CodexExec,
        plan: LaunchPlan {
            program: case.program,
            args: case.args.into_iter().map(Into::into).collect(),
            env: vec![("DELEGATOR_TASK".to_owned(), format!("{}:0", case.task))],
            conversation: match case.idle_prompt {
                Some(prompt) => ConversationPlan::IdleQueue { prompt, tool_command: Vec::new() },
                None => ConversationPlan::Once { stdin: case.stdin.into_bytes() },
            },
            ending: EndingRecipe::graceful(grace, grace),
            finish: EndingRecipe::close(grace),
            linger: Duration::ZERO,
            expected_thread: case.expected_thread,
        },
        environment: case.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        workdir: workdir.into(),
        enclosure: None,
        pinned: Vec::new(),
        umask: case.umask,
        limits: Limits {
            idle: millis(case.idle_ms),
            hard: millis(case.hard_ms),
            only_output_counts: case.output_only,
        },
        max_stream_bytes: case.max_stream_bytes,
        max_processes: case.max_processes,
        sweep_exempt: case.exempt,
        niceness: case.niceness,
        own_niceness: 0,
        sweep: SweepLimits::default(),
        redactor: Redactor::builder().secret(case.secret).build(),
        fold: FoldOptions::default(),
        budgets: Vec::new(),
        salvage: false,
        answer_timeout: Duration::from_secs(1),
        leftovers: Some(ShellSnapshots { codex_home: folder.join("codex-home") }),
        verify: case.check.map(|check| check.into_spec(&case.task)),
    }
}

struct FilePorts<'a> {
    folder: PathBuf,
    stdin: &'a io::Stdin,
    has_stdin: Cell<bool>,
}

impl FilePorts<'_> {
    fn path(&self, stream: Stream, part: u32) -> PathBuf {
        let name = match stream {
            Stream::Events => "events.jsonl",
            Stream::Stderr => "stderr.log",
            Stream::Verify => "verify.log",
        };
        let suffix = if part == 0 { String::new() } else { format!(".{part}") };
        self.folder.join(format!("{name}{suffix}"))
    }

    fn log(&self, line: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.folder.join("log")).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

impl Ports for FilePorts<'_> {
    fn now_ms(&self) -> i64 {
        0
    }

    fn create(&self, stream: Stream, part: u32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        options.open(self.path(stream, part))
    }

    fn remove(&self, stream: Stream, part: u32) -> io::Result<()> {
        std::fs::remove_file(self.path(stream, part))
    }

    fn cancel_requested(&self) -> Option<CancelRequest> {
        let mut byte = [0];
        match self.stdin.lock().read(&mut byte) {
            Ok(1) => Some(CancelRequest { reason: Some("by request".to_owned()) }),
            Ok(_) => {
                self.has_stdin.set(false);
                None
            }
            Err(_) => None,
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.has_stdin.get().then(|| self.stdin.as_fd())
    }

    fn on_started(&self, agent: &ProcessIdentity) {
        self.log(&format!("started {}", serde_json::to_string(agent).unwrap()));
    }

    fn on_stdin_delivered(&self) {
        self.log("stdin");
    }

    fn on_thread(&self, thread_id: &str) {
        self.log(&format!("thread {thread_id}"));
    }

    fn on_snapshot(&self, snapshot: &Snapshot) {
        self.log(&format!("snapshot {}", serde_json::to_string(snapshot).unwrap()));
    }

    fn on_warning(&self, warning: LimitWarning) {
        self.log(&format!("warning {}", warning.kind.name()));
    }
}

fn to_json(result: &RunResult) -> Value {
    let (kind, message) = match &result.end {
        TaskEnd::Failed { kind, message, .. } => (Some(kind.name()), message.clone()),
        TaskEnd::Timeout(kind) => (Some(kind.name()), String::new()),
        TaskEnd::Cancelled { reason } => (None, reason.clone().unwrap_or_default()),
        TaskEnd::Completed => (None, String::new()),
    };
    let (code, signal) = match result.exit {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let check = result.verification.as_ref().map(|check| {
        json!({
            "outcome": check.outcome.name(),
            "detail": check.detail,
            "exit": format!("{:?}", check.exit),
            "output": check.output,
            "last_output": check.last_output,
        })
    });
    json!({
        "checked": check,
        "state": result.end.state().name(),
        "kind": kind,
        "message": message,
        "code": code,
        "signal": signal,
        "signals": result.signals.iter().map(|signal| signal.name()).collect::<Vec<_>>(),
        "thread": result.report.thread_id,
        "report": result.redacted_report,
        "warnings": result.warnings,
        "refused": result.refused.last,
        "partial": {"last_output": result.last_output, "last_stderr": result.last_stderr},
        "stdout": result.stdout,
        "stderr": result.stderr,
        "sweep": result.sweep,
        "elapsed_ms": u64::try_from(result.elapsed.as_millis()).unwrap(),
        "quiet_ms": u64::try_from(result.quiet.as_millis()).unwrap(),
    })
}
