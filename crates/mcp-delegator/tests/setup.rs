//! `setup` adds one entry to the configuration file of an MCP client and changes nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use delegator_testkit::program::{World, read_text, wait_for_output};
use delegator_testkit::terminal::run_on_terminal;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

fn world() -> World {
    World::new(PROGRAM)
}

#[test]
fn setup_adds_one_entry_once_and_keeps_the_rest() {
    let world = world();
    let before = "model = \"x\"   # mine\n\n[mcp_servers.other]\ncommand = \"y\"\n";
    world.write("home/.codex/config.toml", before);
    let file = world.home().join(".codex/config.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let data = world.run(["setup", "codex"]).json()["data"].clone();
    assert_eq!(data["is_changed"], true, "{data}");
    let after = read_text(&file);
    assert_eq!(
        after,
        format!("{before}\n[mcp_servers.mcp-delegator]\ncommand = \"{PROGRAM}\"\nargs = [\"serve\"]\n")
    );
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(read_text(std::path::Path::new(data["backup"].as_str().unwrap())), before);
    let again = world.run(["setup", "codex"]).json()["data"].clone();
    assert_eq!((&again["is_changed"], &again["backup"]), (&json!(false), &Value::Null));
    assert_eq!(read_text(&file), after);
}

#[test]
fn setup_for_a_missing_client_changes_nothing() {
    for host in ["claude-code", "codex", "cursor", "vscode", "claude-desktop"] {
        let world = world();
        let before = std::fs::read_dir(world.home()).unwrap().count();
        let run = world.run(["setup", host]);
        assert_eq!(run.exit, Some(5), "{host}: {run:?}");
        let printed = world.run(["setup", host, "--print", "--format", "json"]);
        assert_eq!(printed.exit, Some(0), "{host}");
        let data = printed.json()["data"].clone();
        assert!(data["entry"].as_str().unwrap().contains(PROGRAM) && data["is_changed"] == false, "{data}");
        assert_eq!(std::fs::read_dir(world.home()).unwrap().count(), before, "{host}: a file was created");
    }
}

/// The printed text can be used as the file.
#[test]
fn print_shows_the_entry_that_would_be_written() {
    for host in ["claude-code", "codex", "cursor", "vscode", "claude-desktop"] {
        let world = world();
        let run = world.run(["setup", host, "--print"]);
        assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{host}");
        let data = world.run(["setup", host, "--print", "--format", "json"]).json()["data"].clone();
        assert_eq!(run.stdout, data["entry"].as_str().unwrap(), "{host}");
        let input = format!("{{\"host\": \"{host}\", \"print\": true}}");
        let by_object = world.run_with_input(["setup", "--input-json", "-"], input.as_bytes());
        assert_eq!(by_object.stdout, run.stdout, "{host}");
        let into_file = world.project().join("printed");
        let args = ["setup", host, "--print", "--output", into_file.to_str().unwrap()];
        assert_eq!(world.run(args).exit, Some(0), "{host}");
        assert_eq!(read_text(&into_file), run.stdout, "{host}");
        let file = Path::new(data["file"].as_str().unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, &run.stdout).unwrap();
        let set_up = world.run(["setup", host]).json()["data"].clone();
        assert_eq!(set_up["is_changed"], false, "{host} would write something else");
        // On a terminal the path of the file follows.
        let shown = run_on_terminal(world.command(["setup", host, "--print"])).stdout;
        assert_eq!(shown, format!("{}Add this entry to {}\n", run.stdout, file.display()), "{host}");
        let shown = run_on_terminal(world.command(["setup", host, "--print", "--quiet"])).stdout;
        assert_eq!(shown, run.stdout, "{host}");
    }
}

#[test]
fn a_print_error_goes_to_stderr() {
    let world = world();
    let mut command = world.command(["setup", "codex", "--print"]);
    let command = command.env_remove("HOME").env("MCP_DELEGATOR_HOME", "/nowhere");
    let run = wait_for_output(
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
    );
    assert_eq!((run.exit, run.stdout.as_str()), (Some(4), ""), "{run:?}");
    let envelope: Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(envelope["error"]["code"], "CONFIG_INVALID", "{envelope}");
}

#[test]
fn setup_creates_a_missing_configuration_file() {
    let world = world();
    world.write("home/.cursor/extensions", "");
    assert_eq!(world.run(["setup", "cursor"]).exit, Some(0));
    let file = world.home().join(".cursor/mcp.json");
    let written: Value = serde_json::from_str(&read_text(&file)).unwrap();
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
    assert_eq!(read_text(&world.home().join(".config/Code/User/mcp.json")), before);
}

#[test]
fn setup_edits_a_file_the_client_wrote() {
    let world = world();
    world.write("home/.claude.json", "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}\n");
    assert_eq!(world.run(["setup", "claude-code"]).exit, Some(0));
    let file = world.home().join(".claude.json");
    let written: Value = serde_json::from_str(&read_text(&file)).unwrap();
    assert_eq!(written["mcpServers"]["mcp-delegator"]["command"], PROGRAM);
    assert!(read_text(&file).starts_with("{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n"));
}
