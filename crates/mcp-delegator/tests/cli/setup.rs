//! `setup` adds one entry to the configuration file of an MCP client and changes nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use delegator_testkit::program::{World, durable_dir, output_of, read_text, wait_for_output};
use delegator_testkit::terminal::{TerminalSession, run_on_terminal};
use serde_json::{Value, json};

use crate::PROGRAM;

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
        format!(
            "{before}\n[mcp_servers.mcp-delegator]\ncommand = \"{PROGRAM}\"\nargs = [\"serve\", \"--toolsets\", \"local,registry\"]\n"
        )
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
        assert_eq!(run.exit, Some(0), "{host}");
        assert_eq!(
            (run.stderr.lines().count(), run.stderr.contains("build directory")),
            (1, true),
            "{run:?}"
        );
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
        assert!(shown.starts_with(&run.stdout), "{host}: {shown}");
        assert!(shown.ends_with(&format!("\nAdd this entry to {}\n", file.display())), "{host}: {shown}");
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
    let entry = json!({"command": PROGRAM, "args": ["serve", "--toolsets", "local,registry"]});
    assert_eq!(written, json!({"mcpServers": {"mcp-delegator": entry}}));
}

#[test]
fn a_second_backup_does_not_overwrite_the_first() {
    let world = world();
    let file = world.home().join(".cursor/mcp.json");
    let backup = |number: &str| file.with_file_name(format!("mcp.json.before-mcp-delegator{number}"));
    let texts = ["{}\n", "{\"a\": 1}\n", "{\"a\": 2}\n"];
    for (text, number) in texts.iter().zip(["", ".2", ".3"]) {
        world.write("home/.cursor/mcp.json", text);
        let data = world.run(["setup", "cursor"]).json()["data"].clone();
        assert_eq!(data["backup"], backup(number).to_str().unwrap(), "{data}");
        let again = world.run(["setup", "cursor"]).json()["data"].clone();
        assert_eq!(again["backup"], Value::Null, "an unchanged file needs no backup");
    }
    for (text, number) in texts.iter().zip(["", ".2", ".3"]) {
        assert_eq!(read_text(&backup(number)), *text);
    }
}

#[test]
fn only_toolsets_that_can_be_used_are_registered() {
    let args = |world: &World, given: &[&str]| {
        world.write("home/.cursor/mcp.json", "{}");
        let answer = world.run([&["setup", "cursor"], given].concat()).json();
        let written: Value =
            serde_json::from_str(&read_text(&world.home().join(".cursor/mcp.json"))).unwrap();
        (written["mcpServers"]["mcp-delegator"]["args"].clone(), answer["data"]["next"].to_string())
    };
    let plain = world();
    let (written, next) = args(&plain, &[]);
    assert_eq!(written, json!(["serve", "--toolsets", "local,registry"]));
    assert!(next.contains("env add"), "how to get the tools for cloud tasks: {next}");
    assert_eq!(args(&plain, &["--toolsets", "local"]).0, json!(["serve", "--toolsets", "local"]));
    let configured = world().config("toolsets = ['local', 'extra']\n");
    assert_eq!(args(&configured, &[]).0, json!(["serve"]), "the configuration decides");
    let with_environment = world();
    let environment =
        ["env", "add", "env_site", "--name", "Site", "--repo-url", "https://github.com/me/site"];
    let added = with_environment.run(environment.iter().chain(&["--stack", "node"]));
    assert_eq!(added.exit, Some(0), "{added:?}");
    assert_eq!(args(&with_environment, &[]).0, json!(["serve"]), "all toolsets can be used");
    let wrong = world().run(["setup", "cursor", "--toolsets", "locl"]);
    assert_eq!(
        (wrong.exit, wrong.json()["error"]["suggestion"].clone()),
        (Some(2), json!("Did you mean local?"))
    );
}

