//! Agents in worktrees: three at once commit by themselves, and nothing else in the repository can be written.

use std::path::Path;

use delegator_testkit::program::read_text;
use delegator_testkit::scripted_model::Action;

use crate::agent_kinds::AgentKind;
use crate::live_world::LiveWorld;

/// Creates a file named after the task, commits it, and then tries to write where only the user may.
const COMMIT: &str = "task=${DELEGATOR_TASK%%:*}; echo done > \"by-$task\"; git add . ; \
    git -c user.name=a -c user.email=a@a commit -qm \"by $task\"; common=$(git rev-parse --git-common-dir); \
    for path in config hooks/evil refs/heads/evil packed-refs; do echo x >> \"$common/$path\"; done; true";

fn three_tasks_commit_and_are_applied(kind: AgentKind) {
    let script = vec![vec![Action::Run(COMMIT.to_owned())], vec![Action::Say("Committed.")]];
    let live =
        LiveWorld::new(kind, |_| vec![("commit", script)]).variable("MCP_DELEGATOR_MAX_CONCURRENT", "3");
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let run = live.world.run_as(Path::new("/usr/bin/git"), [&identity, args].concat());
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.stdout
    };
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let common = live.world.project().join(".git");
    let before =
        (read_text(&common.join("config")), git(&["branch", "--list"]), git(&["log", "--format=%H"]));
    let isolated = ["--mode", "workspace-write", "--isolation", "worktree"];
    let ids: Vec<String> = (0..3).map(|_| live.exec("commit", &isolated)).collect();
    for id in &ids {
        let data = live.wait(id);
        assert_eq!(data["state"], "completed", "{data:#}");
        assert!(data["git"]["commits"].to_string().contains(&format!("by {id}")), "{data:#}");
    }
    for id in &ids {
        let applied = live.world.run(["apply", id]).json();
        assert_eq!(applied["data"]["is_applied"], true, "{applied:#}");
        assert_eq!(read_text(&live.world.project().join(format!("by-{id}"))), "done\n");
    }
    let after = (read_text(&common.join("config")), git(&["branch", "--list"]), git(&["log", "--format=%H"]));
    assert_eq!(after, before);
    assert!(!common.join("hooks/evil").exists() && !common.join("packed-refs").exists());
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn three_codex_tasks_commit_and_are_applied() {
    three_tasks_commit_and_are_applied(AgentKind::Codex);
}

#[test]
fn three_enclosed_tasks_commit_and_are_applied() {
    three_tasks_commit_and_are_applied(AgentKind::Plain);
}
