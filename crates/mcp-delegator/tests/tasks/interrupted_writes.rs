//! Commands that change the user's work tree or a task's worktree, and those that continue a task, are killed at each system
//! call that changes something, then run once more.
//!
//! Every point must give the same end state as a run that was not killed. `strace` sends the signal: to the program, whose git
//! processes then run to their end, or to a git process, and with it to the program. By default a few points of each command
//! are tried; with MCP_DELEGATOR_SWEEP=all every point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delegator_testkit::program::{RunOutput, read_text};
use delegator_testkit::stage::{Stage, pids, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

/// An agent that runs the first line of its prompt in a shell.
const AGENT: &str = r#"if [ "$1" = sandbox ]; then echo 'bwrap: No permissions'; exit 1; fi
echo '{"type":"thread.started","thread_id":"thread"}'
echo '{"type":"turn.started"}'
read -r line
eval "$line"
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{}}'"#;
const TASK: &str = "sed -i s/4/agent/ code; mkdir sub; echo new > sub/new; rm gone; mv old moved; chmod +x tool; echo 1 >> dir/deep/file";
const CALLS: &str = "rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,rmdir,chmod,fchmod,fchmodat,\
                     fsync,fdatasync,ftruncate";
/// What a submission does besides: it writes the registry and starts a process.
const SUBMISSION_CALLS: &str = "pwrite64,write,clone,clone3,vfork";
/// How many points of each kind are tried by default.
const SAMPLE: usize = 6;