#[test]
fn setup_without_a_client_lists_the_clients() {
    let world = world();
    world.write("home/.cursor/mcp.json", "{}");
    world.write("home/.codex/config.toml", "= 1");
    world.run(["setup", "cursor"]);
    let run = world.run(["setup"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let clients = run.json()["data"]["clients"].clone();
    let states: Vec<(&str, &str)> = clients
        .as_array()
        .unwrap()
        .iter()
        .map(|client| (client["host"].as_str().unwrap(), client["state"].as_str().unwrap()))
        .collect();
    let expected = [
        ("claude-code", "not-found"),
        ("codex", "unreadable"),
        ("cursor", "registered"),
        ("vscode", "not-found"),
        ("claude-desktop", "not-found"),
    ];
    assert_eq!(states, expected);
    assert_eq!(clients[2]["command"], PROGRAM);
    let text = run_on_terminal(world.command(["setup"])).stdout;
    assert!(text.contains("cursor") && text.contains("mcp-delegator setup CLIENT"), "{text}");
    let broken = world.config("]").run(["setup"]);
    assert_eq!(broken.exit, Some(0), "{broken:?}");
}

/// What `codex exec` needs to call tools that change something is written only with the user's consent.
#[test]
fn tool_approval_needs_consent() {
    const APPROVAL: &str = "default_tools_approval_mode = \"approve\"";
    let set_up = |args: &[&str], answer: Option<&str>| {
        let world = world();
        world.write("home/.codex/config.toml", "");
        let mut command = world.command([&["setup", "codex"], args].concat());
        let shown = match answer {
            Some(answer) => {
                let mut terminal = TerminalSession::start_interactive(command);
                terminal.wait_for_text("[y/N]");
                terminal.type_text(answer);
                terminal.wait().stdout
            }
            None => output_of(&mut command).stdout,
        };
        (read_text(&world.home().join(".codex/config.toml")).contains(APPROVAL), shown)
    };
    let (is_approved, shown) = set_up(&[], None);
    assert!(!is_approved && shown.contains("setup codex --approve-tools"), "{shown}");
    assert!(set_up(&["--approve-tools"], None).0);
    assert!(set_up(&[], Some("y\n")).0);
    assert!(!set_up(&[], Some("n\n")).0);
    assert!(!set_up(&[], Some("\n")).0);
    let refused = world().run(["setup", "cursor", "--approve-tools"]);
    assert_eq!(refused.exit, Some(2), "{refused:?}");
}

/// A world with Claude Code, and the path of its settings.
fn world_with_claude_code() -> (World, PathBuf) {
    let world = world();
    world.write("home/.claude.json", "{}");
    let settings = world.home().join(".claude/settings.json");
    (world, settings)
}

#[test]
fn claude_code_gets_a_permission_in_its_settings_and_loses_it_again() {
    let (world, settings) = world_with_claude_code();
    let plain = world.run(["setup", "claude-code"]).json()["data"].clone();
    assert_eq!((&plain["has_tool_approval"], &plain["permission"]), (&json!(false), &Value::Null), "{plain}");
    assert!(plain["next"].to_string().contains("setup claude-code --approve-tools"), "{plain}");
    assert!(!settings.exists());

    let before = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls:*)\"\n    ]\n  }\n}\n";
    let after = before.replace("*)\"", "*)\",\n      \"mcp__mcp-delegator\"");
    world.write("home/.claude/settings.json", before);
    let data = world.run(["setup", "claude-code", "--approve-tools"]).json()["data"].clone();
    assert_eq!((&data["is_changed"], &data["has_tool_approval"]), (&json!(false), &json!(true)), "{data}");
    let permission = &data["permission"];
    assert_eq!((&permission["file"], &permission["is_changed"]), (&json!(settings), &json!(true)), "{data}");
    assert_eq!(read_text(Path::new(permission["backup"].as_str().unwrap())), before);
    assert_eq!(read_text(&settings), after);
    let again = world.run(["setup", "claude-code", "--approve-tools"]).json()["data"].clone();
    assert_eq!(again["permission"]["is_changed"], false, "{again}");
    assert_eq!(world.run(["setup"]).json()["data"]["clients"][0]["has_tool_approval"], true);

    let planned = world.run(["setup", "claude-code", "--remove", "--dry-run"]).json()["data"].clone();
    assert_eq!(planned["permission"]["is_changed"], true, "{planned}");
    assert_eq!(read_text(&settings), after);
    let shown = run_on_terminal(world.command(["setup", "claude-code", "--remove"])).stdout;
    assert!(shown.matches("changed  true").count() == 2 && shown.contains("settings.json"), "{shown}");
    assert_eq!(read_text(&settings), before);
    assert!(!read_text(&world.home().join(".claude.json")).contains("mcp-delegator"));
}

#[test]
fn invalid_settings_of_claude_code_are_refused_before_anything_is_written() {
    let (world, settings) = world_with_claude_code();
    world.write("home/.claude/settings.json", "{ // mine\n}\n");
    let run = world.run(["setup", "claude-code", "--approve-tools"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("CONFIG_INVALID")), "{run:?}");
    assert!(run.json()["error"]["message"].as_str().unwrap().contains("settings.json"), "{run:?}");
    assert_eq!(read_text(&world.home().join(".claude.json")), "{}");
    assert_eq!(world.run(["setup", "claude-code"]).exit, Some(0), "the settings are not needed");
    let registered = read_text(&world.home().join(".claude.json"));
    assert_eq!(world.run(["setup", "claude-code", "--remove"]).exit, Some(4));
    assert_eq!(read_text(&world.home().join(".claude.json")), registered);
    assert_eq!(read_text(&settings), "{ // mine\n}\n");
}

#[test]
fn the_permission_is_printed_and_asked_for_and_follows_the_directory_of_claude_code() {
    let (world, settings) = world_with_claude_code();
    let printed = world.run(["setup", "claude-code", "--print", "--approve-tools"]).stdout;
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&printed).into_iter().map(Result::unwrap).collect();
    assert_eq!(documents[0]["mcpServers"]["mcp-delegator"]["command"], PROGRAM, "{printed}");
    assert_eq!(documents[1], json!({"permissions": {"allow": ["mcp__mcp-delegator"]}}), "{printed}");
    for (answer, is_approved) in [("n\n", false), ("y\n", true)] {
        let mut terminal = TerminalSession::start_interactive(world.command(["setup", "claude-code"]));
        terminal.wait_for_text("Let Claude Code call the tools of this server without asking? [y/N]");
        terminal.type_text(answer);
        assert_eq!(terminal.wait().exit, Some(0));
        assert_eq!(settings.exists(), is_approved);
    }
    world.write("home/claude/.claude.json", "{}");
    let directory = world.home().join("claude").display().to_string();
    let world = world.variable("CLAUDE_CONFIG_DIR", &directory);
    assert_eq!(world.run(["setup", "claude-code", "--approve-tools"]).exit, Some(0));
    assert!(world.home().join("claude/settings.json").exists());
}

