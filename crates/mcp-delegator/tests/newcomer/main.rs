//! A newcomer in a clean home and a real terminal (tmux, 100 columns), with the real Codex and a fake model.
//!
//! The test types the commands of the README, from its first one on, and keeps every screen in
//! `tests/snapshots/newcomer/`, one file per step; `UPDATE_GENERATED=1` rewrites them. Ids, times, versions and paths are
//! replaced by constants. `scripts/install-tmux` and `scripts/install-codex` install what it needs.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod claude_code;
mod install;
mod machine;
mod normalize;

use delegator_testkit::fake_model::{FakeModel, Reply, message, patch};
use delegator_testkit::generated::assert_up_to_date;
use delegator_testkit::tmux::Terminal;
use machine::Machine;
use normalize::normalized;

/// The change that the model makes.
const FIX: &str = "*** Begin Patch\n*** Update File: leap.sh\n@@\n-echo no\n+echo yes\n*** End Patch\n";

/// The newcomer's project, with a test that fails.
const NEW_PROJECT: &str = "cd ~/calendar && git config --global user.name Me && git config --global user.email \
                           me@example.com && echo 'echo no' > leap.sh && echo 'test \"$(sh leap.sh)\" = yes' > \
                           test.sh && git init -q . && git add . && git commit -qm begin; echo";

struct Newcomer {
    // Ends before the machine is removed.
    terminal: Terminal,
    machine: Machine,
}

impl Newcomer {
    /// Opens a terminal in a fresh clone, with these variables besides the usual ones.
    fn arrive(more: &[(&str, String)]) -> Newcomer {
        let machine = Machine::new();
        let variables = [
            ("HOME", machine.home().display().to_string()),
            ("PATH", machine.search_path()),
            ("TERM", "screen".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("PS1", "$ ".to_owned()),
            ("TMPDIR", machine.scratch().display().to_string()),
            ("GIT_PAGER", "cat".to_owned()),
        ];
        let terminal = Terminal::start(&machine.checkout(), &[&variables, more].concat());
        Newcomer { terminal, machine }
    }

    /// Installs Codex. A fake model in its configuration takes the place of `codex login`.
    fn install_codex(&self, model: &FakeModel) {
        self.machine.add_codex();
        std::fs::create_dir(self.machine.home().join(".codex")).unwrap();
        std::fs::write(self.machine.home().join(".codex/config.toml"), model.codex_config()).unwrap();
    }

    /// Types a command and compares the screen with the stored one.
    fn step(&self, name: &str, command: &str) -> String {
        self.dialogue(name, command, &[])
    }

    /// The same, for a command that asks questions.
    fn dialogue(&self, name: &str, command: &str, answers: &[(&str, &str)]) -> String {
        let screen = self.terminal.run(command, answers);
        let path = format!("crates/mcp-delegator/tests/snapshots/newcomer/{name}.txt");
        assert_up_to_date(&path, &normalized(&screen, self.machine.path()));
        screen
    }
}

#[test]
fn a_newcomer_delegates_verifies_and_reviews_a_change() {
    let model = FakeModel::start(vec![
        Reply::Output(vec![message("A calendar, tested by test.sh.")]),
        Reply::Output(vec![message("It answers whether a year is a leap year.")]),
        Reply::Output(vec![patch(FIX)]),
        Reply::Output(vec![message("Fixed: leap.sh prints yes.")]),
    ]);
    let newcomer = Newcomer::arrive(&[]);
    newcomer.step("01_demo", "cargo run -- demo");
    newcomer.step("02_install", "scripts/install");
    newcomer.step("03_no_arguments", "mcp-delegator");
    newcomer.step("04_doctor_without_codex", "mcp-delegator doctor; echo exit $?");
    newcomer.install_codex(&model);
    newcomer.step("05_doctor", "mcp-delegator doctor; echo exit $?");
    newcomer.terminal.run(NEW_PROJECT, &[]);
    let answers = [
        ("Register this server with Codex? [Y/n]", "y"),
        ("without asking? [y/N]", "n"),
        ("cannot change anything. [Y/n]", "y"),
    ];
    let described = newcomer.dialogue("06_init", "mcp-delegator init", &answers);
    assert!(described.contains("A calendar, tested by test.sh."), "{described}");
    let explained = newcomer.step("07_run_read_only", "mcp-delegator run 'explain this project'");
    assert!(explained.contains("It answers whether a year is a leap year."), "{explained}");
    let change = "mcp-delegator run 'make test.sh pass' --mode workspace-write --verify 'sh test.sh'";
    let changed = newcomer.step("08_run_and_verify", change);
    assert!(changed.contains("verified"), "{changed}");
    newcomer.step("09_results", "mcp-delegator results --last");
    newcomer.step("10_review", "git diff");
    newcomer.step("11_restore_dry_run", "mcp-delegator restore --last --dry-run");
    newcomer.step("12_mistyped_command", "mcp-delegator rnu 'explain this project'; echo exit $?");
    newcomer
        .step("13_mistyped_flag", "mcp-delegator run 'explain this project' --mod read-only; echo exit $?");
}
