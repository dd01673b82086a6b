//! The tests' side: a folder, agent scripts, and the supervisor process.

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use delegator_domain::task::{TaskId, TaskLocation};
use delegator_supervisor::agent::{Variables, VerifyCommand, VerifyPlan};
use delegator_supervisor::process::marks::find_marked;
use delegator_supervisor::run::VerifySpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names the folder; its presence makes the program a supervisor.
pub(crate) const FOLDER_VARIABLE: &str = "SUPERVISOR_TEST_FOLDER";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) task: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdin: String,
    /// The prompt of an agent of the idle dialect.
    pub(crate) idle_prompt: Option<String>,
    pub(crate) grace_ms: u64,
    pub(crate) idle_ms: u64,
    pub(crate) hard_ms: u64,
    pub(crate) output_only: bool,
    pub(crate) umask: u32,
    pub(crate) niceness: u8,
    pub(crate) max_stream_bytes: u64,
    pub(crate) max_processes: usize,
    pub(crate) exempt: Vec<String>,
    pub(crate) secret: String,
    pub(crate) expected_thread: Option<String>,
    pub(crate) rename_workdir: Option<String>,
    /// Run in a cgroup, where available.
    pub(crate) grouped: bool,
    pub(crate) check: Option<Check>,
}

/// A script that verifies the agent's work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Check {
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) sentinel: Option<String>,
    pub(crate) min_time_ms: u64,
}

impl Check {
    pub(crate) fn into_spec(self, task: &str) -> VerifySpec {
        let mut args = self.command.iter();
        let program = args.next().unwrap().into();
        let mut environment: Variables =
            self.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        environment.push(("DELEGATOR_TASK".into(), format!("{task}:0").into()));
        VerifySpec {
            plan: VerifyPlan {
                program,
                args: args.map(Into::into).collect(),
                environment,
                sentinel: self.sentinel,
            },
            command: VerifyCommand::Program(self.command),
            min_time: Duration::from_millis(self.min_time_ms),
        }
    }
}

/// Shell functions for scripts: a successful turn is `begin; end`.
const PRELUDE: &str = r#"
begin() { echo '{"type":"thread.started","thread_id":"t-1"}'; echo '{"type":"turn.started"}'; }
end() { echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'; }
item() { echo '{"type":"item.completed","item":{"id":"item_'$1'","type":"agent_message","text":"'$2'"}}'; }
"#;

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) task: TaskId,
}

impl World {
    pub(crate) fn new() -> World {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Tests run at the same time, and a supervisor kills every process with its task id.
        let unique = u64::from(std::process::id()) << 20 | NEXT.fetch_add(1, Ordering::Relaxed);
        // One letter of an id has five bits.
        let mut bits = [0; 16];
        for (letter, bits) in bits.iter_mut().enumerate().take(10) {
            *bits = u8::try_from((unique >> (5 * letter)) & 31).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        World { folder, task: TaskId::from_random(TaskLocation::Local, bits) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// A case that runs a script, with short limits.
    pub(crate) fn case(&self, script: &str) -> Case {
        Case {
            task: self.task.as_str().to_owned(),
            program: "/bin/sh".into(),
            args: vec!["-c".to_owned(), format!("{PRELUDE}\n{script}")],
            environment: vec![
                ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
                ("FOLDER".to_owned(), self.folder.path().display().to_string()),
            ],
            stdin: String::new(),
            idle_prompt: None,
            grace_ms: 400,
            idle_ms: 20_000,
            hard_ms: 40_000,
            output_only: false,
            umask: 0o022,
            niceness: 0,
            max_stream_bytes: 64 << 20,
            max_processes: 4096,
            exempt: Vec::new(),
            secret: String::new(),
            expected_thread: None,
            rename_workdir: None,
            grouped: true,
            check: None,
        }
    }

    /// An agent that succeeds, and a script that verifies its work.
    pub(crate) fn case_with_check(&self, script: &str) -> Case {
        let agent = self.case("begin; end");
        let check = Check {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            environment: agent.environment.clone(),
            sentinel: None,
            min_time_ms: 1,
        };
        Case { check: Some(check), ..agent }
    }

    pub(crate) fn start(&self, cases: &[Case]) -> Supervisor<'_> {
        self.start_with(Command::new(std::env::current_exe().unwrap()), cases)
    }

    /// As an unprivileged user; `None` if we cannot switch to one.
    pub(crate) fn start_unprivileged(&self, cases: &[Case]) -> Option<Supervisor<'_>> {
        let program = std::env::current_exe().unwrap();
        let setpriv = || {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command
        };
        let works =
            setpriv().arg(&program).arg("--list").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !works.is_ok_and(|status| status.success()) {
            return None;
        }
        for name in ["", "work"] {
            std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let mut command = setpriv();
        command.arg(program);
        Some(self.start_with(command, cases))
    }

    fn start_with(&self, mut command: Command, cases: &[Case]) -> Supervisor<'_> {
        std::fs::write(self.path("cases.json"), serde_json::to_vec(cases).unwrap()).unwrap();
        command.args(["--exact", "as_supervisor", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER_VARIABLE, self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut process = command.spawn().unwrap();
        let stdin = process.stdin.take();
        Supervisor { world: self, process, stdin }
    }

    /// Runs one case to its end.
    pub(crate) fn run(&self, case: &Case) -> Value {
        self.start(std::slice::from_ref(case)).wait_for_result()
    }

    pub(crate) fn run_script(&self, script: &str) -> Value {
        self.run(&self.case(script))
    }

    /// Writes a program of that name.
    pub(crate) fn program(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub(crate) fn assert_no_processes_left(&self) {
        let processes = find_marked(&self.task, &mut HashSet::new());
        assert!(processes.is_empty(), "{processes:?}");
    }
}

pub(crate) struct Supervisor<'a> {
    world: &'a World,
    process: Child,
    stdin: Option<ChildStdin>,
}

impl Supervisor<'_> {
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process)
    }

    pub(crate) fn cancel(&mut self) {
        self.stdin.as_mut().unwrap().write_all(b"c").unwrap();
    }

    /// Waits for its exit and ignores its results.
    pub(crate) fn wait_exit(&mut self) {
        self.process.wait().unwrap();
    }

    /// Waits for its exit and returns all results.
    pub(crate) fn wait_for_results(mut self) -> Value {
        wait_until("the supervisor has ended", || self.process.try_wait().unwrap().is_some());
        let text = self.world.read("ended.json");
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        assert_eq!(value["no_children"], true, "the supervisor left children");
        value
    }

    /// The result of the only case.
    pub(crate) fn wait_for_result(self) -> Value {
        self.wait_for_results()["ends"][0].take()
    }
}

/// Polls until the condition holds; panics after a generous time.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(50);
    while !condition() {
        assert!(Instant::now() < give_up, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
