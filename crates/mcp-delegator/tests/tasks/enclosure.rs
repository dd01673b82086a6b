//! The enclosure of agents that have no sandbox of their own: a shell script tries to write outside in many ways, and cannot.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use delegator_testkit::stage::{Stage, pids, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Tries every way to change a directory, and prints the outcome of each. `$1` names the attempts, `$2` is a path to the
/// directory, `$3` one to a writable directory, on the same mount if the attempts are to succeed.
const ATTEMPTS: &str = r#"
try() {
    name=$1; shift
    if sh -c "$@" 2>/dev/null; then echo "$name: done"; else echo "$name: denied"; fi
}
attempt_all() {
    try "$1 create" 'echo x > "$0/new"' "$2"
    try "$1 overwrite" 'echo x > "$0/overwritten"' "$2"
    try "$1 append" 'echo x >> "$0/appended"' "$2"
    try "$1 truncate" 'truncate -s 0 "$0/truncated"' "$2"
    try "$1 truncate by path" 'perl -e "truncate(\$ARGV[0], 0) or exit 1" "$0/truncated"' "$2"
    try "$1 write through a reading descriptor" 'exec 4< "$0/reopened"; echo x > /proc/self/fd/4' "$2"
    try "$1 rename" 'mv -T "$0/renamed" "$0/renamed too"' "$2"
    try "$1 replace" 'echo x > "$1/mine" && mv -fT "$1/mine" "$0/replaced"' "$2" "$3"
    try "$1 move out" 'mv -fT "$0/moved" "$1/moved-$$"' "$2" "$3"
    try "$1 delete" 'rm -f "$0/deleted"' "$2"
    try "$1 delete a directory" 'rmdir "$0/directory"' "$2"
    try "$1 make a directory" 'mkdir "$0/made"' "$2"
    try "$1 make a symbolic link" 'ln -s x "$0/symbolic"' "$2"
    try "$1 make a named pipe" 'mkfifo "$0/pipe"' "$2"
    try "$1 link into it" 'echo x > "$1/mine" && ln "$1/mine" "$0/linked"' "$2" "$3"
    try "$1 link out of it" 'ln "$0/linked out" "$1/hard-$$" && echo x > "$1/hard-$$"' "$2" "$3"
}
"#;

/// How many attempts there are.
const ATTEMPT_COUNT: usize = 16;

/// The files that the attempts are about.
const FILES: [&str; 10] = [
    "overwritten",
    "appended",
    "truncated",
    "reopened",
    "renamed",
    "replaced",
    "moved",
    "deleted",
    "linked out",
    "untouched",
];

/// A world whose agent `helper` is a shell script that knows [`ATTEMPTS`].
struct Enclosed {
    stage: Stage,
    mechanism: &'static str,
}

impl Enclosed {
    fn new(mechanism: &'static str, script: &str, settings: &str) -> Enclosed {
        let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
        let helper =
            stage.write_program("bin/helper", &format!("#!/bin/sh\ncat > /dev/null\n{ATTEMPTS}\n{script}\n"));
        let config = format!(
            "enclosure = \"{mechanism}\"\n[agents.helper]\nprotocol = \"plain\"\ncommand = [\"{}\"]\n{settings}\n",
            helper.display()
        );
        stage.world.write("home/.config/mcp-delegator/config.toml", &config);
        let run = stage.world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        Enclosed { stage, mechanism }
    }

    /// Creates a directory with the files of the attempts.
    fn directory(&self, name: &str) -> PathBuf {
        for file in FILES {
            self.stage.world.write(&format!("{name}/{file}"), "kept");
        }
        let directory = self.stage.root().join(name);
        std::fs::create_dir(directory.join("directory")).unwrap();
        directory
    }

    /// Runs the agent to its end; the lines that it printed.
    fn run(&self, mode: &str, args: &[&str]) -> Vec<String> {
        let id = self.stage.exec(&[&["--agent", "helper", "--mode", mode], args].concat());
        let waited = self.stage.wait(&id);
        assert_eq!(waited["data"]["state"], "completed", "{}: {waited}", self.mechanism);
        let log = self.stage.run_json(&["logs", &id]);
        log["data"]["stdout"].as_str().unwrap().lines().map(str::to_owned).collect()
    }

