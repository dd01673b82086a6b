//! `config get|set|unset|edit|path`: what is refused, what a person sees, and the editor.

use std::path::PathBuf;

use delegator_testkit::program::{RunOutput, World, read_text};
use delegator_testkit::terminal::TerminalSession;
use serde_json::{Value, json};

use crate::PROGRAM;

fn world() -> World {
    World::new(PROGRAM)
}

fn file(world: &World) -> PathBuf {
    world.home().join(".config/mcp-delegator/config.toml")
}

fn done(world: &World, args: &[&str]) -> Value {
    let run = world.run(args);
    assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
    run.json()
}

#[test]
fn a_value_is_set_shown_and_removed() {
    let world = world().config("# mine\nmax_depth = 1 # flat\n");
    let set = done(&world, &["config", "set", "max_concurrent", "4"])["data"].clone();
    assert_eq!(
        (&set["value"], &set["source"], &set["is_changed"]),
        (&json!(4), &json!("user_config"), &json!(true))
    );
    assert_eq!(read_text(&file(&world)), "# mine\nmax_depth = 1 # flat\nmax_concurrent = 4\n");
    let again = done(&world, &["config", "set", "max_concurrent", "4"]);
    assert_eq!(again["data"]["is_changed"], false);
    let got = done(&world, &["config", "get", "max_concurrent"])["data"].clone();
    assert_eq!(got["value"], 4);
    assert!(got["origin"].as_str().unwrap().ends_with("config.toml:3"), "{got}");
    assert_eq!(world.run(["config", "get", "max_concurrent", "--format", "human"]).stdout, "4\n");
    let unset = done(&world, &["config", "unset", "max_concurrent"])["data"].clone();
    assert_eq!((&unset["source"], &unset["is_changed"]), (&json!("default"), &json!(true)));
    assert_eq!(read_text(&file(&world)), "# mine\nmax_depth = 1 # flat\n");
    let path = done(&world, &["config", "path"])["data"].clone();
    assert_eq!(
        (path["path"].as_str().unwrap(), &path["is_present"]),
        (file(&world).to_str().unwrap(), &json!(true))
    );
}

#[test]
fn a_dry_run_checks_and_changes_nothing() {
    let world = world();
    let planned = done(&world, &["config", "set", "labels.team", "core", "--dry-run"]);
    assert_eq!((&planned["data"]["value"], &planned["data"]["is_changed"]), (&json!("core"), &json!(true)));
    assert!(!file(&world).exists());
    assert_eq!(world.run(["config", "set", "max_depth", "x", "--dry-run"]).exit, Some(4));
}

#[test]
fn a_refused_value_has_the_message_of_loading() {
    let message = |run: &RunOutput| {
        assert_eq!(run.exit, Some(4), "{run:?}");
        run.json()["error"]["message"].clone()
    };
    let world = world().config("max_depth = 1\n");
    let refused = message(&world.run(["config", "set", "max_concurrent", "zero"]));
    assert_eq!(read_text(&file(&world)), "max_depth = 1\n");
    world.write("home/.config/mcp-delegator/config.toml", "max_depth = 1\nmax_concurrent = \"zero\"\n");
    assert_eq!(refused, message(&world.run(["config", "show"])));
    let unknown = world.run(["config", "set", "max_concurent", "4"]);
    assert_eq!(
        (unknown.exit, &unknown.json()["error"]["suggestion"]),
        (Some(5), &json!("Did you mean max_concurrent?"))
    );
    assert_eq!(
        world.run(["config", "get", "max_mod"]).json()["error"]["suggestion"],
        "Did you mean max_mode?"
    );
}

#[test]
fn a_value_that_a_variable_overrides_is_a_warning() {
    let world = world().variable("MCP_DELEGATOR_MAX_DEPTH", "2");
    let set = done(&world, &["config", "set", "max_depth", "1"]);
    assert_eq!((&set["data"]["value"], &set["data"]["source"]), (&json!(2), &json!("environment")));
    assert!(set["warnings"].to_string().contains("MCP_DELEGATOR_MAX_DEPTH overrides"), "{set}");
}

