//! Environments through the CLI and MCP: the file beside the configuration, the commands that edit it, and the setup guide.

#![expect(clippy::disallowed_methods, reason = "the tests run bash to check scripts")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use delegator_testkit::answers;
use delegator_testkit::program::{RunOutput, World, read_text};
use mcp_delegator::commands::cloud::environment_template;
use serde_json::{Value, json};

use crate::PROGRAM;

const FILE: &str = "home/.config/mcp-delegator/environments.json";

fn world() -> World {
    World::new(PROGRAM)
}

fn world_with_file(text: &str) -> World {
    let world = world();
    world.write(FILE, text);
    world
}

fn environments_path(world: &World) -> std::path::PathBuf {
    world.home().join(".config/mcp-delegator/environments.json")
}

fn tool_envelope(world: &World, args: &[&str]) -> Value {
    world.run([args, &["--envelope", "tool"]].concat()).json()
}

fn add(world: &World, id: &str, more: &[&str]) -> RunOutput {
    let required =
        ["env", "add", id, "--name", "Site", "--repo-url", "https://github.com/me/site", "--stack", "node"];
    world.run([&required, more].concat())
}

const TWO: &str = r#"{"env_art": {"name": "Art", "repoUrl": "https://github.com/me/art", "stack": "python",
  "createdAt": "2025-11-01T00:00:00Z"},
 "env_fleet": {"name": "Own", "repoUrl": "https://github.com/me/own", "stack": "rust", "provider": "fleet"}}"#;

#[test]
fn environments_are_listed_in_the_published_shape() {
    let world = world_with_file(TWO);
    let response = tool_envelope(&world, &["cloud", "list-environments"]);
    assert_eq!(response["tool"], "_codex_cloud_list_environments");
    let file = world.home().join(".config/mcp-delegator/environments.json");
    assert_eq!((&response["meta"]["count"], &response["meta"]["source"]), (&json!(2), &json!(file)));
    let expected = json!([
        {"id": "env_art", "name": "Art", "repository": "https://github.com/me/art", "tech_stack": "python",
         "provider": "codex-cloud", "created_at": "2025-11-01T00:00:00Z"},
        {"id": "env_fleet", "name": "Own", "repository": "https://github.com/me/own", "tech_stack": "rust",
         "provider": "fleet"},
    ]);
    assert_eq!(response["data"]["environments"], expected);
    let markdown = world.run(["cloud", "list-environments", "--format", "markdown"]);
    for word in ["env_art", "env_fleet", "python", "fleet", "https://github.com/me/own"] {
        assert!(markdown.stdout.contains(word), "{word} is missing in {}", markdown.stdout);
    }
}

#[test]
fn the_environments_file_is_beside_the_active_configuration() {
    let world = world();
    world.write("elsewhere/config.toml", "");
    world.write("elsewhere/environments.json", TWO);
    let elsewhere = world.home().parent().unwrap().join("elsewhere/config.toml");
    let world = world.variable("MCP_DELEGATOR_CONFIG", &elsewhere.display().to_string());
    assert_eq!(tool_envelope(&world, &["cloud", "list-environments"])["meta"]["count"], 2);
    let world = self::world();
    world.write("xdg/mcp-delegator/environments.json", TWO);
    let xdg = world.home().parent().unwrap().join("xdg");
    let world = world.variable("XDG_CONFIG_HOME", &xdg.display().to_string());
    assert_eq!(tool_envelope(&world, &["cloud", "list-environments"])["meta"]["count"], 2);
}

#[test]
fn a_missing_file_error_has_the_path_and_a_working_sample() {
    let world = world();
    let run = world.run(["cloud", "list-environments"]);
    assert_eq!(run.exit, Some(5), "{run:?}");
    let response = tool_envelope(&world, &["cloud", "list-environments"]);
    assert_eq!(response["error"]["code"], "NOT_FOUND");
    let details = &response["error"]["details"];
    assert_eq!(details["path"], environments_path(&world).display().to_string());
    // The sample is a valid file.
    let world = world_with_file(details["sample"].as_str().unwrap());
    assert_eq!(world.run(["env", "check"]).exit, Some(0));
}