    fn exec(&self, args: &[&str]) -> String {
        self.stage.exec(&[&["--agent", "helper", "--mode", "workspace-write"], args].concat())
    }

    /// The temporary directory of a task that runs.
    fn temporary_dir(&self, id: &str) -> PathBuf {
        let path = std::fs::read_to_string(self.stage.task_dir(id).join("temporary.path")).unwrap();
        assert!(Path::new(&path).is_dir(), "{path}");
        path.into()
    }
}

/// Everything below a directory: kind, mode, times and content.
fn state_of(directory: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            found.extend(state_of(&path));
        }
        found.insert(path, (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), content));
    }
    found
}

/// Asserts that the agent made all attempts under this name, and how they ended.
fn assert_outcome(lines: &[String], name: &str, outcome: &str) {
    let attempts: Vec<&String> = lines.iter().filter(|line| line.starts_with(name)).collect();
    assert_eq!(attempts.len(), ATTEMPT_COUNT, "{name}: {lines:#?}");
    assert!(attempts.iter().all(|line| line.ends_with(outcome)), "{name}: {attempts:#?}");
}

/// In read-only mode the agent changes neither its working directory nor anything else, whatever path it takes.
fn nothing_is_written_in_read_only_mode(mechanism: &'static str) {
    let script = r#"
outside=$(dirname "$PWD")/outside
attempt_all directly "$outside" "$TMPDIR"
attempt_all inside "$PWD" "$TMPDIR"
attempt_all 'by a link' way-out "$TMPDIR"
attempt_all 'by the root of the process' "/proc/self/root$outside" "$TMPDIR"
attempt_all 'by the working directory of the process' /proc/self/cwd/../outside "$TMPDIR"
exec 3< "$outside"
attempt_all 'by a descriptor' /proc/self/fd/3 "$TMPDIR"
"#;
    let enclosed = Enclosed::new(mechanism, script, "");
    let (outside, project) = (enclosed.directory("outside"), enclosed.directory("project"));
    std::os::unix::fs::symlink("../outside", project.join("way-out")).unwrap();
    let before = (state_of(&outside), state_of(&project));
    let lines = enclosed.run("read-only", &[]);
    for name in [
        "directly",
        "inside",
        "by a link",
        "by the root of the process",
        "by the working directory of the process",
        "by a descriptor",
    ] {
        assert_outcome(&lines, name, ": denied");
    }
    assert_eq!((state_of(&outside), state_of(&project)), before);
}

/// In workspace-write mode the agent and everything it starts change the task's directories and nothing else.
fn only_the_workspace_is_written(mechanism: &'static str) {
    let script = r#"
outside=$(dirname "$PWD")/outside
case $1 in
grandchild) attempt_all grandchild "$outside" "$PWD"; exit ;;
esac
attempt_all directly "$outside" "$PWD"
attempt_all 'state directory' "$(dirname "$PWD")/home/state" "$PWD"
attempt_all configuration "$(dirname "$PWD")/home/.config/mcp-delegator" "$PWD"
mkdir "$PWD/same mount"
attempt_all inside "$PWD" "$PWD/same mount"
attempt_all added "$(dirname "$PWD")/added" "$(dirname "$PWD")/added/sub"
attempt_all temporary "$TMPDIR/d" "$TMPDIR"
ln -sfn "$outside" planted
attempt_all 'planted link' planted "$PWD"
setsid --wait "$0" grandchild < /dev/null &
wait
"#;
    // The files that are changed in the temporary directory.
    let files = FILES.map(|file| format!("'{file}'")).join(" ");
    let script = format!(
        "mkdir -p \"$TMPDIR/d/directory\"\nfor file in {files}; do echo x > \"$TMPDIR/d/$file\"; done\n{script}"
    );
    let enclosed = Enclosed::new(mechanism, &script, "");
    let (outside, added) = (enclosed.directory("outside"), enclosed.directory("added"));
    let configuration = enclosed.directory("home/.config/mcp-delegator");
    std::fs::create_dir(added.join("sub")).unwrap();
    enclosed.directory("project");
    enclosed.directory("home/state");
    let before = (state_of(&outside), state_of(&configuration));
    let lines = enclosed.run("workspace-write", &["--add-dirs", added.to_str().unwrap()]);
    for name in ["directly", "planted link", "grandchild"] {
        assert_outcome(&lines, name, ": denied");
    }
    for name in ["state directory", "configuration"] {
        // bubblewrap hides them, and rm -f succeeds if there is no file.
        let hidden = (mechanism == "bubblewrap").then(|| format!("{name} delete: done"));
        let of_visible = |line: &String| match hidden.as_ref() == Some(line) {
            true => format!("{name} delete: denied"),
            false => line.clone(),
        };
        assert_outcome(&lines.iter().map(of_visible).collect::<Vec<_>>(), name, ": denied");
    }
    for name in ["inside", "added", "temporary"] {
        assert_outcome(&lines, name, ": done");
    }
    assert_eq!((state_of(&outside), state_of(&configuration)), before);
    assert!(!enclosed.stage.world.home().join("state/new").exists());
    for file in FILES {
        let text = std::fs::read_to_string(enclosed.stage.world.home().join("state").join(file)).unwrap();
        assert_eq!(text, "kept", "{file}");
    }
}