#[test]
fn a_secret_comes_from_standard_input_and_is_not_shown() {
    let world = world();
    let url = b"postgres://me:hunter2hunter2@db.example/x\n";
    let run = world.run_with_input(["config", "set", "database_url", "-"], url);
    assert!(run.exit == Some(0) && !run.stdout.contains("hunter2"), "{run:?}");
    assert!(read_text(&file(&world)).contains("hunter2hunter2@db.example/x\""));
    let got = world.run(["config", "get", "database_url"]);
    assert_eq!(got.json()["data"]["value"], "[REDACTED:config]");
}

#[test]
fn a_broken_file_can_be_repaired_by_commands() {
    let world = world().config("max_concurent = 3\nmax_depth = 'deep'\n");
    let set = done(&world, &["config", "set", "max_depth", "1"]);
    assert!(set["warnings"].to_string().contains("max_concurent"), "{set}");
    assert_eq!(done(&world, &["config", "get", "max_depth"])["data"]["value"], 1);
    let unset = done(&world, &["config", "unset", "max_concurent"]);
    assert_eq!(unset["warnings"], json!([]), "{unset}");
    assert_eq!(read_text(&file(&world)), "max_depth = 1\n");
    world.write("home/.config/mcp-delegator/config.toml", "max_depth =\n");
    assert_eq!(done(&world, &["config", "path"])["data"]["is_present"], true);
    assert_eq!(world.run(["config", "set", "max_depth", "1"]).exit, Some(4));
}

#[test]
fn edit_needs_a_terminal() {
    let run = world().run(["config", "edit"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(2), &json!("CONFIRMATION_REQUIRED")));
}

/// A world whose editor is this shell script; `$2` is the file.
fn with_editor(world: World, script: &str) -> World {
    world.write("home/editor.sh", script);
    let editor = format!("sh '{}' argument", world.home().join("editor.sh").display());
    world.variable("EDITOR", &editor)
}

#[test]
fn edit_replaces_the_file_only_if_the_copy_is_valid() {
    let world = with_editor(world().config("# mine\n"), "echo 'max_concurent = 3' >> \"$2\"");
    let mut terminal = TerminalSession::start_interactive(world.command(["config", "edit"]));
    terminal.wait_for_text("did you mean `max_concurrent`?");
    terminal.wait_for_text("Edit it again? [Y/n]");
    assert_eq!(read_text(&file(&world)), "# mine\n");
    terminal.type_text("n\n");
    let shown = terminal.wait();
    assert_eq!(shown.exit, Some(4), "{shown:?}");
    let copy = std::fs::read_dir(file(&world).parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let copy = copy.into_iter().find(|path| path.to_string_lossy().contains("config-edit-")).unwrap();
    assert!(shown.stdout.contains(copy.to_str().unwrap()), "{shown:?}");
    assert_eq!(read_text(&copy), "# mine\nmax_concurent = 3\n");
    assert_eq!(read_text(&file(&world)), "# mine\n");
}

#[test]
fn edit_can_be_repeated_until_the_copy_is_valid() {
    let script =
        "if grep -q x \"$2\"; then echo 'max_depth = 1' > \"$2\"; else echo 'max_depth = \"x\"' > \"$2\"; fi";
    let world = with_editor(world(), script);
    let mut terminal = TerminalSession::start_interactive(world.command(["config", "edit"]));
    terminal.wait_for_text("Edit it again? [Y/n]");
    terminal.type_text("\n");
    let shown = terminal.wait();
    assert_eq!(shown.exit, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("config.toml was changed"), "{shown:?}");
    assert_eq!(read_text(&file(&world)), "max_depth = 1\n");
    assert_eq!(std::fs::read_dir(file(&world).parent().unwrap()).unwrap().count(), 1, "the copy is removed");
}

#[test]
fn an_edit_never_overwrites_what_changed_meanwhile() {
    let world = world().config("max_depth = 1\n");
    let script =
        format!("echo 'max_depth = 2' > \"$2\"; echo 'max_depth = 3' > '{}'", file(&world).display());
    let world = with_editor(world, &script);
    let shown = TerminalSession::start_interactive(world.command(["config", "edit"])).wait();
    assert!(shown.exit != Some(0) && shown.stdout.contains("changed by another program"), "{shown:?}");
    assert_eq!(read_text(&file(&world)), "max_depth = 3\n");
}
