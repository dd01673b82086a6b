//! Child processes that are started and not waited for.
//!
//! All of them are shells that become `sleep` or keep running, so only `sh` is needed, and `setsid` for a separate
//! session.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use super::{Runner, StepResult, pace, script_error};
use crate::script::{ChildProcess, ChildWork, ProcessTree, Session};

const SHELL: &str = "/bin/sh";
const DEFAULT_SECONDS: u32 = 600;
const DEFAULT_WIDTH: u32 = 2;
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Process `$1` of `$2` in a tree in which each has at most `$3` children: starts its children, then becomes
/// `sleep`.
const TREE: &str = r#"
k=1
while [ "$k" -le "$3" ]; do
  c=$(($1 * $3 + k))
  if [ "$c" -lt "$2" ]; then /bin/sh -c "$0" "$0" "$c" "$2" "$3" "$4" & fi
  k=$((k + 1))
done
exec sleep "$4""#;

impl Runner {
    pub(super) fn child(&mut self, child: &ChildProcess) -> StepResult {
        let pid_file = child.pid_file.as_ref().map(|file| self.path(file));
        let mut args: Vec<String> = Vec::new();
        if child.orphan {
            args.extend([SHELL, "-c", r#""$@" &"#, "sh"].map(str::to_owned));
        }
        if child.session == Session::Own {
            args.push("setsid".to_owned());
        }
        args.extend([SHELL.to_owned(), "-c".to_owned(), child_script(child), "sh".to_owned()]);
        let mut process = self.process(&args[0]);
        process.args(&args[1..]);
        process.args(&pid_file);
        if child.clear_env {
            process.env_clear();
        }
        if child.session == Session::OwnGroup {
            process.process_group(0);
        }
        if child.hold_output {
            self.share_output(&mut process)?;
        }
        let mut started = process.spawn().map_err(script_error("cannot start a child"))?;
        if child.orphan {
            started.wait().map_err(script_error("cannot wait for the parent of an orphan"))?;
        } else {
            self.children.push(started);
        }
        if let Some(file) = pid_file {
            while !std::fs::read(&file).is_ok_and(|text| text.ends_with(b"\n")) {
                pace::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    fn share_output(&self, process: &mut Command) -> StepResult {
        let failed = "cannot share an output";
        if let Some(stdout) = &self.stdout {
            process.stdout(stdout.try_clone().map_err(script_error(failed))?);
        }
        process.stderr(self.stderr.try_clone().map_err(script_error(failed))?);
        Ok(())
    }

    pub(super) fn fork_tree(&mut self, tree: ProcessTree) -> StepResult {
        if tree.processes == 0 {
            return Ok(());
        }
        let width = tree.width.unwrap_or(DEFAULT_WIDTH).max(1);
        let seconds = tree.seconds.unwrap_or(DEFAULT_SECONDS);
        let mut process = self.process(SHELL);
        process.args(["-c", TREE, TREE, "0"]);
        process.args([tree.processes, width, seconds].map(|number| number.to_string()));
        self.children.push(process.spawn().map_err(script_error("cannot start a tree"))?);
        Ok(())
    }
}

/// The shell script of a child; its first argument is the file for the process id, if there is one.
fn child_script(child: &ChildProcess) -> String {
    let names: Vec<&str> = child.ignore.iter().map(|signal| signal.name()).collect();
    let ignore_signals =
        if names.is_empty() { String::new() } else { format!("trap '' {}\n", names.join(" ")) };
    let work = match child.work {
        ChildWork::Sleep => format!("exec sleep {}", child.seconds.unwrap_or(DEFAULT_SECONDS)),
        ChildWork::Spin => "while :; do :; done".to_owned(),
        ChildWork::Chatter => "while :; do echo still here; sleep 0.1; done".to_owned(),
    };
    format!("{ignore_signals}if [ -n \"${{1-}}\" ]; then echo $$ > \"$1\"; fi\n{work}")
}
