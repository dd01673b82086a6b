//! `setup`: one entry in a host's own file, and nothing else.

use std::os::unix::fs::PermissionsExt;

use delegator_testkit::program::{World, text_of};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

fn world() -> World {
    World::new(PROGRAM)
}

#[test]
fn a_host_is_configured_once_and_keeps_everything_else() {
    let world = world();
    let before = "model = \"x\"   # mine\n\n[mcp_servers.other]\ncommand = \"y\"\n";
    world.write("home/.codex/config.toml", before);
    let file = world.home().join(".codex/config.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let data = world.run(["setup", "codex"]).json()["data"].clone();
    assert_eq!(data["changed"], true, "{data}");
    let after = text_of(&file);
    assert_eq!(
        after,
        format!("{before}\n[mcp_servers.mcp-delegator]\ncommand = \"{PROGRAM}\"\nargs = [\"serve\"]\n")
    );
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(text_of(std::path::Path::new(data["backup"].as_str().unwrap())), before);
    let again = world.run(["setup", "codex"]).json()["data"].clone();
    assert_eq!((&again["changed"], &again["backup"]), (&json!(false), &Value::Null));
    assert_eq!(text_of(&file), after);
}

#[test]
fn a_host_that_is_not_there_is_left_alone() {
    for host in ["claude-code", "codex", "cursor", "vscode", "claude-desktop"] {
        let world = world();
        let before = std::fs::read_dir(world.home()).unwrap().count();
        let run = world.run(["setup", host]);
        assert_eq!(run.exit, Some(5), "{host}: {run:?}");
        let printed = world.run(["setup", host, "--print"]);
        assert_eq!(printed.exit, Some(0), "{host}");
        let data = printed.json()["data"].clone();
        assert!(data["entry"].as_str().unwrap().contains(PROGRAM) && data["changed"] == false, "{data}");
        assert_eq!(std::fs::read_dir(world.home()).unwrap().count(), before, "{host}: something was made");
    }
}

#[test]
fn a_host_with_a_directory_and_no_file_gets_one() {
    let world = world();
    world.write("home/.cursor/extensions", "");
    assert_eq!(world.run(["setup", "cursor"]).exit, Some(0));
    let file = world.home().join(".cursor/mcp.json");
    let written: Value = serde_json::from_str(&text_of(&file)).unwrap();
    assert_eq!(written, json!({"mcpServers": {"mcp-delegator": {"command": PROGRAM, "args": ["serve"]}}}));
}

#[test]
fn a_file_with_comments_is_not_rewritten() {
    let world = world();
    let before = "{\n  // mine\n  \"servers\": {}\n}\n";
    world.write("home/.config/Code/User/mcp.json", before);
    let run = world.run(["setup", "vscode"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    assert!(run.json()["error"]["suggestion"].as_str().unwrap().contains("--print"));
    assert_eq!(text_of(&world.home().join(".config/Code/User/mcp.json")), before);
}

#[test]
fn what_a_host_writes_itself_is_understood() {
    let world = world();
    world.write("home/.claude.json", "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}\n");
    assert_eq!(world.run(["setup", "claude-code"]).exit, Some(0));
    let file = world.home().join(".claude.json");
    let written: Value = serde_json::from_str(&text_of(&file)).unwrap();
    assert_eq!(written["mcpServers"]["mcp-delegator"]["command"], PROGRAM);
    assert!(text_of(&file).starts_with("{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n"));
}