/// Clients keep the path for months: an entry on PATH outlives the file that it leads to.
#[test]
fn the_path_on_path_is_registered() {
    let world = world();
    let folder = durable_dir();
    let link = folder.path().join("mcp-delegator");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    world.write("home/.cursor/mcp.json", "{}");
    let mut command = world.command(["setup", "cursor"]);
    let run = output_of(command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display())));
    let written: Value = serde_json::from_str(&read_text(&world.home().join(".cursor/mcp.json"))).unwrap();
    assert_eq!(written["mcpServers"]["mcp-delegator"]["command"], link.to_str().unwrap());
    assert_eq!(run.json()["warnings"], json!([]), "{run:?}");
}

#[test]
fn comments_in_the_file_of_a_client_stay() {
    let world = world();
    let file = world.home().join(".config/Code/User/mcp.json");
    world.write(
        "home/.config/Code/User/mcp.json",
        "{\n  // mine\n  \"servers\": {\n    \"a\": {}, // x\n  },\n}\n",
    );
    assert_eq!(world.run(["setup"]).json()["data"]["clients"][3]["state"], "not-registered");
    let run = world.run(["setup", "vscode"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let after = read_text(&file);
    let start = "{\n  // mine\n  \"servers\": {\n    \"a\": {}, // x\n    \"mcp-delegator\": {\n";
    assert!(after.starts_with(start) && after.contains(PROGRAM), "{after}");
    assert_eq!(world.run(["setup", "vscode"]).json()["data"]["is_changed"], false);
    assert_eq!(world.run(["setup"]).json()["data"]["clients"][3]["state"], "registered");
}

#[test]
fn a_file_that_the_client_cannot_read_is_not_rewritten() {
    let world = world();
    for (host, path, before) in [
        ("vscode", ".config/Code/User/mcp.json", "{\n  servers: {}\n}\n"),
        ("claude-code", ".claude.json", "{\n  // mine\n  \"mcpServers\": {}\n}\n"),
    ] {
        world.write(&format!("home/{path}"), before);
        let run = world.run(["setup", host]);
        assert_eq!(run.exit, Some(4), "{run:?}");
        assert!(run.json()["error"]["suggestion"].as_str().unwrap().contains("--print"));
        assert_eq!(read_text(&world.home().join(path)), before);
    }
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

/// The user's own arguments stay, and the answer describes them.
#[test]
fn the_answer_describes_the_entry_in_the_file() {
    let world = world();
    let entry = json!({"command": "/old", "args": ["serve", "--read-only"]});
    world.write("home/.cursor/mcp.json", &json!({"mcpServers": {"mcp-delegator": entry}}).to_string());
    let data = world.run(["setup", "cursor"]).json()["data"].clone();
    let described: Value = serde_json::from_str(data["entry"].as_str().unwrap()).unwrap();
    let written =
        json!({"mcpServers": {"mcp-delegator": {"command": PROGRAM, "args": ["serve", "--read-only"]}}});
    assert_eq!(described, written, "{data}");
    assert_eq!(data["next"], json!(["Restart Cursor."]));
}

#[test]
fn an_entry_with_a_url_stays_as_it_is() {
    // `init` registers nothing without an agent.
    let agent = "[agents.mine]\nprotocol = 'plain'\nunsandboxed = true\ncommand = ['cat']\n";
    let world = world().config(agent);
    let before = json!({"mcpServers": {"mcp-delegator": {"url": "http://127.0.0.1:7777/mcp"}}}).to_string();
    world.write("home/.cursor/mcp.json", &before);
    assert_eq!(world.run(["setup"]).json()["data"]["clients"][2]["state"], "registered-by-url");
    let run = world.run(["setup", "cursor"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("CONFIG_INVALID")), "{run:?}");
    let init = world.run(["init", "--yes", "--skip-task"]).stdout;
    assert!(init.contains("already registered by URL"), "{init}");
    assert_eq!(read_text(&world.home().join(".cursor/mcp.json")), before);
}

#[test]
fn remove_takes_only_our_entry_and_a_dry_run_takes_nothing() {
    for (host, file, before) in [
        (
            "codex",
            ".codex/config.toml",
            "# mine\nmodel = \"x\"   # y\n\n[mcp_servers.other]\ncommand = \"y\" # z\n",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"} // z\n  }\n}\n",
        ),
        (
            "claude-code",
            ".claude.json",
            "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n",
        ),
    ] {
        let world = world();
        world.write(&format!("home/{file}"), before);
        let path = world.home().join(file);
        world.run(["setup", host]);
        let with_entry = read_text(&path);
        let planned = world.run(["setup", host, "--remove", "--dry-run"]).json()["data"].clone();
        assert_eq!((&planned["is_changed"], &planned["backup"]), (&json!(true), &Value::Null), "{planned}");
        assert_eq!(read_text(&path), with_entry);
        let run = world.run(["setup", host, "--remove"]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        let after = read_text(&path);
        assert!(!after.contains("mcp-delegator"), "{after}");
        for word in before.split_whitespace() {
            assert!(after.contains(word), "{host}: {word} in {after}");
        }
        let backup = run.json()["data"]["backup"].as_str().unwrap().to_owned();
        assert_eq!(read_text(Path::new(&backup)), with_entry);
        let again = world.run(["setup", host, "--remove"]).json()["data"].clone();
        assert_eq!(again["is_changed"], false, "{again}");
        assert_eq!(read_text(&path), after);
    }
}

#[test]
fn remove_keeps_what_setup_did_not_write() {
    let world = world();
    let by_url = "{\"mcpServers\": {\"mcp-delegator\": {\"url\": \"http://127.0.0.1:7777/mcp\"}}}";
    world.write("home/.cursor/mcp.json", by_url);
    assert_eq!(world.run(["setup", "cursor", "--remove"]).exit, Some(4));
    assert_eq!(read_text(&world.home().join(".cursor/mcp.json")), by_url);
    assert_eq!(world.run(["setup", "codex", "--remove"]).json()["data"]["is_changed"], false);
    for args in [
        &["setup", "--remove"][..],
        &["setup", "codex", "--dry-run"],
        &["setup", "codex", "--remove", "--print"],
    ] {
        assert_eq!(world.run(args).exit, Some(2), "{args:?}");
    }
}
