//! The arena: one temporary directory with the agent, two projects and a home for every participant.
//!
//! The agent is compiled once, from C, and stands in the first directory of the path under the name of every agent
//! command. Every process of a participant has that participant's home in its environment, which is how it is found
//! and killed at the end.

#![expect(clippy::disallowed_methods, reason = "the race compiles and starts programs")]

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock::{milliseconds, sleep};
use crate::error::LoadError;
use crate::processes::{ProcessHandle, with_variable};

const AGENT_SOURCE: &str = include_str!("agent.c");
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);
/// The names under which participants start the agent.
const AGENT_NAMES: [&str; 2] = ["codex", "claude"];
/// Files of the project with git, so that there is something to compare.
const PROJECT_FILES: usize = 20;

/// Prompts that choose what the agent does.
pub(crate) const INSTANT: &str = "Reply with one word.";
pub(crate) const TIMED: &str = "Reply with one word. RACE_TIMED";
pub(crate) const HANGING: &str = "Reply with one word. RACE_HANG";
/// What the agent replies.
pub(crate) const REPLY: &str = "RACE_DONE";

/// The directory of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Git,
    Plain,
}

#[derive(Debug)]
pub(crate) struct Arena {
    root: PathBuf,
    path: OsString,
    keep: bool,
}

impl Arena {
    /// `parent` must be on a real disk and outside of any git work tree.
    pub(crate) fn create(parent: &Path, keep: bool) -> Result<Arena, LoadError> {
        let root = parent.join(format!("race-{}", std::process::id()));
        let make_dir = |name: &str| {
            fs::create_dir_all(root.join(name)).map_err(LoadError::io(format!("create {name} in the arena")))
        };
        for folder in ["bin", "agent", "git", "plain", "participants", "packages"] {
            make_dir(folder)?;
        }
        let arena = Arena { path: search_path(&root), root, keep };
        arena.compile_agent()?;
        arena.create_repository()?;
        Ok(arena)
    }

    fn compile_agent(&self) -> Result<(), LoadError> {
        let source = self.root.join("agent.c");
        fs::write(&source, AGENT_SOURCE).map_err(LoadError::io("write the agent's source"))?;
        let define = format!("-DRACE_DIR=\"{}\"", self.root.join("agent").display());
        let [first, others @ ..] = AGENT_NAMES;
        let program = self.agent(first);
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-static", "-Wall", "-Wextra", "-Werror", &define, "-o"])
            .arg(&program)
            .arg(&source);
        run_to_end(&mut compiler, "cc")?;
        for name in others {
            fs::copy(&program, self.agent(name)).map_err(LoadError::io("copy the agent"))?;
        }
        Ok(())
    }

    fn create_repository(&self) -> Result<(), LoadError> {
        let place = self.place(Place::Git);
        for number in 0..PROJECT_FILES {
            let text = format!("file {number}\n");
            fs::write(place.join(format!("file-{number}.txt")), text)
                .map_err(LoadError::io("write a file"))?;
        }
        let author = ["-c", "user.name=race", "-c", "user.email=race@localhost"];
        for args in [["init", "-q", "."].as_slice(), &["add", "."], &["commit", "-q", "-m", "Add files"]] {
            let mut git = Command::new("git");
            run_to_end(git.args(author).args(args).current_dir(&place), "git")?;
        }
        Ok(())
    }

    pub(crate) fn place(&self, place: Place) -> PathBuf {
        self.root.join(match place {
            Place::Git => "git",
            Place::Plain => "plain",
        })
    }

    /// Where the packages of the peers are installed.
    pub(crate) fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    pub(crate) fn participant_dir(&self, name: &str) -> PathBuf {
        self.root.join("participants").join(dir_name(name))
    }

    fn agent(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(name)
    }