#[test]
fn a_broken_file_reports_all_problems_with_line_and_column() {
    let run = world_with_file("{\n  \"a\": oops\n}").run(["env", "check"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    let message = run.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("environments.json:2:8"), "{message}");
    let text = "{\n \"a\": {\"name\": \"A\", \"repoUrl\": \"/a\", \"stack\": \"go\", \"provider\": \"flet\"},\n \"b\": {}\n}";
    for command in [["env", "check"], ["cloud", "list-environments"]] {
        let envelope = world_with_file(text).run(command).json();
        let problems = envelope["meta"]["error_context"]["problems"].as_array().unwrap().clone();
        assert_eq!(problems.len(), 4, "{envelope}");
        assert_eq!((&problems[0]["line"], &problems[0]["column"]), (&json!(2), &json!(53)), "{problems:?}");
        assert_eq!(problems[0]["suggestion"], "Did you mean fleet?");
        assert!(problems[1..].iter().all(|problem| problem["line"] == 3), "{problems:?}");
    }
}

#[test]
fn an_unknown_field_is_a_warning_with_the_nearest_name() {
    let world = world_with_file(r#"{"a": {"name": "A", "repoUrl": "/a", "stack": "go", "brnch": "x"}}"#);
    let run = world.run(["env", "check"]);
    assert_eq!(run.exit, Some(0));
    let warnings = run.json()["warnings"].to_string();
    assert!(warnings.contains("brnch") && warnings.contains("did you mean `branch`"), "{warnings}");
}

#[test]
fn an_environment_is_added_listed_and_removed() {
    let world = world();
    let run = add(&world, "env_site", &["--provider", "fleet", "--labels", "os=linux", "--push"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert_eq!(run.json()["data"]["environment"]["provider"], "fleet");
    let written: Value = serde_json::from_str(&read_text(&environments_path(&world))).unwrap();
    let entry = &written["env_site"];
    assert_eq!(
        (&entry["repoUrl"], &entry["labels"]["os"]),
        (&json!("https://github.com/me/site"), &json!("linux"))
    );
    assert_eq!((&entry["push"], entry["createdAt"].is_string()), (&json!(true), true));
    assert_eq!(environments_path(&world).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(add(&world, "env_site", &[]).exit, Some(6), "the same id again");
    assert_eq!(tool_envelope(&world, &["cloud", "list-environments"])["meta"]["count"], 1);

    let before = read_text(&environments_path(&world));
    let refused = world.run(["env", "remove", "env_site"]);
    assert_eq!(refused.exit, Some(2));
    assert_eq!(refused.json()["error"]["code"], "CONFIRMATION_REQUIRED");
    assert_eq!(read_text(&environments_path(&world)), before);
    let unknown = world.run(["env", "remove", "env_sit", "--confirm-destructive"]);
    assert_eq!(unknown.exit, Some(5));
    assert_eq!(unknown.json()["error"]["suggestion"], "Did you mean env_site?");
    assert_eq!(world.run(["env", "remove", "env_site", "--confirm-destructive"]).exit, Some(0));
    assert_eq!(tool_envelope(&world, &["cloud", "list-environments"])["data"]["environments"], json!([]));
}

#[test]
fn an_invalid_environment_is_refused_before_the_file_is_written() {
    let world = world();
    let run = world.run([
        "env",
        "add",
        "a b",
        "--name",
        "A",
        "--repo-url",
        "ext::sh",
        "--stack",
        "Node JS",
        "--mode",
        "read-onyl",
    ]);
    assert_eq!(run.exit, Some(2), "{run:?}");
    let problems = run.json()["meta"]["error_context"]["problems"].as_array().unwrap().clone();
    let fields: Vec<&str> = problems.iter().map(|problem| problem["field"].as_str().unwrap()).collect();
    for field in ["env_id", "repo_url", "stack", "mode"] {
        assert!(fields.contains(&field), "{field} is missing in {fields:?}");
    }
    let mode = problems.iter().find(|problem| problem["field"] == "mode").unwrap();
    assert_eq!(mode["suggestion"], "Did you mean read-only?");
    assert!(!environments_path(&world).exists());
}

fn guide(world: &World, more: &[&str]) -> Value {
    let required = [
        "cloud",
        "github-setup",
        "https://github.com/me/own/",
        "--tech-stack",
        "rust",
        "--git-user-name",
        "O'Brien $(id)",
    ];
    tool_envelope(world, &[&required, ["--git-user-email", "me@example.org"].as_slice(), more].concat())
}

#[test]
fn the_guide_has_three_steps_with_text_to_paste() {
    let response = guide(&world(), &[]);
    assert_eq!(
        (&response["meta"]["repository"], &response["meta"]["tech_stack"]),
        (&json!("https://github.com/me/own"), &json!("rust"))
    );
    let data = &response["data"];
    let steps = data["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["step"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let first = steps[0]["instructions"].as_str().unwrap();
    for word in
        ["me/own", "Contents read and write", "Pull requests read and write", "https://github.com/settings/"]
    {
        assert!(first.contains(word), "{word} is missing in {first}");
    }
    assert!(steps[1]["instructions"].as_str().unwrap().contains("GITHUB_TOKEN"));
    assert!(data["guide"].as_str().unwrap().starts_with("# GitHub Integration Setup\n\n## Step 1: "));
    assert!(data["verification_task"].as_str().unwrap().contains("me/own"));
    let added = steps[1]["paste"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned();
    assert!(added.starts_with("mcp-delegator env add env_own "), "{added}");
}

#[test]
fn the_guide_needs_only_a_repository_and_a_stack_also_under_their_former_names() {
    let start = ["cloud", "github-setup", "https://github.com/me/own"];
    let guide = tool_envelope(&world(), &[&start[..], &["--tech-stack", "rust"]].concat());
    let step = &guide["data"]["steps"][1];
    assert!(step["instructions"].as_str().unwrap().contains("Replace the name and the e-mail"), "{step}");
    assert_eq!(tool_envelope(&world(), &[&start[..], &["--stack", "rust"]].concat())["data"], guide["data"]);
    for inputs in [
        json!({"repository": "https://github.com/me/own", "tech_stack": "rust"}),
        json!({"repoUrl": "https://github.com/me/own", "stack": "rust"}),
    ] {
        let args = ["cloud", "github-setup", "--input-json", "-", "--envelope", "tool"];
        let run = world().run_with_input(args, inputs.to_string().as_bytes());
        assert_eq!(run.json()["data"], guide["data"], "{inputs}: {run:?}");
    }
}

#[test]
fn counts_are_those_of_the_listed_environments_and_of_all() {
    let entry =
        |n: usize| (format!("env_{n:03}"), json!({"name": "n", "repoUrl": "https://h/o/n", "stack": "go"}));
    let all: serde_json::Map<String, Value> = (0..900).map(entry).collect();
    let world = world_with_file(&Value::Object(all).to_string());
    let state = world.home().join("state").display().to_string();
    let world = world.variable("MCP_DELEGATOR_HOME", &state);
    let mut cursor = Value::Null;
    let mut listed = 0;
    while listed < 900 {
        let arguments = json!({"format": "json", "cursor": cursor});
        let params = json!({"name": "_codex_cloud_list_environments", "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = mcp_responses(&world, &[call])[0]["result"]["structuredContent"].clone();
        let (meta, shown) = (&answer["meta"], answer["data"]["environments"].as_array().unwrap().len());
        assert_eq!((&meta["count"], &meta["total"]), (&json!(shown), &json!(900)), "{meta}");
        listed += shown;
        cursor = meta["next_cursor"].clone();
        assert_eq!(cursor.is_null(), listed == 900, "{meta}");
    }
}

#[test]
fn the_guides_own_command_adds_the_environment() {
    let world = world();
    let response = guide(&world, &["--env-id", "env_new"]);
    let warnings = response["meta"]["warnings"].to_string();
    assert!(warnings.contains("env_new"), "{response}");
    let paste = response["data"]["steps"][1]["paste"].as_array().unwrap().last().unwrap().clone();
    let args: Vec<&str> = paste["text"].as_str().unwrap().split_whitespace().skip(1).collect();
    assert_eq!(world.run(args).exit, Some(0));
    let again = guide(&world, &["--env-id", "env_new"]);
    assert_eq!(again["meta"].get("warnings"), None, "{again}");
    assert!(!again["data"].to_string().contains("env add"), "the environment exists already");
}

#[test]
fn the_guide_for_a_fleet_environment_names_the_worker_secret() {
    let response = guide(&world_with_file(TWO), &["--env-id", "env_fleet"]);
    let step = response["data"]["steps"][1].to_string();
    assert!(step.contains("worker") && !step.contains("chatgpt.com"), "{step}");
    let other = guide(&world_with_file(TWO), &["--env-id", "env_art"]);
    assert!(other["meta"]["warnings"].to_string().contains("another repository"), "{other}");
}

#[test]
fn both_formats_of_the_guide_have_the_same_content() {
    let world = world();
    let args =
        ["cloud", "github-setup", "https://github.com/me/own", "--stack", "go", "--git-user-name", "Me"];
    let args = [&args, ["--git-user-email", "me@example.org"].as_slice()].concat();
    let data = tool_envelope(&world, &args)["data"].clone();
    let markdown = world.run([&args, ["--format", "markdown"].as_slice()].concat()).stdout;
    for step in data["steps"].as_array().unwrap() {
        assert!(markdown.contains(step["title"].as_str().unwrap()), "{markdown}");
        for paste in step["paste"].as_array().unwrap() {
            for line in paste["text"].as_str().unwrap().lines() {
                assert!(markdown.contains(line), "{line} is missing in {markdown}");
            }
        }
    }
}

/// The responses of the server to these requests, in order.
fn mcp_responses(world: &World, requests: &[Value]) -> Vec<Value> {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let mut server = world
        .command(["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| writeln!(input, "{message}").unwrap();
    ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    lines.next().unwrap().unwrap();
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let responses = requests.iter().map(|request| {
        ask(request.clone());
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    });
    let responses: Vec<Value> = responses.collect();
    responses.iter().for_each(answers::check);
    drop(input);
    assert!(server.wait().unwrap().success());
    responses
}

#[test]
fn mcp_clients_get_the_list_the_guide_and_the_templates() {
    let state = |world: World| {
        let home = world.home().join("state").display().to_string();
        world.variable("MCP_DELEGATOR_HOME", &home)
    };
    let call = |id: u32, name: &str, arguments: Value| {
        let params = json!({"name": format!("_codex_cloud_{name}"), "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let missing = mcp_responses(&state(world()), &[call(1, "list_environments", json!({"format": "json"}))]);
    assert_eq!(missing[0]["result"]["isError"], true, "{missing:?}");
    assert_eq!(missing[0]["result"]["structuredContent"]["error"]["code"], "NOT_FOUND");
    let guide = json!({
        "repoUrl": "https://github.com/me/own", "stack": "go", "gitUserName": "Me", "gitUserEmail": "me@example.org",
        "format": "json",
    });
    let uri = "codex://environment-template/github-go";
    let responses = mcp_responses(
        &state(world_with_file(TWO)),
        &[
            call(1, "list_environments", json!({"format": "json"})),
            call(2, "github_setup", guide),
            json!({"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": uri}}),
        ],
    );
    assert_eq!(responses[0]["result"]["structuredContent"]["meta"]["count"], 2, "{responses:?}");
    assert_eq!(responses[1]["result"]["structuredContent"]["data"]["steps"][2]["step"], 3, "{responses:?}");
    let template = responses[2]["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(template.contains("go mod download"), "{template}");
    // A placeholder is not a secret, and redacting it would break the script.
    let text = json!(responses).to_string();
    assert!(text.contains("x-access-token:%s@github.com") && !text.contains("[REDACTED"), "{text}");
}

/// Whether `bash -n` accepts the script.
fn is_valid_bash(script: &str) -> bool {
    let mut bash =
        Command::new("bash").args(["-n", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    bash.wait().unwrap().success()
}

#[test]
fn every_script_is_valid_bash() {
    assert!(!is_valid_bash("if ["), "the check accepts everything");
    for template in &environment_template::ALL {
        let shown = template.to_value();
        for script in [&shown["setup"], &shown["maintenance"]] {
            assert!(is_valid_bash(script.as_str().unwrap()), "{}", template.name);
        }
    }
    for step in guide(&world_with_file(TWO), &["--env-id", "env_fleet"])["data"]["steps"].as_array().unwrap()
    {
        for paste in step["paste"].as_array().unwrap() {
            assert!(is_valid_bash(paste["text"].as_str().unwrap()), "{paste}");
        }
    }
}

#[test]
fn shell_metacharacters_in_a_name_are_quoted() {
    let world = world();
    let response = guide(&world, &[]);
    let setup = response["data"]["steps"][1]["paste"][0]["text"].as_str().unwrap().to_owned();
    let run = Command::new("bash")
        .args(["-c", &setup])
        .current_dir(world.project())
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GITHUB_TOKEN", "not-a-real-one")
        .status()
        .unwrap();
    assert!(run.success());
    let config = read_text(&world.home().join(".gitconfig"));
    assert!(config.contains("name = O'Brien $(id)"), "{config}");
    let credentials = world.home().join(".git-credentials");
    assert_eq!(credentials.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
