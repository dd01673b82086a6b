//! `init` checks, registers and runs a first task; it asks only a person, and repeats only what is missing.

use std::os::unix::fs::PermissionsExt;

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::fake_model::{FakeModel, Reply, message};
use delegator_testkit::program::{World, output_of, read_text};
use delegator_testkit::terminal::TerminalSession;
use serde_json::{Value, json};

use crate::PROGRAM;
const DESCRIPTION: &str = "A calendar, tested by test.sh.";

/// The real Codex with a model that describes the project, and two clients.
fn stage() -> (FakeModel, World) {
    let model = FakeModel::start(vec![Reply::Output(vec![message(DESCRIPTION)])]);
    let world = world_with_codex(PROGRAM, &model.codex_config());
    world.write("home/.cursor/mcp.json", "{}");
    (model, world)
}

/// Name and status of each step.
fn steps(data: &Value) -> Vec<(&str, &str)> {
    let steps = data["steps"].as_array().unwrap_or_else(|| panic!("{data}"));
    steps.iter().map(|step| (step["name"].as_str().unwrap(), step["status"].as_str().unwrap())).collect()
}

fn is_registered(world: &World, file: &str) -> bool {
    read_text(&world.home().join(file)).contains("mcp-delegator")
}

#[test]
fn init_checks_registers_and_runs_a_first_task_once() {
    let (_model, world) = stage();
    let planned = world.run(["init", "--dry-run"]).json();
    assert_eq!(
        steps(&planned["data"])[..4],
        [("check", "done"), ("clients.codex", "planned"), ("clients.cursor", "planned"), ("task", "planned")]
    );
    assert!(!is_registered(&world, ".cursor/mcp.json"), "a dry run changes nothing");
    let run = world.run(["init", "--yes"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let data = run.json()["data"].clone();
    assert_eq!(
        steps(&data)[..4],
        [("check", "done"), ("clients.codex", "done"), ("clients.cursor", "done"), ("task", "done")]
    );
    assert_eq!(data["task"]["final_message"], DESCRIPTION, "{data}");
    assert!(is_registered(&world, ".cursor/mcp.json") && is_registered(&world, ".codex/config.toml"));
    assert!(
        !read_text(&world.home().join(".codex/config.toml")).contains("approval_mode"),
        "not without consent"
    );
    assert!(data.to_string().contains("help env add"), "how to get the tools for cloud tasks: {data}");
    let again = world.run(["init", "--yes"]).json()["data"].clone();
    assert_eq!(
        steps(&again)[..4],
        [("check", "done"), ("clients.codex", "skipped"), ("clients.cursor", "skipped"), ("task", "skipped")]
    );
}

#[test]
fn questions_are_wrapped_at_the_width_of_the_terminal() {
    let (_model, world) = stage();
    let mut terminal = TerminalSession::start_interactive_of(60, world.command(["init"]));
    for (question, answer) in [("Cursor? [Y/n]", "y\n"), ("[y/N]", "n\n"), ("Run a first task", "n\n")] {
        terminal.wait_for_text(question);
        terminal.type_text(answer);
    }
    let shown = terminal.wait().stdout;
    let is_wide = |line: &&str| line.chars().count() > 60 && line.trim().contains(' ');
    assert_eq!(shown.lines().filter(is_wide).collect::<Vec<_>>(), Vec::<&str>::new(), "{shown}");
}

#[test]
fn init_asks_at_most_three_questions_and_accepts_no() {
    let (_model, world) = stage();
    let mut terminal = TerminalSession::start_interactive(world.command(["init"]));
    for (question, answer) in [
        ("Register this server with Codex, Cursor? [Y/n]", "y\n"),
        ("without asking? [y/N]", "y\n"),
        ("describes the project; it cannot change anything. [Y/n]", "n\n"),
    ] {
        terminal.wait_for_text(question);
        terminal.type_text(answer);
    }
    let shown = terminal.wait();
    assert_eq!(shown.exit, Some(0), "{shown:?}");
    assert_eq!(
        (shown.stdout.matches("[Y/n]").count(), shown.stdout.matches("[y/N]").count()),
        (2, 1),
        "{shown:?}"
    );
    assert!(read_text(&world.home().join(".codex/config.toml")).contains("approval_mode = \"approve\""));
    // What is done needs no question.
    let mut terminal = TerminalSession::start_interactive(world.command(["init"]));
    terminal.wait_for_text("[Y/n]");
    terminal.type_text("n\n");
    let shown = terminal.wait().stdout;
    assert!(!shown.contains("Register this server with") && !shown.contains("[y/N]"), "{shown}");
}

#[test]
fn without_a_terminal_nothing_is_done_unless_flags_answer() {
    let (_model, world) = stage();
    let run = world.run(["init"]);
    assert_eq!(
        (run.exit, &run.json()["error"]["code"]),
        (Some(2), &json!("CONFIRMATION_REQUIRED")),
        "{run:?}"
    );
    assert!(!is_registered(&world, ".cursor/mcp.json"));
    let data = world.run(["init", "--yes", "--skip-task", "--clients", "cursor"]).json()["data"].clone();
    assert_eq!(steps(&data)[..3], [("check", "done"), ("clients.cursor", "done"), ("task", "skipped")]);
    assert!(!is_registered(&world, ".codex/config.toml"));
}

#[test]
fn a_missing_agent_fails_with_its_fix_and_nothing_is_registered() {
    let world = World::new(PROGRAM);
    world.write("home/.cursor/mcp.json", "{}");
    let run = output_of(&mut world.command(["init", "--yes"]));
    let answer = run.json();
    assert_eq!((run.exit, &answer["error"]["code"]), (Some(4), &json!("DEPENDENCY_MISSING")), "{answer}");
    let data = &answer["meta"]["failure_data"];
    let statuses = steps(data);
    assert!(statuses.contains(&("clients", "skipped")) && statuses.contains(&("task", "skipped")), "{data}");
    assert!(!is_registered(&world, ".cursor/mcp.json"));
    assert!(data["steps"][0]["next"].as_str().unwrap().contains("npm install -g @openai/codex"), "{data}");
}

#[test]
fn an_interrupt_at_a_question_changes_nothing() {
    let (_model, world) = stage();
    let mut terminal = TerminalSession::start_interactive(world.command(["init"]));
    terminal.wait_for_text("[Y/n]");
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(terminal.wait().exit, Some(130));
    assert!(!is_registered(&world, ".cursor/mcp.json"));
}

#[test]
fn a_first_task_below_is_not_one_of_this_directory() {
    let (_model, world) = stage();
    let below = world.project().join("below");
    std::fs::create_dir(&below).unwrap();
    let args = ["init", "--yes", "--skip-clients"];
    for directory in [&below, &world.project()] {
        let run = output_of(world.command(args).current_dir(directory)).json();
        assert!(steps(&run["data"]).contains(&("task", "done")), "{run}");
    }
}

#[test]
fn a_dry_run_shows_what_a_run_would_do() {
    let world = world_with_two_agents();
    let entry = json!({"command": PROGRAM, "args": ["serve"]});
    world.write("home/.cursor/mcp.json", &json!({"mcpServers": {"mcp-delegator": entry}}).to_string());
    world.write("home/.codex/config.toml", &format!("[mcp_servers.mcp-delegator]\ncommand = '{PROGRAM}'\n"));
    world.write("home/.config/Code/User/mcp.json", "{\n  mine\n}\n");
    for args in [&["init", "--yes", "--approve-tools"][..], &["init", "--dry-run", "--approve-tools"]] {
        // The second call has nothing left to do.
        let is_done = args[1] == "--yes";
        let planned = world.run(["init", "--dry-run", "--approve-tools"]).json();
        let codex = if is_done { "planned" } else { "skipped" };
        let expected =
            [("clients.codex", codex), ("clients.cursor", "skipped"), ("clients.vscode", "skipped")];
        let found = steps(&planned["data"]).into_iter();
        let found: Vec<(&str, &str)> = found.filter(|(name, _)| name.starts_with("clients.")).collect();
        assert_eq!(found, expected, "{planned}");
        world.run(args);
    }
    // Only a client that the call names is a reason to fail.
    let found = world.run(["init", "--dry-run"]).json()["data"]["steps"].clone();
    let vscode = found.as_array().unwrap().iter().find(|step| step["name"] == "clients.vscode").unwrap();
    assert_eq!(vscode["next"], "mcp-delegator setup vscode --print");
    let named = world.run(["init", "--dry-run", "--clients", "vscode"]).json();
    assert!(steps(&named["meta"]["failure_data"]).contains(&("clients.vscode", "failed")), "{named}");
}

/// The wait for a first task would have no end.
#[test]
fn on_a_paused_queue_init_names_the_command_that_resumes_it() {
    let (_model, world) = stage();
    assert_eq!(world.run(["queue", "pause"]).exit, Some(0));
    let run = world.run(["init", "--yes", "--clients", "cursor"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let answer = run.json();
    assert_eq!(
        steps(&answer["data"]),
        [("check", "done"), ("clients.cursor", "done"), ("task", "skipped")],
        "{answer}"
    );
    let step = &answer["data"]["steps"][2];
    assert!(step["message"].as_str().unwrap().contains("the queue is paused"), "{step}");
    assert_eq!(step["next"], "mcp-delegator queue resume");
    assert!(answer["warnings"].to_string().contains("the queue is paused"), "{answer}");
    assert_eq!(world.run(["queue", "resume"]).exit, Some(0));
    let answer = world.run(["init", "--yes", "--clients", "cursor"]).json();
    assert!(steps(&answer["data"]).contains(&("task", "done")), "{answer}");
}

#[test]
fn the_next_step_works_with_and_without_git() {
    for is_repository in [false, true] {
        let replies = [DESCRIPTION, "Done."].map(|text| Reply::Output(vec![message(text)]));
        let model = FakeModel::start(replies.into());
        let world = world_with_codex(PROGRAM, &model.codex_config());
        if is_repository {
            let init = world.run_as(std::path::Path::new("git"), ["init", "--quiet"]);
            assert_eq!(init.exit, Some(0), "{init:?}");
        }
        let answer = world.run(["init", "--yes", "--skip-clients"]).json();
        let steps = answer["data"]["steps"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let next = steps.last().unwrap()["next"].as_str().unwrap();
        assert_eq!(next.contains("--skip-git-repo-check"), !is_repository, "{next}");
        let flags = next.strip_prefix("mcp-delegator run 'your task' ").unwrap();
        let run = world.run(["run", "your task"].into_iter().chain(flags.split(' ')));
        assert_eq!(run.exit, Some(0), "{next}: {run:?}");
    }
}

#[test]
fn flags_without_effect_are_refused() {
    let world = World::new(PROGRAM);
    for args in [
        &["--approve-tools", "--skip-clients"][..],
        &["--approve-tools", "--clients", "cursor"],
        &["--clients", "cursor", "--skip-clients"],
    ] {
        let run = world.run([&["init", "--dry-run"], args].concat());
        assert_eq!(run.exit, Some(2), "{args:?}: {run:?}");
    }
    assert_ne!(world.run(["init", "--dry-run", "--approve-tools", "--clients", "codex"]).exit, Some(2));
}

#[test]
fn a_damaged_registry_does_not_hide_the_other_steps() {
    let (_model, world) = stage();
    assert_eq!(world.run(["init", "--yes", "--skip-clients"]).exit, Some(0));
    let config = world.run(["config", "show"]).json();
    let registry = std::path::Path::new(config["data"]["state_dir"].as_str().unwrap()).join("registry.db");
    std::fs::write(&registry, "damaged ".repeat(1000)).unwrap();
    let run = world.run(["init", "--yes"]).json();
    let found = steps(&run["meta"]["failure_data"]);
    assert!(found.contains(&("check", "failed")) && found.contains(&("clients.cursor", "done")), "{run}");
}

/// One agent that works is enough, whichever it is.
#[test]
fn claude_code_alone_is_enough() {
    let world = World::new(PROGRAM);
    let status = r#"{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty"}"#;
    let claude = format!(
        "#!/bin/sh\ncase \"$1\" in --version) echo '2.1.325 (Claude Code)';; auth) echo '{status}';; *) exit 3;; esac\n"
    );
    world.write("home/bin/claude", &claude);
    let bin = world.home().join("bin");
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let world = world.variable("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    let doctor = world.run(["doctor"]).json();
    assert_eq!(doctor["data"]["is_healthy"], true, "{doctor}");
    let checks = doctor["data"]["checks"].as_array().unwrap();
    let codex = checks.iter().find(|check| check["name"] == "agent").unwrap();
    assert_eq!(codex["status"], "warning", "{codex}");
    let planned = world.run(["init", "--dry-run", "--skip-clients"]).json();
    assert_eq!(steps(&planned["data"])[0], ("check", "done"), "{planned}");
    assert!(planned["data"]["steps"][0]["message"].as_str().unwrap().contains("bin/claude"), "{planned}");
    for args in [&["init", "--yes", "--skip-clients"][..], &["run", "x"]] {
        let run = world.run(args).json();
        assert_eq!(run["error"]["message"], "The agent exited with code 3.", "only claude does that: {run}");
    }
    world.write("home/bin/claude", &claude.replace(":true", ":false"));
    let signed_out = world.run(["doctor"]).json();
    assert_eq!(signed_out["error"]["code"], "UNAUTHENTICATED", "Codex is not asked for: {signed_out}");
    assert_eq!(world.run(["run", "x"]).exit, Some(4));
}

/// A world with two agents that are ready, neither of which is Codex.
fn world_with_two_agents() -> World {
    let agent =
        |name: &str| format!("[agents.{name}]\nprotocol = 'plain'\nunsandboxed = true\ncommand = ['cat']\n");
    let world = World::new(PROGRAM).config(&(agent("first") + &agent("second")));
    world.write("home/.cursor/mcp.json", "{}");
    world
}

fn default_agent(world: &World) -> Value {
    world.run(["config", "get", "default_agent"]).json()["data"]["value"].clone()
}

#[test]
fn init_asks_once_which_of_several_agents_to_use() {
    let world = world_with_two_agents();
    let mut terminal = TerminalSession::start_interactive(world.command(["init"]));
    for (question, answer) in [
        ("tasks that name none? first, second [first]", "second\n"),
        ("Register this server with Cursor? [Y/n]", "y\n"),
        ("Run a first task", "y\n"),
    ] {
        terminal.wait_for_text(question);
        terminal.type_text(answer);
    }
    let shown = terminal.wait();
    assert!(shown.exit == Some(0) && !shown.stdout.contains("npm install"), "{shown:?}");
    assert_eq!(default_agent(&world), "second");
    assert!(is_registered(&world, ".cursor/mcp.json"));
    let mut terminal = TerminalSession::start_interactive(world.command(["init", "--skip-task"]));
    terminal.wait_for_text("already registered");
    assert!(!terminal.wait().stdout.contains("name none?"), "the choice is not asked for again");
}

#[test]
fn one_answer_approves_the_tools_for_all_clients_that_ask() {
    let world = world_with_two_agents();
    world.write("home/.codex/config.toml", "");
    world.write("home/.claude.json", "{}");
    let args = ["init", "--agent", "first", "--skip-task"];
    let mut terminal = TerminalSession::start_interactive(world.command(args));
    for (question, answer) in [("Cursor? [Y/n]", "y\n"), ("Let Claude Code and Codex call", "y\n")] {
        terminal.wait_for_text(question);
        terminal.type_text(answer);
    }
    let shown = terminal.wait();
    assert!(shown.exit == Some(0) && shown.stdout.contains("a permission in"), "{shown:?}");
    assert!(read_text(&world.home().join(".codex/config.toml")).contains("approval_mode = \"approve\""));
    assert!(read_text(&world.home().join(".claude/settings.json")).contains("mcp__mcp-delegator"));
    let again = TerminalSession::start_interactive(world.command(args)).wait().stdout;
    assert!(!again.contains("[y/N]"), "{again}");
}

#[test]
fn init_takes_the_agent_from_a_flag_and_refuses_one_that_is_not_ready() {
    let world = world_with_two_agents();
    let args = ["init", "--yes", "--skip-task", "--agent"];
    let planned = world.run([&args[..], &["second", "--dry-run"]].concat()).json()["data"].clone();
    assert!(steps(&planned).contains(&("agent", "planned")), "{planned}");
    assert_eq!(default_agent(&world), Value::Null);
    let refused = world.run([&args[..], &["codex"]].concat());
    assert_eq!(refused.exit, Some(2), "{refused:?}");
    assert!(!is_registered(&world, ".cursor/mcp.json"));
    let done = world.run([&args[..], &["second"]].concat()).json()["data"].clone();
    assert!(steps(&done).contains(&("agent", "done")), "{done}");
    assert_eq!(default_agent(&world), "second");
}