/// Counts its calls, or runs one of them so that a system call kills it, and its parent with it.
const GIT: &str = r#"#!/bin/sh
here=${0%/*}
number=$(($(/bin/cat "$here/count" 2>/dev/null || echo 0) + 1))
echo $number > "$here/count"
if [ -e "$here/discover" ]; then
    /usr/bin/strace -qq -o "$here/trace-$number" -e trace=CALLS /usr/bin/git "$@"
    exit $?
fi
read -r victim when < "$here/victim"
[ $number = "$victim" ] || exec /usr/bin/git "$@"
/usr/bin/strace -qq -o "$here/trace" -e trace=CALLS -e inject=CALLS:signal=KILL:when=$when /usr/bin/git "$@"
status=$?
[ $status -lt 128 ] || kill -9 $PPID
exit $status
"#;

/// Where a run is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// At this call of the program.
    Program(usize),
    /// At a call of a git process: their numbers.
    Git(usize, usize),
}

type State = (BTreeMap<PathBuf, Vec<u8>>, String);

struct Sweep {
    stage: Stage,
    root: PathBuf,
    id: String,
    calls: String,
}

impl Sweep {
    /// A task that changed files in its worktree, and a user with changes of their own.
    fn new(before: &[&str]) -> Sweep {
        Sweep::with_task(&["--isolation", "worktree"], before)
    }

    /// Like [`Sweep::new`], with other arguments for the task.
    fn with_task(extra_args: &[&str], before: &[&str]) -> Sweep {
        let stage = Stage::with_shell_agent(PROGRAM, AGENT);
        let root = stage.world.home().parent().unwrap().to_owned();
        for name in ["gone", "old", "tool", "dir/deep/file", "other", "staged"] {
            stage.world.write(&format!("project/{name}"), &format!("{name}\n").repeat(9));
        }
        stage.world.write("project/code", "1\n2\n3\n4\n5\n6\n7\n");
        let sweep = Sweep { stage, root, id: String::new(), calls: CALLS.to_owned() };
        sweep.git(&["init", "--quiet", "--initial-branch=main"]);
        sweep.git(&["config", "user.name", "A Person"]);
        sweep.git(&["config", "user.email", "person@localhost"]);
        sweep.git(&["add", "."]);
        sweep.git(&["commit", "--quiet", "-m", "first"]);
        let exec = ["local", "exec", TASK, "--mode", "workspace-write"];
        let submitted = sweep.stage.run_json(&[&exec, extra_args].concat());
        let id = submitted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{submitted}")).to_owned();
        assert_eq!(sweep.stage.wait(&id)["data"]["state"], "completed");
        sweep.stage.world.write("project/other", "mine\n");
        sweep.stage.world.write("project/staged", "mine\n");
        sweep.git(&["add", "staged"]);
        sweep.stage.write_program("git-bin/git", &GIT.replace("CALLS", CALLS));
        let sweep = Sweep { id, ..sweep };
        if !before.is_empty() {
            sweep.run(before);
        }
        sweep.shell("mkdir saved && cp -a home project saved");
        sweep
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let run = self.stage.world.run_as(Path::new("/usr/bin/git"), args);
        assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
        run.stdout
    }

    fn shell(&self, text: &str) {
        let text = format!("cd '{}' && {text}", self.root.display());
        let run = self.stage.world.run_as(Path::new("/bin/sh"), ["-c", &text]);
        assert_eq!(run.exit, Some(0), "{run:?}");
    }

    fn reset(&self) {
        self.shell(
            "chmod -R u+w home project; rm -rf home project git-bin/[!g]*; cp -a saved/home saved/project .",
        );
    }

    fn args<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        command.iter().map(|arg| if *arg == "ID" { &self.id } else { *arg }).collect()
    }

    #[track_caller]
    fn run(&self, command: &[&str]) -> Value {
        let run = self.stage.world.run(self.args(command));
        assert_eq!(run.exit, Some(0), "{command:?}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Runs the command under `strace`.
    fn trace(&self, options: &[&str], command: &[&str]) -> RunOutput {
        let log = self.root.join("strace.log");
        let mut args = vec!["-qq", "-o", log.to_str().unwrap()];
        args.extend(options);
        args.push(PROGRAM);
        args.extend(self.args(command));
        self.stage.world.run_as(Path::new("/usr/bin/strace"), args)
    }

    fn run_with_git(&self, command: &[&str]) -> RunOutput {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.root.join("git-bin").display());
        let mut args = vec!["PATH=".to_owned() + &path, PROGRAM.to_owned()];
        args.extend(self.args(command).into_iter().map(str::to_owned));
        self.stage.world.run_as(Path::new("/usr/bin/env"), args)
    }

    /// All points of a command. Leaves the state of a run that was not killed.
    fn points(&self, command: &[&str]) -> [Vec<Point>; 2] {
        let program = self.program_points(command);
        self.reset();
        self.stage.world.write("git-bin/discover", "");
        let traced = self.run_with_git(command);
        assert_eq!(traced.exit, Some(0), "{traced:?}");
        let total: usize = read_text(&self.root.join("git-bin/count")).trim().parse().unwrap();
        let calls = |number: usize| count_calls(&self.root.join(format!("git-bin/trace-{number}")));
        let git =
            (1..=total).flat_map(|number| (1..=calls(number)).map(move |call| Point::Git(number, call)));
        [program, git.collect()]
    }

    fn program_points(&self, command: &[&str]) -> Vec<Point> {
        self.reset();
        let traced = self.trace(&["-e", &format!("trace={}", self.calls)], command);
        assert_eq!(traced.exit, Some(0), "{traced:?}");
        (1..=count_calls(&self.root.join("strace.log"))).map(Point::Program).collect()
    }

    fn kill(&self, point: Point, command: &[&str]) {
        match point {
            Point::Program(when) => {
                let calls = &self.calls;
                let inject = format!("inject={calls}:signal=KILL:when={when}");
                self.trace(&["-e", &format!("trace={calls}"), "-e", &inject], command);
            }
            Point::Git(number, call) => {
                self.stage.world.write("git-bin/victim", &format!("{number} {call}\n"));
                self.run_with_git(command);
            }
        }
    }

    /// The user's files, index, history and branches, and what is left of worktrees.
    fn state(&self) -> State {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.stage.world.project()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true if path.ends_with(".git") => {}
                    true => folders.push(path),
                    false => drop(files.insert(path.clone(), std::fs::read(path).unwrap())),
                }
            }
        }
        let git = [
            ["status", "--porcelain", "--untracked-files=all"].as_slice(),
            &["ls-files", "--stage"],
            &["log", "--format=%T %an %ae %cn %ce %B"],
            &["for-each-ref", "--format=%(refname) %(tree)", "refs/heads"],
            &["worktree", "list"],
        ];
        let locks = "find .git -name '*.lock' -o -name mcp-delegator-apply";
        let worktrees = "find ../home/state-worktrees | sort";
        let found =
            [locks, worktrees].map(|text| self.stage.world.run_as(Path::new("/bin/sh"), ["-c", text]));
        let texts: Vec<String> =
            git.iter().map(|args| self.git(args)).chain(found.map(|found| found.stdout)).collect();
        (files, texts.join("--\n").replace(&self.git(&["rev-parse", "HEAD"])[..7], "HEAD"))
    }

    /// What the program says about the task and the changes in its worktree.
    fn statements(&self) -> Value {
        let results = self.run(&["local", "results", "ID"]);
        json!([results["data"], self.diff("ID")])
    }

    fn diff(&self, task: &str) -> String {
        let run = self.stage.world.run(self.args(&["diff", task]));
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.stdout
    }

    /// Waits until no process of this world is left, so that nothing writes to its files.
    fn wait_for_processes(&self) {
        let mark = format!("MCP_DELEGATOR_HOME={}", self.root.display()).into_bytes();
        let belongs_here = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(mark.len()).any(|window| window == mark)
        };
        wait_until("all processes have ended", || !pids().iter().any(belongs_here));
    }
}

fn count_calls(trace: &Path) -> usize {
    read_text(trace).lines().filter(|line| line.contains('(')).count()
}

/// Every `n`th of the points, so that about `SAMPLE` are left, or all of them if the caller demands it.
#[expect(clippy::disallowed_methods, reason = "the caller selects the points")]
fn selected(points: &[Point]) -> impl Iterator<Item = Point> {
    let is_complete = std::env::var("MCP_DELEGATOR_SWEEP").is_ok_and(|value| value == "all");
    let step = if is_complete { 1 } else { points.len().div_ceil(SAMPLE).max(1) };
    points.iter().copied().step_by(step)
}

/// Tries the points of a command. `later` runs after it, so that what it stored is used.
#[expect(clippy::print_stdout, reason = "the caller counts the points")]
fn sweep(before: &[&str], command: &[&str], later: &[&str]) {
    let sweep = Sweep::new(before);
    let points = sweep.points(command);
    let expected = sweep.state();
    let is_discard = command[0] == "discard";
    let expected_statements = is_discard.then(|| (sweep.run(command)["data"].clone(), sweep.statements()));
    let expected_later = (!later.is_empty()).then(|| {
        sweep.run(later);
        sweep.state()
    });
    for (kind, points) in ["program", "git"].into_iter().zip(points) {
        let mut tried = 0;
        for point in selected(&points) {
            sweep.reset();
            sweep.kill(point, command);
            // A user looks at the result of the kill.
            let killed = sweep.git(&["status", "--porcelain"]);
            let again = sweep.run(command);
            assert_eq!(
                sweep.state(),
                expected,
                "{point:?} of {command:?}: {again}\nafter the kill: {killed}"
            );
            if let Some(commit) = again["data"]["commit"].as_str() {
                let found = sweep.git(&["rev-parse", again["data"]["branch"].as_str().unwrap_or("HEAD")]);
                assert_eq!(found.trim(), commit, "{point:?}: {again}");
            }
            assert_eq!(
                again["data"]["commit"].is_string(),
                command.len() > 2 && command[0] == "apply",
                "{again}"
            );
            if let Some(expected) = &expected_statements {
                assert_eq!(
                    &(again["data"].clone(), sweep.statements()),
                    expected,
                    "{point:?} of {command:?}"
                );
            }
            if let Some(expected) = &expected_later {
                let done = sweep.run(later);
                assert_eq!(&sweep.state(), expected, "{point:?} of {command:?}, then {later:?}: {done}");
            }
            tried += 1;
        }
        println!(
            "{command:?}: {} calls of {kind}, {tried} tried, each with one rerun: all as expected",
            points.len()
        );
        assert!(tried > 0 || is_discard, "{kind}");
    }
}

/// Resumes a task that was submitted with these arguments. One rerun with the same idempotency key must give one task, which
/// runs once, and must leave nothing locked: `later` succeeds.
#[expect(clippy::print_stdout, reason = "the caller counts the points")]
fn sweep_resume(extra_args: &[&str], later: &[&str]) {
    let sweep = Sweep::with_task(extra_args, &[]);
    let sweep = Sweep { calls: format!("{CALLS},{SUBMISSION_CALLS}"), ..sweep };
    let resume = ["local", "resume", "echo again >> again", "--task-id", "ID", "--mode", "workspace-write"];
    let resume = [&resume[..], &["--idempotency-key", "once"]].concat();
    let finish = |point: Option<Point>| {
        let answer = sweep.run(&resume);
        let id = answer["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        let ended = sweep.stage.wait(&id);
        assert_eq!(ended["data"]["state"], "completed", "{point:?}: {ended}");
        sweep.wait_for_processes();
        let tasks = sweep.run(&["local", "status"]);
        assert_eq!(tasks["data"]["all_tasks"].as_array().map(Vec::len), Some(2), "{point:?}: {tasks}");
        let diff = sweep.diff(&id);
        let running = sweep.state();
        let done = sweep.run(later);
        sweep.wait_for_processes();
        (diff, running.0, sweep.state().0, done["ok"].clone())
    };
    let points = sweep.program_points(&resume);
    sweep.wait_for_processes();
    sweep.reset();
    let expected = finish(None);
    let in_project = expected.1.get(&sweep.stage.world.project().join("again"));
    assert!(expected.0.contains("+again\n") || in_project.is_some(), "{expected:?}");
    let mut tried = 0;
    for point in selected(&points) {
        sweep.reset();
        sweep.kill(point, &resume);
        assert_eq!(finish(Some(point)), expected, "{point:?}");
        tried += 1;
    }
    println!(
        "{resume:?} {extra_args:?}: {} calls, {tried} tried, each with one rerun: as expected",
        points.len()
    );
    assert!(tried > 0);
}

#[test]
fn a_killed_apply_is_repeated_and_reverted() {
    sweep(&[], &["apply", "ID"], &["restore", "ID", "--confirm-destructive"]);
}

#[test]
fn a_killed_commit_is_repeated_and_reverted() {
    sweep(&[], &["apply", "ID", "--commit"], &["restore", "ID", "--force", "--confirm-destructive"]);
}

#[test]
fn a_killed_branch_is_repeated() {
    sweep(&[], &["apply", "ID", "--branch", "result"], &[]);
}

#[test]
fn a_killed_restore_is_repeated_and_undone() {
    let restore = ["restore", "ID", "--confirm-destructive"];
    sweep(&["apply", "ID"], &restore, &["restore", "ID", "--undo", "--confirm-destructive"]);
}

#[test]
fn a_killed_discard_is_repeated_and_its_diff_applied() {
    sweep(&[], &["discard", "ID", "--confirm-destructive"], &["apply", "ID"]);
}

#[test]
fn a_killed_resume_is_submitted_once() {
    sweep_resume(&[], &["restore", "ID", "--all", "--confirm-destructive"]);
}

#[test]
fn a_killed_resume_in_a_worktree_is_submitted_once() {
    sweep_resume(&["--isolation", "worktree"], &["discard", "ID", "--confirm-destructive"]);
}

/// The user edits a file after the kill, whether it was written by then or not.
#[test]
fn edits_after_a_kill_are_never_lost() {
    let restore = ["restore", "ID", "--confirm-destructive"];
    for (before, command) in [(&[][..], &["apply", "ID"][..]), (&["apply", "ID"], &restore)] {
        let sweep = Sweep::new(before);
        let [points, _] = sweep.points(command);
        let merged = read_text(&sweep.stage.world.project().join("code")) + "mine\n";
        for point in points.iter().copied().step_by(points.len().div_ceil(SAMPLE)) {
            sweep.reset();
            sweep.kill(point, command);
            sweep.shell("echo mine >> project/code; echo mine > project/gone");
            let again = sweep.stage.world.run(sweep.args(command));
            let texts = ["code", "gone"].map(|name| read_text(&sweep.stage.world.project().join(name)));
            match again.exit {
                Some(0) => assert_eq!(texts, [merged.clone(), "mine\n".to_owned()], "{point:?}: {again:?}"),
                // The file that the task deletes has other content now.
                _ => {
                    assert!(again.stdout.contains("gone"), "{point:?}: {again:?}");
                    assert!(texts[0].ends_with("\nmine\n") && texts[1] == "mine\n", "{point:?}: {texts:?}");
                }
            }
        }
    }
}
