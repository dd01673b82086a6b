//! Entries in other people's files: nothing else moves, and a second time nothing moves at all.

use serde_json::{Value, json};

use super::*;

const US: &str = "/opt/mcp-delegator";
const JSON_HOSTS: [Host; 4] = [Host::ClaudeCode, Host::Cursor, Host::Vscode, Host::ClaudeDesktop];

fn text_of(edit: Edit) -> String {
    match edit {
        Edit::Text(text) => text,
        Edit::Nothing => panic!("nothing was to do"),
    }
}

/// Every line of the one is a line of the other, in order.
fn keeps_every_line(before: &str, after: &str) -> bool {
    let mut lines = after.lines();
    before.lines().all(|line| lines.any(|other| other == line))
}

#[test]
fn an_entry_is_put_in_and_nothing_else_moves() {
    let before = "{\n    \"theme\":   \"dark\",\n    \"mcpServers\": {\n        \"other\": {\"command\": \"x\", \"args\": [1.50, \"}\"]}\n    },\n    \"servers\": {}\n}\n";
    for host in JSON_HOSTS {
        let after = text_of(host.edit(before, US).unwrap());
        let value: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(value[host.servers()][SERVER], host.entry(US), "{after}");
        assert_eq!(value["mcpServers"]["other"]["args"][1], "}");
        if host != Host::Vscode {
            assert!(keeps_every_line(before, &after), "{after}");
            assert!(
                after.contains("        \"mcp-delegator\": {\n"),
                "indented like its neighbours: {after}"
            );
        }
        assert_eq!(host.edit(&after, US), Ok(Edit::Nothing), "a second time");
    }
}

#[test]
fn a_file_without_servers_gets_the_group() {
    for (before, after) in [
        ("{}", "{\n  \"mcpServers\": {"),
        ("{\"a\":1}", "{\"mcpServers\":{\"mcp-delegator\":"),
        ("{\n  \"a\": 1\n}\n", "{\n  \"mcpServers\": {\n    \"mcp-delegator\""),
        ("", "{\n  \"mcpServers\": {"),
    ] {
        let text = text_of(Host::Cursor.edit(before, US).unwrap());
        assert!(text.starts_with(after), "{before:?} became {text}");
        assert_eq!(Host::Cursor.edit(&text, US), Ok(Edit::Nothing));
    }
}

#[test]
fn of_our_own_entry_only_the_command_is_mended() {
    let before = "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"/old\", \"args\": [\"serve\", \"--read-only\"],  \"env\": {\"A\": \"b\"}}}}";
    let after = text_of(Host::ClaudeCode.edit(before, US).unwrap());
    assert_eq!(after, before.replace("/old", US));
    let before = "# mine\n[mcp_servers.mcp-delegator] # ours\ncommand = '/old' # why\nargs = [\"serve\", \"--read-only\"]\nenv = { A = \"b\" }\n";
    let after = text_of(Host::Codex.edit(before, US).unwrap());
    assert_eq!(after, before.replace("'/old'", "\"/opt/mcp-delegator\""));
    assert_eq!(Host::Codex.edit(&after, US), Ok(Edit::Nothing));
}

#[test]
fn a_table_goes_to_the_end_of_toml() {
    let before = "model = \"x\" # a comment\n\n[mcp_servers.other]\ncommand = \"y\"";
    let after = text_of(Host::Codex.edit(before, "/a \"quoted\\ place").unwrap());
    assert!(after.starts_with(before), "{after}");
    let value: toml::Table = toml::from_str(&after).unwrap();
    assert_eq!(value["mcp_servers"][SERVER]["command"].as_str(), Some("/a \"quoted\\ place"));
    assert_eq!(text_of(Host::Codex.edit("", US).unwrap()), Host::Codex.sample(US));
}

#[test]
fn what_cannot_be_done_without_rewriting_is_refused() {
    for text in
        ["{ // a comment\n}", "[]", "{\"mcpServers\": []}", "{\"mcpServers\": {\"mcp-delegator\": 1}}"]
    {
        assert!(Host::Cursor.edit(text, US).is_err(), "{text}");
    }
    for text in
        ["mcp_servers = { other = { command = \"x\" } }\n", "= 1", "[mcp_servers.mcp-delegator]\nurl = 'x'\n"]
    {
        assert!(Host::Codex.edit(text, US).is_err(), "{text}");
    }
}

#[test]
fn every_host_has_its_file() {
    let homes = Homes { home: Path::new("/h"), config: None, codex: None, claude: None };
    let files: Vec<String> = [Host::ClaudeCode, Host::Codex, Host::Cursor, Host::Vscode, Host::ClaudeDesktop]
        .map(|host| host.file(homes).display().to_string())
        .to_vec();
    let expected = [
        "/h/.claude.json",
        "/h/.codex/config.toml",
        "/h/.cursor/mcp.json",
        "/h/.config/Code/User/mcp.json",
        "/h/.config/Claude/claude_desktop_config.json",
    ];
    assert_eq!(files, expected);
    let moved = Homes { codex: Some(Path::new("/c")), claude: Some(Path::new("/d")), ..homes };
    assert_eq!(Host::Codex.file(moved), Path::new("/c/config.toml"));
    assert_eq!(Host::ClaudeCode.file(moved), Path::new("/d/.claude.json"));
    assert_eq!(Host::Vscode.entry(US), json!({"type": "stdio", "command": US, "args": ["serve"]}));
}