    /// A command with a clean environment: the agent first in the path, a home and a directory for temporary files.
    pub(crate) fn clean_command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", dir.join("home"))
            .env("TMPDIR", dir.join("tmp"))
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8");
        command
    }

    /// Runs the agent without any participant. Returns milliseconds.
    pub(crate) fn run_agent(&self) -> Result<f64, LoadError> {
        let started = Instant::now();
        self.spawn_agent()?.wait_with_output().map_err(LoadError::io("wait for the agent"))?;
        Ok(milliseconds(started.elapsed()))
    }

    /// Runs this many agents at once, without any participant. Returns milliseconds.
    pub(crate) fn run_agents(&self, count: usize) -> Result<f64, LoadError> {
        let started = Instant::now();
        let agents: Result<Vec<_>, LoadError> = (0..count).map(|_| self.spawn_agent()).collect();
        for agent in agents? {
            agent.wait_with_output().map_err(LoadError::io("wait for the agent"))?;
        }
        Ok(milliseconds(started.elapsed()))
    }

    fn spawn_agent(&self) -> Result<std::process::Child, LoadError> {
        let mut child = Command::new(self.agent("codex"))
            .args(["exec", "--json", "-"])
            .current_dir(self.place(Place::Git))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LoadError::io("start the agent"))?;
        let mut input = child.stdin.take().ok_or(LoadError::ServerGone)?;
        input.write_all(INSTANT.as_bytes()).map_err(LoadError::io("write the prompt"))?;
        Ok(child)
    }

    /// When the last agent with a timed prompt ended (monotonic clock, nanoseconds).
    pub(crate) fn agent_end_ns(&self) -> Result<i64, LoadError> {
        let text =
            fs::read_to_string(self.root.join("agent/end")).map_err(LoadError::io("read the agent's end"))?;
        text.trim().parse().map_err(|_| LoadError::Refused { response: text })
    }

    /// The file that an agent with a hanging prompt creates.
    pub(crate) fn hanging_file(&self) -> PathBuf {
        self.root.join("agent/hanging")
    }

    /// The living processes of a participant: its servers, its supervisors and its agents.
    fn processes(&self, dir: &Path) -> Vec<ProcessHandle> {
        with_variable(&[
            format!("HOME={}", dir.join("home").display()),
            format!("MCP_DELEGATOR_HOME={}", dir.join("state").display()),
        ])
    }

    pub(crate) fn pids(&self, dir: &Path) -> Vec<u32> {
        self.processes(dir).iter().map(|process| process.pid).collect()
    }

    /// Kills every process of a participant.
    pub(crate) fn kill_processes(&self, dir: &Path) {
        let deadline = Instant::now() + CLEANUP_TIMEOUT;
        loop {
            let alive = self.processes(dir);
            if alive.is_empty() || Instant::now() >= deadline {
                return;
            }
            alive.iter().for_each(ProcessHandle::kill);
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.root.join("participants")).into_iter().flatten().flatten() {
            self.kill_processes(&entry.path());
        }
        if !self.keep {
            // A directory that cannot be removed lies below /var/tmp and harms nothing.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// The name of a package as a directory.
pub(crate) fn dir_name(package: &str) -> String {
    package.trim_start_matches('@').replace('/', "-")
}

/// The agent, then the directory of node, then the system's programs.
fn search_path(root: &Path) -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let node = std::env::split_paths(&inherited).find(|folder| folder.join("node").is_file());
    let mut folders = vec![root.join("bin")];
    folders.extend(node);
    folders.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    std::env::join_paths(folders).unwrap_or_default()
}

/// Runs a program that has to succeed. Returns what it printed.
pub(crate) fn run_to_end(command: &mut Command, name: &str) -> Result<String, LoadError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(LoadError::io(format!("run {name}; is it installed?")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let line = error.lines().find(|line| line.to_lowercase().contains("error")).unwrap_or(&error);
    Err(LoadError::Program { program: name.to_owned(), output: super::session::excerpt(line) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_behaves_like_the_codex_command_line() {
        let parent = std::env::temp_dir().join(format!("xtask-race-agent-{}", std::process::id()));
        let arena = Arena::create(&parent, false).unwrap();
        let run = |args: &[&str]| run_to_end(Command::new(arena.agent("codex")).args(args), "agent").unwrap();
        assert!(run(&["--version"]).starts_with("codex-cli "));
        let events = run(&["exec", "--json", INSTANT]);
        let types: Vec<String> = events
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].to_string())
            .collect();
        let expected = ["thread.started", "turn.started", "item.completed", "turn.completed"];
        assert_eq!(types, expected.map(|kind| format!("\"{kind}\"")));
        assert!(events.contains(REPLY));
        assert_eq!(run(&["exec", INSTANT]).trim(), REPLY);
        run(&["exec", TIMED]);
        assert!(arena.agent_end_ns().unwrap() > 0);
        let root = arena.root.clone();
        drop(arena);
        assert!(!root.exists());
        fs::remove_dir(parent).unwrap();
    }
}
