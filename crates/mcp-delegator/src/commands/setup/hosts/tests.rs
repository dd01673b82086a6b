//! Adding an entry changes nothing else in the file, and a second edit changes nothing.

use serde_json::{Value, json};

use crate::commands::setup::hosts::*;

const PROGRAM_PATH: &str = "/opt/mcp-delegator";

/// The registration of a program, without options.
fn of(command: &str) -> Registration {
    let (command, args) = (command.to_owned(), vec!["serve".to_owned()]);
    Registration { command, args, replaces_args: false, approves_tools: false }
}

fn with_toolsets(toolsets: &str) -> Registration {
    let args = ["serve", "--toolsets", toolsets].map(str::to_owned).to_vec();
    Registration { args, replaces_args: true, ..of(PROGRAM_PATH) }
}

fn approving() -> Registration {
    Registration { approves_tools: true, ..of(PROGRAM_PATH) }
}

const JSON_HOSTS: [Host; 4] = [Host::ClaudeCode, Host::Cursor, Host::Vscode, Host::ClaudeDesktop];

fn changed_text(edit: Edit) -> String {
    match edit {
        Edit::Changed(text) => text,
        Edit::Unchanged => panic!("the edit changed nothing"),
    }
}

/// Whether `after` contains all lines of `before`, in order. A comma may follow where the new entry is the
/// next one.
fn contains_all_lines(before: &str, after: &str) -> bool {
    let mut lines = after.lines();
    before.lines().all(|line| lines.any(|other| other == line || other == format!("{line},")))
}

#[test]
fn adding_an_entry_changes_no_other_line() {
    let before = "{\n    \"theme\":   \"dark\",\n    \"mcpServers\": {\n        \"other\": {\"command\": \"x\", \"args\": [1.50, \"}\"]}\n    },\n    \"servers\": {}\n}\n";
    for host in JSON_HOSTS {
        let after = changed_text(host.edit(before, &of(PROGRAM_PATH)).unwrap());
        let value: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(value[host.servers_key()][SERVER], host.entry(&of(PROGRAM_PATH)), "{after}");
        assert_eq!(value["mcpServers"]["other"]["args"][1], "}");
        if host != Host::Vscode {
            assert!(contains_all_lines(before, &after), "{after}");
            assert!(
                after.contains("        \"mcp-delegator\": {\n"),
                "indented like its neighbours: {after}"
            );
        }
        assert_eq!(host.edit(&after, &of(PROGRAM_PATH)), Ok(Edit::Unchanged), "a second time");
    }
}

#[test]
fn file_without_servers_gets_the_servers_object() {
    for (before, after) in [
        ("{}", "{\n  \"mcpServers\": {"),
        ("{\"a\":1}", "{\n  \"a\":1,\n  \"mcpServers\": {\n    \"mcp-delegator\""),
        ("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"mcp-delegator\""),
        ("", "{\n  \"mcpServers\": {"),
    ] {
        let text = changed_text(Host::Cursor.edit(before, &of(PROGRAM_PATH)).unwrap());
        assert!(text.starts_with(after), "{before:?} became {text}");
        assert_eq!(Host::Cursor.edit(&text, &of(PROGRAM_PATH)), Ok(Edit::Unchanged));
    }
}

#[test]
fn existing_entry_gets_only_its_command_updated() {
    let before = "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"/old\", \"args\": [\"serve\", \"--read-only\"],  \"env\": {\"A\": \"b\"}}}}";
    let after = changed_text(Host::ClaudeCode.edit(before, &of(PROGRAM_PATH)).unwrap());
    assert_eq!(after, before.replace("/old", PROGRAM_PATH));
    let before = "# mine\n[mcp_servers.mcp-delegator] # ours\ncommand = '/old' # why\nargs = [\"serve\", \"--read-only\"]\nenv = { A = \"b\" }\n";
    let after = changed_text(Host::Codex.edit(before, &of(PROGRAM_PATH)).unwrap());
    assert_eq!(after, before.replace("'/old'", "\"/opt/mcp-delegator\""));
    assert_eq!(Host::Codex.edit(&after, &of(PROGRAM_PATH)), Ok(Edit::Unchanged));
}