/// The network works. Processes outside cannot be inspected or, where the mechanism covers it, signalled.
fn network_works_and_other_processes_are_out_of_reach(mechanism: &'static str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, pid) = (listener.local_addr().unwrap().port(), std::process::id());
    let script = format!(
        r#"
bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3' && echo 'connect: done'
try environment 'cat /proc/{pid}/environ'
try 'root of a process' 'ls /proc/{pid}/root/'
try signal 'kill -0 {pid}'
try 'kernel setting' 'cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern'
try terminal 'test "$(script -qec "echo a terminal" /dev/null)"'
try child 'sleep 600 & kill $!'
"#
    );
    let enclosed = Enclosed::new(mechanism, &script, "");
    let lines = enclosed.run("workspace-write", &[]);
    let expected = [
        "connect: done",
        "environment: denied",
        "root of a process: denied",
        "signal: denied",
        "kernel setting: denied",
        "terminal: done",
        "child: done",
    ];
    assert_eq!(lines, expected);
    let mut received = String::new();
    listener.accept().unwrap().0.read_to_string(&mut received).unwrap();
    assert_eq!(received, "hello\n");
}

/// Cancel, and the rescue of a lost supervisor, leave no process and no temporary directory behind.
fn nothing_is_left_behind(mechanism: &'static str) {
    let script = "mkdir -p \"$TMPDIR/a/b\"; chmod 0 \"$TMPDIR/a\"; trap '' TERM\n\
                  setsid sleep 600 & sleep 600 & touch ready; wait; wait";
    let enclosed = Enclosed::new(mechanism, script, "");
    let stage = &enclosed.stage;
    for is_lost in [false, true] {
        let id = enclosed.exec(&[]);
        stage.wait_for_project_file("ready");
        std::fs::remove_file(stage.world.project().join("ready")).unwrap();
        let temporary = enclosed.temporary_dir(&id);
        assert!(task_processes(&id).len() >= 3);
        if is_lost {
            let supervisor = stage.supervisor_pid(&id);
            kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
            wait_until("the supervisor is gone", || !pids().contains(&supervisor));
        } else {
            stage.run_json(&["local", "cancel", &id]);
        }
        let state = if is_lost { "failed" } else { "cancelled" };
        assert_eq!(stage.wait(&id)["data"]["state"], state);
        wait_until("its processes are gone", || task_processes(&id).is_empty());
        assert!(!temporary.exists(), "{mechanism}: {}", temporary.display());
    }
}

