//! A shell in tmux: types commands, waits until the prompt is back, and returns the screen as text.

#![expect(clippy::disallowed_methods, reason = "tests start tmux and poll its screen")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The prompt of the shell.
const PROMPT: &str = "$";
/// Nothing that a test types takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal, of 100 columns and 30 rows at first. Dropping it ends the shell.
#[derive(Debug)]
pub struct Terminal {
    /// Contains the socket, whose path must be short.
    folder: TempDir,
}

impl Terminal {
    /// Starts a shell with only these variables.
    pub fn start(working_dir: &Path, variables: &[(&str, String)]) -> Terminal {
        let terminal = Terminal { folder: tempfile::tempdir().unwrap() };
        let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
        let shell = ["bash", "--noprofile", "--norc", "-i"].map(str::to_owned);
        let clean_shell = ["env".to_owned(), "-i".to_owned()].into_iter().chain(variables).chain(shell);
        let directory = working_dir.display().to_string();
        let size = ["new-session", "-d", "-x", "100", "-y", "30", "-c", &directory].map(str::to_owned);
        terminal.tmux(&size.into_iter().chain(clean_shell).collect::<Vec<_>>());
        terminal.wait_for("the first prompt", |screen| screen.ends_with(PROMPT));
        terminal
    }

    /// Types a command on an empty screen, answers its questions, and returns everything that it prints, once the prompt
    /// is back.
    pub fn run(&self, command: &str, answers: &[(&str, &str)]) -> String {
        self.send_keys(&["C-l"]);
        // The cleared screen becomes part of the history.
        self.wait_for("an empty screen", |_| self.visible() == PROMPT);
        self.tmux(&["clear-history".to_owned()]);
        self.type_line(command);
        for (question, answer) in answers {
            // Questions are wrapped like other text.
            let is_shown =
                |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ").ends_with(question);
            self.wait_for(question, is_shown);
            self.type_line(answer);
        }
        let screen = self.wait_for(command, |screen| {
            screen.lines().count() > 1 && screen.lines().next_back() == Some(PROMPT)
        });
        screen.strip_suffix(PROMPT).unwrap_or(&screen).trim_end().to_owned() + "\n"
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn type_line(&self, text: &str) {
        self.send_keys(&["-l", text]);
        self.send_keys(&["Enter"]);
    }

    pub fn send_keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat().into_iter().map(str::to_owned).collect::<Vec<_>>());
    }

    pub fn wait_for(&self, what: &str, is_reached: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let screen = self.screen();
            if is_reached(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "still waiting for {what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = ["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()].map(str::to_owned);
        self.tmux(&size);
    }

    /// Only what is visible, without the spaces at the end of lines.
    pub fn visible(&self) -> String {
        self.capture(&[])
    }

    /// The screen and what has scrolled out of it.
    fn screen(&self) -> String {
        self.capture(&["-S", "-"])
    }

    fn capture(&self, range: &[&str]) -> String {
        // -J joins lines that the terminal wrapped, so that the text does not depend on the length of paths.
        let args = [&["capture-pane", "-p", "-J"], range].concat();
        let text = self.tmux(&args.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    fn tmux(&self, args: &[String]) -> String {
        let mut command = Command::new("tmux");
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        let run = command.args(["-f", "/dev/null", "-S"]).arg(self.socket()).args(args).output();
        let run = run.unwrap_or_else(|error| panic!("tmux: {error}; run scripts/install-tmux"));
        assert!(run.status.success(), "{args:?}: {run:?}");
        String::from_utf8_lossy(&run.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ = command.arg("-S").arg(self.socket()).arg("kill-server").status();
    }
}