#[test]
fn line_endings_stay_as_they_were() {
    let before = "model = \"x\"\r\n[mcp_servers.mcp-delegator]\r\ncommand = '/old'\r\n";
    let after = changed_text(Host::Codex.edit(before, &of(PROGRAM_PATH)).unwrap());
    assert_eq!(after, before.replace("'/old'", "\"/opt/mcp-delegator\""));
    let before = "{\r\n  \"mcpServers\": {\"mcp-delegator\": {\"command\": \"/old\"}}\r\n}\r\n";
    let after = changed_text(Host::Cursor.edit(before, &of(PROGRAM_PATH)).unwrap());
    assert_eq!(after, before.replace("/old", PROGRAM_PATH));
}

#[test]
fn toml_table_is_appended_at_the_end() {
    let before = "model = \"x\" # a comment\n\n[mcp_servers.other]\ncommand = \"y\"";
    let after = changed_text(Host::Codex.edit(before, &of("/a \"quoted\\ place")).unwrap());
    assert!(after.starts_with(before), "{after}");
    let value: toml::Table = toml::from_str(&after).unwrap();
    assert_eq!(value["mcp_servers"][SERVER]["command"].as_str(), Some("/a \"quoted\\ place"));
    assert_eq!(
        changed_text(Host::Codex.edit("", &of(PROGRAM_PATH)).unwrap()),
        Host::Codex.sample(&of(PROGRAM_PATH))
    );
}

#[test]
fn comments_and_trailing_commas_stay_where_the_client_accepts_them() {
    let before = "// top\n{ // my servers\n\t\"servers\": { // those\n\t\t// the first\n\t\t\"a\": {}, // x\n\t\t/* old */\n\t},\n}\n";
    let after = changed_text(Host::Vscode.edit(before, &of(PROGRAM_PATH)).unwrap());
    assert!(contains_all_lines(before, &after), "{after}");
    let entry = Host::Vscode.registered_entry(&after).unwrap().unwrap();
    assert_eq!(entry.command.as_deref(), Some(PROGRAM_PATH));
    assert_eq!(Host::Vscode.edit(&after, &of(PROGRAM_PATH)), Ok(Edit::Unchanged));
    let moved = changed_text(Host::Vscode.edit(&after, &of("/new")).unwrap());
    assert_eq!(moved, after.replace(PROGRAM_PATH, "/new"));
    for empty in ["{ // a comment\n}", "{\r\n  // a comment\r\n}\r\n", "// a comment\n{}"] {
        let after = changed_text(Host::Vscode.edit(empty, &of(PROGRAM_PATH)).unwrap());
        assert!(after.contains("// a comment") && after.contains(PROGRAM_PATH), "{after}");
        assert_eq!(
            after.matches('\n').count() == after.matches("\r\n").count(),
            empty.contains('\r'),
            "{after}"
        );
        assert!(Host::ClaudeCode.edit(empty, &of(PROGRAM_PATH)).is_err(), "this client reads JSON only");
    }
    for broken in ["{ a: 1 }", "{ 'a': 1 }", "{ \"a\": 1 \"b\": 2 }", "{ /* }"] {
        assert!(Host::Vscode.edit(broken, &of(PROGRAM_PATH)).is_err(), "{broken}");
    }
}

#[test]
fn files_that_would_need_rewriting_are_refused() {
    for text in
        ["[]", "// only a comment", "{\"mcpServers\": []}", "{\"mcpServers\": {\"mcp-delegator\": 1}}"]
    {
        assert!(Host::Cursor.edit(text, &of(PROGRAM_PATH)).is_err(), "{text}");
    }
    for text in
        ["mcp_servers = { other = { command = \"x\" } }\n", "= 1", "[mcp_servers.mcp-delegator]\nurl = 'x'\n"]
    {
        assert!(Host::Codex.edit(text, &of(PROGRAM_PATH)).is_err(), "{text}");
    }
}

#[test]
fn each_host_has_its_config_file() {
    let dirs = HostDirs { home: Path::new("/h"), config: None, codex: None, claude: None };
    let files: Vec<String> = Host::ALL.map(|host| host.config_file(dirs).display().to_string()).to_vec();
    let expected = [
        "/h/.claude.json",
        "/h/.codex/config.toml",
        "/h/.cursor/mcp.json",
        "/h/.config/Code/User/mcp.json",
        "/h/.config/Claude/claude_desktop_config.json",
    ];
    assert_eq!(files, expected);
    let moved = HostDirs { codex: Some(Path::new("/c")), claude: Some(Path::new("/d")), ..dirs };
    assert_eq!(Host::Codex.config_file(moved), Path::new("/c/config.toml"));
    assert_eq!(Host::ClaudeCode.config_file(moved), Path::new("/d/.claude.json"));
    assert_eq!(
        Host::Vscode.entry(&of(PROGRAM_PATH)),
        json!({"type": "stdio", "command": PROGRAM_PATH, "args": ["serve"]})
    );
}

