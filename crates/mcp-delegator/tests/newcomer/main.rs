//! A newcomer in a clean home and a real terminal (tmux, 100 columns), with the real Codex and a fake model.
//!
//! The test types the commands of the README and keeps every screen in `tests/snapshots/newcomer/`, one file per step;
//! `UPDATE_GENERATED=1` rewrites them. Ids, times, versions and paths are replaced by constants. `scripts/install-tmux` and
//! `scripts/install-codex` install what it needs.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod normalize;
mod tmux;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use delegator_testkit::codex::codex_program;
use delegator_testkit::fake_model::{FakeModel, Reply, message, patch};
use delegator_testkit::generated::assert_up_to_date;
use delegator_testkit::program::World;
use normalize::normalized;
use tmux::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

/// The change that the model makes.
const FIX: &str = "*** Begin Patch\n*** Update File: leap.sh\n@@\n-echo no\n+echo yes\n*** End Patch\n";

/// A machine on which the program is installed, and nothing else.
struct Newcomer {
    // Ends before the world with its socket is removed.
    terminal: Terminal,
    world: World,
}

impl Newcomer {
    fn arrive(model: &FakeModel) -> Newcomer {
        let world = World::new(PROGRAM);
        world.write("home/.codex/config.toml", &model.codex_config());
        world.write("project/leap.sh", "echo no\n");
        world.write("project/test.sh", "test \"$(sh leap.sh)\" = yes\n");
        let root = world.home().parent().unwrap().to_owned();
        for folder in ["bin", "scratch"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        symlink(PROGRAM, root.join("bin/mcp-delegator")).unwrap();
        let variables = [
            ("HOME", world.home().display().to_string()),
            ("PATH", format!("{}:/usr/bin:/bin", root.join("bin").display())),
            ("TERM", "screen".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("PS1", "$ ".to_owned()),
            // Codex rejects its sandbox helper if its home directory is below the temporary directory.
            ("TMPDIR", root.join("scratch").display().to_string()),
            ("GIT_PAGER", "cat".to_owned()),
        ];
        let terminal = Terminal::start(&root, &world.project(), &variables);
        Newcomer { terminal, world }
    }

    fn root(&self) -> PathBuf {
        self.world.home().parent().unwrap().to_owned()
    }

    fn install_codex(&self) {
        symlink(codex_program(), self.root().join("bin/codex")).unwrap();
    }

    /// Types a command whose screen is not kept.
    fn prepare(&self, command: &str) {
        self.terminal.run(command);
    }

    /// Types a command and compares the screen with the stored one.
    fn step(&self, name: &str, command: &str) -> String {
        let screen = self.terminal.run(command);
        let path = format!("crates/mcp-delegator/tests/snapshots/newcomer/{name}.txt");
        assert_up_to_date(&path, &normalized(&screen, &self.root()));
        screen
    }
}

#[test]
fn a_newcomer_delegates_verifies_and_reviews_a_change() {
    let model = FakeModel::start(vec![
        Reply::Output(vec![message("It answers whether a year is a leap year.")]),
        Reply::Output(vec![patch(FIX)]),
        Reply::Output(vec![message("Fixed: leap.sh prints yes.")]),
    ]);
    let newcomer = Newcomer::arrive(&model);
    newcomer.step("01_no_arguments", "mcp-delegator");
    newcomer.step("02_doctor_without_codex", "mcp-delegator doctor; echo exit $?");
    newcomer.install_codex();
    newcomer.step("03_doctor", "mcp-delegator doctor; echo exit $?");
    let identity = "git config --global user.name Me && git config --global user.email me@example.com";
    newcomer.prepare(&format!("{identity} && git init -q . && git add . && git commit -qm begin; echo"));
    let explained = newcomer.step("04_run_read_only", "mcp-delegator run 'explain this project'");
    assert!(explained.contains("It answers whether a year is a leap year."), "{explained}");
    let change = "mcp-delegator run 'make test.sh pass' --mode workspace-write --verify 'sh test.sh'";
    let changed = newcomer.step("05_run_and_verify", change);
    assert!(changed.contains("verified"), "{changed}");
    newcomer.step("06_results", "mcp-delegator results --last");
    newcomer.step("07_review", "git diff");
    newcomer.step("08_restore_dry_run", "mcp-delegator restore --last --dry-run");
    newcomer.step("09_mistyped_command", "mcp-delegator rnu 'explain this project'; echo exit $?");
    newcomer
        .step("10_mistyped_flag", "mcp-delegator run 'explain this project' --mod read-only; echo exit $?");
}