macro_rules! with_each_mechanism {
    ($($test:ident),*) => {
        mod landlock {
            $(#[test] fn $test() { super::$test("landlock"); })*
        }
        /// `scripts/install-bubblewrap` installs what these tests need.
        mod bubblewrap {
            $(#[test] fn $test() { super::$test("bubblewrap"); })*
        }
    };
}

with_each_mechanism!(
    nothing_is_written_in_read_only_mode,
    only_the_workspace_is_written,
    network_works_and_other_processes_are_out_of_reach,
    nothing_is_left_behind,
    a_verify_command_runs_in_the_same_enclosure,
    an_agent_that_cannot_be_started_is_reported
);

fn a_verify_command_runs_in_the_same_enclosure(mechanism: &'static str) {
    let enclosed = Enclosed::new(mechanism, "echo done", "");
    let verification = |command: &str| {
        let id = enclosed.exec(&["--verify", command]);
        enclosed.stage.wait(&id)["data"]["verification"].clone()
    };
    let inside = verification("echo checked > checked && echo x > \"$TMPDIR/x\"");
    assert_eq!((&inside["status"], &inside["is_sandboxed"]), (&json!("verified"), &json!(true)), "{inside}");
    let outside = verification("echo x > ../outside");
    assert_eq!(outside["status"], "verify_failed", "{outside}");
    assert!(!enclosed.stage.root().join("outside").exists());
}

fn an_agent_that_cannot_be_started_is_reported(mechanism: &'static str) {
    let enclosed = Enclosed::new(mechanism, "", "");
    enclosed.stage.write_program("bin/helper", "#!/no/such/interpreter\n");
    let run = enclosed.stage.world.run(["local", "run", "do it", "--agent", "helper"]);
    assert!(run.stdout.contains("spawn_failed"), "{run:?}");
    assert!(run.stdout.contains("No such file or directory"), "{run:?}");
}

/// Only bubblewrap can protect files in a writable directory. The agent can still commit.
#[test]
fn an_enclosed_agent_cannot_change_the_settings_of_git() {
    let script = r#"
try 'configuration' 'git config core.fsmonitor ./evil'
try 'configuration directly' 'echo x >> .git/config'
try 'new hook' 'echo x > .git/hooks/pre-push'
try 'old hook' 'echo x > .git/hooks/mine'
try 'other hooks' 'mv .git/hooks .git/old'
try 'attributes' 'echo x > .git/info/attributes'
try 'other repository' 'mv .git other && git init'
try 'commit' 'echo x > file && git add file && git -c user.name=a -c user.email=a@localhost commit -qm x'
"#;
    let enclosed = Enclosed::new("bubblewrap", script, "");
    enclosed.stage.world.write("project/.git/hooks/mine", "#!/bin/sh\n");
    enclosed.stage.world.write("project/.git/info/exclude", "");
    let lines = enclosed.run("workspace-write", &[]);
    let done: Vec<&String> = lines.iter().filter(|line| !line.ends_with(": denied")).collect();
    assert_eq!(
        (lines.iter().filter(|line| line.ends_with(": denied")).count(), done.len()),
        (7, 1),
        "{lines:#?}"
    );
    assert!(done[0] == "commit: done", "{lines:#?}");
}

#[test]
fn the_agent_writes_to_its_state_directories_in_every_mode() {
    let script = "echo x > ~/.helper/settings && echo x > \"$TMPDIR/x\" && echo \"$TMPDIR $TMP $TEMP\"\nls -ld \"$TMPDIR\"";
    let enclosed = Enclosed::new("auto", script, "state_dirs = [\"~/.helper\"]");
    let lines = enclosed.run("read-only", &[]);
    let paths: Vec<&str> = lines[0].split(' ').collect();
    assert!(paths.len() == 3 && paths.iter().all(|path| *path == paths[0]), "{lines:?}");
    assert!(lines[1].starts_with("drwx------"), "{lines:?}");
    assert!(!Path::new(paths[0]).exists(), "{lines:?}");
    let settings = enclosed.stage.world.home().join(".helper/settings");
    assert_eq!(std::fs::read_to_string(settings).unwrap(), "x\n");
}

#[test]
fn a_state_directory_that_contains_ours_is_refused() {
    for directory in ["~/.config", "~/.config/mcp-delegator/more", "~/state", "~"] {
        let enclosed = Enclosed::new("auto", "", &format!("state_dirs = [\"{directory}\"]"));
        let run = enclosed.stage.world.run(["local", "exec", "x", "--agent", "helper"]);
        assert!(run.stdout.contains("POLICY_BLOCKED"), "{directory}: {run:?}");
        assert!(run.stdout.contains("agents.helper.state_dirs"), "{directory}: {run:?}");
    }
}

#[test]
fn a_mode_that_cannot_be_enforced_is_refused() {
    let enclosed = Enclosed::new("bubblewrap", "echo done", "");
    let tools = enclosed.stage.root().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["sh", "cat", "git"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{tool}"), tools.join(tool)).unwrap();
    }
    let stage = enclosed.stage.variable("PATH", tools.to_str().unwrap());
    for mode in ["read-only", "workspace-write"] {
        let run = stage.world.run(["local", "exec", "x", "--agent", "helper", "--mode", mode]);
        assert!(run.stdout.contains("POLICY_BLOCKED"), "{run:?}");
        assert!(run.stdout.contains("agents.helper.unsandboxed"), "{run:?}");
    }
    let checks = stage.world.doctor_checks();
    let status = |name: &str| {
        let check = checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap();
        check["status"].as_str().unwrap().to_owned()
    };
    assert_eq!((status("enclosure").as_str(), status("agents.helper").as_str()), ("warning", "warning"));
    // There is nothing to enforce.
    let stage = stage.variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    let id = stage.exec(&["--agent", "helper", "--mode", "danger-full-access", "--confirm"]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn each_of_several_agents_gets_its_own_temporary_directory() {
    let enclosed = Enclosed::new("auto", "echo x > \"$TMPDIR/x\" && echo done", "");
    let broken = enclosed.stage.write_program("bin/broken", "#!/no/such/interpreter\n");
    let file = "home/.config/mcp-delegator/config.toml";
    let config = std::fs::read_to_string(enclosed.stage.root().join(file)).unwrap();
    let agent = format!("[agents.broken]\nprotocol = \"plain\"\ncommand = [\"{}\"]\n", broken.display());
    enclosed.stage.world.write(file, &format!("{config}{agent}"));
    let id = enclosed.stage.exec(&["--agent", "broken", "--agent", "helper"]);
    let waited = enclosed.stage.wait(&id);
    assert_eq!(waited["data"]["final_message"], "done", "{waited}");
}

#[test]
fn an_enclosed_reader_is_no_writer() {
    let script = "touch \"$TMPDIR/x\"; while [ ! -e go ]; do sleep 0.05; done";
    let enclosed = Enclosed::new("auto", script, "");
    let exec =
        || enclosed.stage.run_json(&["local", "exec", "x", "--agent", "helper", "--mode", "read-only"]);
    let (first, second) = (exec(), exec());
    assert_eq!(second["meta"]["waiting_for"], Value::Null, "{second}");
    enclosed.stage.world.write("project/go", "");
    for task in [first, second] {
        let waited = enclosed.stage.wait(task["data"]["task_id"].as_str().unwrap());
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
        assert_eq!(waited["data"]["restore_point"], Value::Null, "{waited}");
    }
}

#[test]
fn responses_say_what_enforces_the_mode() {
    let other = "[agents.open]\nprotocol = \"plain\"\ncommand = [\"/bin/cat\"]\nunsandboxed = true";
    let enclosed = Enclosed::new("auto", "while [ ! -e go ]; do sleep 0.05; done", other);
    let stage = enclosed.stage.variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    let stage = stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    for (agent, mode, expected) in [
        ("helper", "read-only", "enforced"),
        ("codex", "read-only", "agent"),
        ("codex", "danger-full-access", "none"),
        ("open", "read-only", "none"),
    ] {
        let args = ["local", "exec", "x", "--agent", agent, "--mode", mode, "--confirm"];
        let accepted = stage.run_json(&args);
        assert_eq!(accepted["data"]["sandbox"], expected, "{agent} {mode}: {accepted}");
        let id = accepted["data"]["task_id"].as_str().unwrap();
        let listed = stage.run_json(&["local", "status"])["data"].clone();
        let is_listed = |task: &Value| task["task_id"] == id && task["sandbox"] == expected;
        for lists in [&["tasks", "queue", "recently_completed"][..], &["all_tasks"]] {
            let mut tasks = lists.iter().flat_map(|list| listed[list].as_array().into_iter().flatten());
            assert!(tasks.any(is_listed), "{agent} {mode}: {listed}");
        }
        stage.world.write("project/go", "");
        assert_eq!(stage.wait(id)["data"]["sandbox"], expected);
        assert_eq!(stage.run_json(&["local", "results", id])["data"]["sandbox"], expected);
        for format in ["human", "markdown"] {
            let shown = stage.world.run(["results", id, "--format", format]).stdout;
            let is_shown = shown.lines().any(|line| line.contains("sandbox") && line.contains(expected));
            assert_eq!(is_shown, expected != "agent", "{agent} {mode}: {shown}");
        }
    }
}
