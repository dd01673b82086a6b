//! The defaults of tasks: the agent and the mode of a task that names none.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;

use delegator_config::{Sources, load};
use delegator_domain::task::Mode;

struct Machine {
    sources: Sources,
    _dir: tempfile::TempDir,
}

/// A home directory with this configuration file, and this project file in the current directory.
fn machine(user: &str, project: &str) -> Machine {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join(".config/mcp-delegator");
    let current_dir = dir.path().join("project");
    fs::create_dir_all(&config).unwrap();
    fs::create_dir_all(&current_dir).unwrap();
    fs::write(config.join("config.toml"), user).unwrap();
    fs::write(current_dir.join(".mcp-delegator.toml"), project).unwrap();
    let environment = [("HOME".into(), dir.path().into())].into();
    Machine { sources: Sources { environment, current_dir, cores: 4, ..Sources::default() }, _dir: dir }
}

#[test]
fn the_default_mode_is_lowered_by_a_project_and_never_above_the_permitted_mode() {
    let default_mode = |project: &str| {
        let user =
            "max_mode = 'danger-full-access'\ndefault_mode = 'workspace-write'\ndefault_agent = 'claude'\n";
        let home = machine(user, project);
        let config = load(&home.sources).unwrap();
        let of_task = config.for_work_tree(&home.sources.current_dir);
        of_task.map(|config| (config.settings.default_mode(), config.settings.default_agent))
    };
    let claude = Some("claude".to_owned());
    assert_eq!(default_mode("").unwrap(), (Mode::WorkspaceWrite, claude.clone()));
    assert_eq!(default_mode("default_mode = 'read-only'").unwrap(), (Mode::ReadOnly, claude.clone()));
    assert_eq!(default_mode("max_mode = 'read-only'").unwrap(), (Mode::ReadOnly, claude.clone()));
    assert_eq!(default_mode("default_mode = 'danger-full-access'").unwrap(), (Mode::WorkspaceWrite, claude));
    assert!(
        default_mode("default_agent = 'codex'")
            .unwrap_err()
            .to_string()
            .contains("a project file may set only")
    );
}

#[test]
fn unusable_defaults_are_problems_and_not_in_the_valid_part() {
    let user = "default_agent = 'gemni'\ndefault_mode = 'workspace-write'\n";
    let mut home = machine(user, "");
    home.sources.environment.insert("MCP_DELEGATOR_MAX_MODE".into(), "read-only".into());
    let invalid = load(&home.sources).unwrap_err();
    let found: Vec<_> = invalid.error.problems.iter().map(|it| (it.line, it.suggestion.as_deref())).collect();
    assert_eq!(found, [(Some(1), Some("gemini")), (Some(2), None)]);
    let message = invalid.error.problems[1].to_string();
    assert!(
        message.ends_with("exceeds `max_mode`, which is read-only (MCP_DELEGATOR_MAX_MODE)"),
        "{message}"
    );
    let settings = invalid.valid_part.settings;
    assert_eq!((settings.default_agent.as_deref(), settings.default_mode()), (None, Mode::ReadOnly));
    // An agent that could not be read is no second problem.
    let home = machine("default_agent = 'mine'\n[agents.mine]\nprotocol = 'plain'\n", "");
    assert_eq!(load(&home.sources).unwrap_err().error.problems.len(), 1);
}
