//! A newcomer who has only Claude Code, and one who has Codex, too; with a scripted model.

use delegator_testkit::fake_model::{FakeModel, Reply, message};
use delegator_testkit::scripted_model::{Action, ScriptedModel};

use crate::{NEW_PROJECT, Newcomer};

fn model() -> ScriptedModel {
    let fix = Action::Run("echo 'echo yes' > leap.sh".to_owned());
    ScriptedModel::start([
        ("explain", vec![vec![Action::Say("It answers whether a year is a leap year.")]]),
        ("fix", vec![vec![fix], vec![Action::Say("Fixed: leap.sh prints yes.")]]),
    ])
}

/// Installs the program and Claude Code, which the key signs in, and enters the project.
fn arrive(model: &ScriptedModel) -> Newcomer {
    let variables = [("ANTHROPIC_BASE_URL", model.url()), ("ANTHROPIC_API_KEY", "fake-key".to_owned())];
    let newcomer = Newcomer::arrive(&variables);
    newcomer.machine.add_claude_code();
    std::fs::write(newcomer.machine.home().join(".claude.json"), "{}\n").unwrap();
    newcomer.terminal.run("scripts/install", &[]);
    newcomer.terminal.run(NEW_PROJECT, &[]);
    newcomer
}

#[test]
fn a_newcomer_with_only_claude_code_needs_no_codex() {
    let model = model();
    let newcomer = arrive(&model);
    let answers = [
        ("Register this server with Claude Code? [Y/n]", "y"),
        ("without asking? [y/N]", "n"),
        ("cannot change anything. [Y/n]", "n"),
    ];
    let registered = newcomer.dialogue("claude_1_init", "mcp-delegator init", &answers);
    let explained = newcomer.step("claude_2_run", "mcp-delegator run 'explain this [script explain]'");
    assert!(explained.contains("It answers whether a year is a leap year."), "{explained}");
    let change = "mcp-delegator run 'make test.sh pass [script fix]' -w -t 'sh test.sh'";
    let changed = newcomer.step("claude_3_run_and_verify", change);
    assert!(changed.contains("verified"), "{changed}");
    let status = newcomer.step("claude_4_status", "mcp-delegator status");
    let undone = newcomer.dialogue("claude_5_undo", "mcp-delegator undo", &[("[y/N]", "y")]);
    for screen in [registered, explained, changed, status, undone] {
        assert!(!screen.to_lowercase().contains("codex"), "{screen}");
    }
    newcomer.step("claude_6_agents", "mcp-delegator agents");
}

#[test]
fn a_newcomer_with_both_chooses_once() {
    let model = model();
    let newcomer = arrive(&model);
    let codex = FakeModel::start(vec![Reply::Output(vec![message("Codex says: a calendar.")])]);
    newcomer.install_codex(&codex);
    let answers = [("[codex]", "claude"), ("[Y/n]", "n"), ("[Y/n]", "n")];
    newcomer.dialogue("both_1_init", "mcp-delegator init", &answers);
    let by_claude = newcomer.step("both_2_run", "mcp-delegator run 'explain this [script explain]'");
    assert!(by_claude.contains("It answers whether a year is a leap year."), "{by_claude}");
    newcomer.step("both_3_use_codex", "mcp-delegator agents use codex");
    let by_codex = newcomer.step("both_4_run", "mcp-delegator run 'explain this'");
    assert!(by_codex.contains("Codex says: a calendar."), "{by_codex}");
    newcomer.step("both_5_status", "mcp-delegator status");
}