#[test]
fn arguments_of_an_existing_entry_are_replaced_only_on_request() {
    let json = "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"/opt/mcp-delegator\", \"args\": [\"serve\", \"--read-only\"]}}}";
    let toml = "[mcp_servers.mcp-delegator]\ncommand = '/opt/mcp-delegator'\nargs = [\"serve\", \"--read-only\"] # mine\n";
    let wanted = "[\"serve\", \"--toolsets\", \"local\"]";
    for (host, before) in [(Host::Cursor, json), (Host::Codex, toml)] {
        assert_eq!(host.edit(before, &of(PROGRAM_PATH)), Ok(Edit::Unchanged));
        let after = changed_text(host.edit(before, &with_toolsets("local")).unwrap());
        assert_eq!(after, before.replace("[\"serve\", \"--read-only\"]", wanted));
        assert_eq!(host.edit(&after, &with_toolsets("local")), Ok(Edit::Unchanged));
    }
}

#[test]
fn approval_is_written_once_and_never_removed() {
    assert!(Host::Codex.sample(&approving()).ends_with("\ndefault_tools_approval_mode = \"approve\"\n"));
    for (before, after) in [
        (
            "[mcp_servers.mcp-delegator]\r\ncommand = '/opt/mcp-delegator' # why\r\n[other]\r\n",
            "[mcp_servers.mcp-delegator]\r\ncommand = '/opt/mcp-delegator' # why\r\ndefault_tools_approval_mode = \"approve\"\r\n[other]\r\n",
        ),
        (
            "[mcp_servers]\nmcp-delegator = { command = '/opt/mcp-delegator' }",
            "[mcp_servers]\nmcp-delegator = { command = '/opt/mcp-delegator', default_tools_approval_mode = \"approve\" }",
        ),
        (
            "[mcp_servers.mcp-delegator]\ncommand = '/opt/mcp-delegator'\ndefault_tools_approval_mode = 'prompt'\n",
            "[mcp_servers.mcp-delegator]\ncommand = '/opt/mcp-delegator'\ndefault_tools_approval_mode = \"approve\"\n",
        ),
    ] {
        let text = changed_text(Host::Codex.edit(before, &approving()).unwrap());
        assert_eq!(text, after);
        let approves = |text| Host::Codex.registered_entry(text).unwrap().unwrap().approves_tools;
        assert!(approves(&text) && !approves(before));
        assert_eq!(Host::Codex.edit(&text, &approving()), Ok(Edit::Unchanged));
        assert_eq!(Host::Codex.edit(&text, &of(PROGRAM_PATH)), Ok(Edit::Unchanged));
    }
}

#[test]
fn the_registered_entry_is_read() {
    for host in Host::ALL {
        let entry = host.registered_entry(&host.sample(&with_toolsets("local"))).unwrap().unwrap();
        assert_eq!(entry.command.as_deref(), Some(PROGRAM_PATH));
        assert_eq!(entry.args, ["serve", "--toolsets", "local"]);
        assert_eq!(host.registered_entry(""), Ok(None));
        assert!(host.registered_entry("= {").is_err());
    }
}

#[test]
fn an_entry_with_a_url_is_not_edited() {
    let json = "{\"mcpServers\": {\"mcp-delegator\": {\"url\": \"http://127.0.0.1:7777/mcp\"}}}";
    let toml = "[mcp_servers.mcp-delegator]\nurl = 'http://127.0.0.1:7777/mcp'\n";
    for (host, text) in [(Host::Cursor, json), (Host::Codex, toml)] {
        let edit = host.edit(text, &with_toolsets("local"));
        assert!(matches!(edit, Err(EntryError::WithoutCommand { .. })), "{edit:?}");
        assert_eq!(host.registered_entry(text).unwrap().unwrap().command, None);
    }
}
