//! One definition of each command: manifest, help and tool list state the same inputs, and a caller can read all of it.

use std::collections::{BTreeMap, BTreeSet};

use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::client::{Client, V2025_11, quick_stage, result, text};

const ALL_TOOLSETS: [&str; 2] = ["--toolsets", "local,cloud,registry,extra"];
/// The limit for MCP responses, in characters.
const MAX_CHARACTERS: usize = 48_000;

fn client_with_all_tools(stage: &Stage) -> Client {
    Client::connect_with(stage, V2025_11, &ALL_TOOLSETS, json!({}))
}

fn manifest(stage: &Stage) -> Vec<Value> {
    stage.run_json(&["manifest"])["data"]["commands"].as_array().unwrap().clone()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What a surface states about one input.
#[derive(Debug, Default, PartialEq)]
struct Facts {
    range: Option<String>,
    default: Option<String>,
    choices: Vec<String>,
}

impl Facts {
    fn of_schema(schema: &Value) -> Facts {
        let bounds = (schema.get("minimum"), schema.get("maximum"));
        let default = match &schema["default"] {
            Value::Null | Value::Bool(false) => None,
            Value::String(text) => Some(text.clone()),
            Value::Array(_) => Some(words(&schema["default"]).join(",")),
            other => Some(other.to_string()),
        };
        let choices = words(if schema["items"]["enum"].is_array() {
            &schema["items"]["enum"]
        } else {
            &schema["enum"]
        });
        Facts {
            range: match bounds {
                (Some(low), Some(high)) => Some(format!("{low}..{high}")),
                _ => None,
            },
            default,
            choices: choices.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The facts in `… (1..9, default 5) [possible values: a, b]`.
    fn of_text(text: &str) -> Facts {
        let (text, choices) = match text.split_once("[possible values: ") {
            Some((before, after)) => {
                (before.trim_end(), after.split(']').next().unwrap().split(", ").map(str::to_owned).collect())
            }
            None => (text, Vec::new()),
        };
        let text = text.split(" [").next().unwrap();
        let notes = match (text.rfind('('), text.contains(')')) {
            (Some(open), true) => text[open + 1..].split(')').next().unwrap(),
            // A tool states only the notes of an input whose name explains the rest.
            _ => text,
        };
        let notes: Vec<&str> = notes.split(", ").collect();
        let is_range = |note: &&&str| note.contains("..") && !note.ends_with(" chars");
        let default =
            notes.iter().find_map(|note| note.strip_prefix("default ")).filter(|default| *default != "false");
        Facts {
            range: notes.iter().find(is_range).map(|note| (*note).to_owned()),
            default: default.map(str::to_owned),
            choices,
        }
    }
}

/// The entries of a help text by flag or name of the argument, each on one line, and the usage line.
fn help_entries(text: &str) -> (String, BTreeMap<String, String>) {
    // A long usage line is wrapped.
    let usage = text.split_once("Usage: ").unwrap().1.split("\n\n").next().unwrap();
    let usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let mut current = None;
    for line in text.lines().skip_while(|line| !line.starts_with("Usage: ")) {
        // `  -C, --working-dir` as `      --working-dir`.
        let has_short = line.starts_with("  -") && line.get(4..8) == Some(", --");
        let line =
            if has_short { format!("    {}", &line[4..]).replacen(", ", "  ", 1) } else { line.to_owned() };
        let (trimmed, depth) = (line.trim_start(), line.len() - line.trim_start().len());
        let begins =
            (depth == 2 && trimmed.starts_with(['<', '['])) || (depth == 6 && trimmed.starts_with("--"));
        if begins {
            let name = trimmed.split([' ', '=']).next().unwrap().trim_matches(['<', '>', '[', ']', '.']);
            let name = name.trim_end_matches("[").to_owned();
            let about = trimmed.split_once("  ").map_or("", |(_, about)| about.trim_start());
            entries.insert(name.clone(), about.to_owned());
            current = Some(name);
        } else if depth > 6
            && let Some(entry) = current.as_ref().and_then(|name| entries.get_mut(name))
        {
            *entry = format!("{entry} {trimmed}").trim_start().to_owned();
        } else {
            current = None;
        }
    }
    (usage, entries)
}

#[test]
fn manifest_and_help_state_the_same_inputs() {
    let stage = quick_stage();
    let commands = manifest(&stage);
    assert_eq!(commands.len(), 74);
    for command in &commands {
        let name = command["name"].as_str().unwrap();
        let path = words(&command["path"]);
        let help = stage.run_json(&[path.as_slice(), &["--help", "--json"]].concat());
        let help = help["data"]["text"].as_str().unwrap();
        let (usage, entries) = help_entries(help);
        let schema = &command["input_schema"];
        let positional = words(&command["positional"]);
        for (input, declared) in schema["properties"].as_object().unwrap() {
            if ["format", "options"].contains(&input.as_str()) {
                continue;
            }
            let flag = format!("--{}", input.replace('_', "-"));
            assert!(entries.contains_key(&flag), "{name} {flag}: {help}");
            let is_positional = positional.contains(&input.as_str());
            let entry = if is_positional { input.to_uppercase() } else { flag.clone() };
            let stated = entries.get(&entry).unwrap_or_else(|| panic!("{name} {entry}: {help}"));
            let mut expected = Facts::of_schema(declared);
            if declared["type"] == "boolean" {
                expected.choices.clear();
            }
            assert_eq!(Facts::of_text(stated), expected, "{name} {input}: {stated}");
            let is_required = words(&schema["required"]).contains(&input.as_str());
            let in_usage = match is_positional {
                // `<TASK|--task-file <FILE>>` or `<TASK_ID|--last>`: there is another way to give it.
                true => [">", &format!("|{flag}-file <FILE>>"), "|--last>"]
                    .iter()
                    .any(|end| usage.contains(&format!(" <{entry}{end}"))),
                false => usage.contains(&format!(" {flag} <")),
            };
            assert_eq!(in_usage, is_required, "{name} {input}: {usage}");
        }
        let alternatives = words(&command["exactly_one_of"]);
        if !alternatives.is_empty() {
            let rule = format!("Give either {}.", alternatives.join(" or "));
            assert_eq!(schema["description"], rule, "{name}");
            assert!(command["description"].as_str().unwrap().ends_with(&rule), "{command}");
            assert!(help.replace('\n', " ").contains(&rule), "{help}");
            for input in alternatives {
                let flag = format!("--{}", input.replace('_', "-"));
                let shown = if positional.contains(&input) { input.to_uppercase() } else { flag };
                let group = usage.split_once('<').unwrap().1;
                assert!(group.contains(&shown) && group.contains('|'), "{name}: {usage}");
            }
        }
    }
}

/// The text after a key of `options`, up to the next key.
fn option_text<'a>(options: &'a str, key: &str) -> &'a str {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let found = options.match_indices(key).find(|(at, _)| {
        !options[..*at].ends_with(is_part) && !options[at + key.len()..].starts_with(is_part)
    });
    let (at, _) = found.unwrap_or_else(|| panic!("{key}: {options}"));
    let rest = &options[at + key.len()..];
    let mut depth = 0;
    let end = rest.char_indices().find(|(at, letter)| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        let begins_notes = rest[*at..].starts_with(" (");
        depth == 0 && !begins_notes && [' ', ';'].contains(letter)
    });
    &rest[..end.map_or(rest.len(), |(at, _)| at)]
}

fn facts_of_option(text: &str) -> Facts {
    match text.contains('|') {
        false => Facts::of_text(text),
        true => {
            let choices: Vec<&str> = text.trim_start_matches('=').split('|').collect();
            let default = choices.iter().find_map(|choice| choice.strip_suffix(" (default)"));
            let plain = |choice: &&str| choice.trim_end_matches(" (default)").to_owned();
            Facts {
                range: None,
                default: default.map(str::to_owned),
                choices: choices.iter().map(plain).collect(),
            }
        }
    }
}

#[test]
fn manifest_and_tool_list_state_the_same_inputs() {
    let stage = quick_stage();
    let mut client = client_with_all_tools(&stage);
    let listed = result(client.request("tools/list", json!({})))["tools"].as_array().unwrap().clone();
    let commands = manifest(&stage);
    let declared: BTreeSet<&str> = commands.iter().filter_map(|command| command["tool"].as_str()).collect();
    let served: BTreeSet<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(declared, served);
    for tool in &listed {
        let name = tool["name"].as_str().unwrap();
        let command = commands.iter().find(|command| command["tool"] == name).unwrap();
        assert_eq!(&command["mcp"], tool, "{name}");
        let schema = stage.run_json(&["schema", name, "--json"])["data"]["input"].clone();
        let offered = &tool["inputSchema"];
        assert_eq!(schema["required"], offered["required"], "{name}");
        for (input, declared) in schema["properties"].as_object().unwrap() {
            if input == "options" {
                continue;
            }
            let mut expected = Facts::of_schema(declared);
            let property = &offered["properties"][input];
            let stated = match (input.as_str(), property["description"].as_str()) {
                ("format", Some(text)) => {
                    expected.default = Some("markdown".to_owned());
                    facts_of_option(text)
                }
                (_, Some(text)) => {
                    assert_eq!(property["type"], declared["type"], "{name} {input}");
                    let is_stated = text.contains("default false");
                    assert_eq!(is_stated, declared["default"] == false, "{name} {input}: {text}");
                    Facts { choices: Facts::of_schema(property).choices, ..Facts::of_text(text) }
                }
                (_, None) => {
                    let options = offered["properties"]["options"]["description"].as_str().unwrap();
                    facts_of_option(option_text(options, input))
                }
            };
            assert_eq!(stated, expected, "{name} {input}");
        }
        if let Some(rule) = schema["description"].as_str() {
            assert!(tool["description"].as_str().unwrap().contains(rule), "{tool}");
        }
    }
}

#[test]
fn defaults_that_the_configuration_can_change_are_in_every_schema() {
    let stage = quick_stage().variable("MCP_DELEGATOR_HARD_TIMEOUT_SEC", "77");
    let commands = manifest(&stage);
    for (name, input, default) in [
        ("local.run", "idle_timeout_sec", json!(300)),
        ("local.exec", "hard_timeout_sec", json!(1200)),
        ("local.resume", "hard_timeout_sec", json!(1200)),
        ("local.run", "call_budget_sec", json!(50)),
        ("local.wait", "timeout_sec", json!(50)),
        ("cloud.wait", "timeout_sec", json!(50)),
        ("serve", "default_format", json!("markdown")),
        ("serve", "tool_prefix", json!("_codex_")),
        ("serve", "toolsets", json!(["local", "cloud", "registry"])),
        ("env.add", "provider", json!("codex-cloud")),
        ("env.add", "priority", json!(0)),
    ] {
        let command = commands.iter().find(|command| command["name"] == name).unwrap();
        let path = words(&command["path"]);
        let by_name = stage.run_json(&["schema", name, "--json"]);
        let by_flag = stage.run_json(&[path.as_slice(), &["--schema", "--json"]].concat());
        for schema in [&command["input_schema"], &by_name["data"]["input"], &by_flag["data"]["input"]] {
            assert_eq!(schema["properties"][input]["default"], default, "{name} {input}: {schema}");
        }
    }
    // The configuration still counts: a default in a schema is not filled in.
    let id = stage.exec(&[]);
    stage.wait(&id);
    let record = read_launch_limits(&stage, &id);
    assert_eq!(record, json!(77), "the configured limit is in force");
}

/// The hard limit that the task ran with, from its stored record.
fn read_launch_limits(stage: &Stage, id: &str) -> Value {
    let report = stage.task_dir(id).join("report.json");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    report["limits"]["hard_sec"].clone()
}

#[test]
fn each_surface_offers_the_formats_that_it_takes() {
    let stage = quick_stage();
    let mut client = client_with_all_tools(&stage);
    let formats = |schema: &Value| schema["properties"]["format"]["enum"].clone();
    let over_mcp = client.envelope("_codex_schema", json!({"name": "local.status"}));
    let offered = formats(&over_mcp["data"]["input"]);
    assert_eq!(offered, json!(["markdown", "json"]));
    assert_eq!(
        formats(&stage.run_json(&["schema", "_codex_local_status", "--json"])["data"]["input"]),
        offered
    );
    for format in words(&offered) {
        let response = client.call("_codex_local_status", json!({"format": format}));
        assert_ne!(response["isError"], true, "{format}: {response}");
    }
    let on_command_line = formats(&stage.run_json(&["schema", "local.status", "--json"])["data"]["input"]);
    assert_eq!(on_command_line, json!(["human", "markdown", "json", "jsonl"]));
    for format in words(&on_command_line) {
        stage.world.write("project/input.json", &json!({"format": format}).to_string());
        let run = stage.world.run(["local", "status", "--input-json", "input.json"]);
        assert_eq!(run.exit, Some(0), "{format}: {run:?}");
    }
    for format in ["human", "jsonl"] {
        let refused = client.call("_codex_local_status", json!({"format": format}));
        assert_eq!(refused["isError"], true, "{format}: {refused}");
    }
    let cleanup = client.envelope("_codex_schema", json!({"name": "cleanup-registry"}));
    let offered = &cleanup["data"]["input"]["properties"];
    assert!(offered.get("dry_run").is_some() && offered.get("trust_clock").is_none(), "{offered}");
}

#[test]
fn an_explicit_default_is_the_same_input() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_11);
    let plain = json!({"task": "do it", "idempotency_key": "a"});
    let mut with_defaults = plain.clone();
    for (name, value) in [("isolation", json!("none")), ("carry_dirty", json!(false)), ("attempts", json!(1))]
    {
        with_defaults[name] = value;
    }
    let first = client.envelope("_codex_local_exec", plain);
    let second = client.envelope("_codex_local_exec", with_defaults);
    assert_eq!(second["data"]["task_id"], first["data"]["task_id"], "{second}");
    assert_eq!(second["meta"]["replayed"], true, "the same input");
    let accepted = stage.world.run(["local", "exec", "do it", "--carry-dirty=false", "--isolation", "none"]);
    assert_eq!(accepted.exit, Some(0), "{accepted:?}");
}

#[test]
fn a_malformed_verify_command_is_refused_with_both_forms() {
    let stage = quick_stage().variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let mut client = Client::connect(&stage, V2025_11);
    let started = |client: &mut Client, verify: Value| {
        client
            .envelope("_codex_local_exec", json!({"task": "do it", "idempotency_key": "v", "verify": verify}))
    };
    for (verify, problem) in [
        (json!(" "), "must not be blank"),
        (json!([]), "must not be an empty list"),
        (json!(5), "must be a string or a list of strings"),
        (json!({}), "must be a string or a list of strings"),
        (
            json!(["true && false"]),
            "the first word of a list is the program; give one string for a command line",
        ),
    ] {
        let refused = started(&mut client, verify);
        assert_eq!(refused["error"]["details"]["problems"][0]["problem"], problem, "{refused}");
        let message = refused["error"].to_string();
        assert!(message.contains("a command line for sh, or a list of strings"), "{refused}");
    }
}

#[test]
fn refused_values_are_named_with_what_is_permitted() {
    let stage = quick_stage().variable("MCP_DELEGATOR_MAX_MODE", "read-only");
    let mut client = Client::connect(&stage, V2025_11);
    for (tool, arguments, parts) in [
        ("_codex_local_exec", json!({"task": "x", "mode": "full"}), vec!["must be one of read-only"]),
        ("_codex_local_wait", json!({"task_ids": []}), vec!["task_ids", "must not be empty"]),
        ("_codex_local_wait", json!({"task_id": "dvc"}), vec!["\"dvc\" is not a task id: T-local-"]),
        ("_codex_local_wait", json!({"task_ids": ["../../x"]}), vec!["\"../../x\" is not a task id"]),
        ("_codex_local_status", json!({"state": "done"}), vec!["queued", "working", "completed", "timeout"]),
    ] {
        let refused = client.envelope(tool, arguments);
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(!message.contains("workspace-write"), "{message}");
    }
}

/// Follows the cursors of a tool's list and returns all items; each response fits the limit.
fn follow_cursors(client: &mut Client, tool: &str, list: &str) -> (usize, Vec<Value>) {
    let (mut items, mut arguments, mut pages) = (Vec::new(), json!({"format": "json"}), 0);
    loop {
        let response = client.call(tool, arguments.clone());
        assert!(text(&response).chars().count() <= MAX_CHARACTERS);
        let envelope = &response["structuredContent"];
        let page = envelope["data"][list].as_array().unwrap_or_else(|| panic!("{envelope}"));
        assert!(!page.is_empty(), "{envelope}");
        items.extend(page.iter().cloned());
        pages += 1;
        match envelope["meta"]["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = cursor.into(),
            None => return (pages, items),
        }
    }
}

#[test]
fn a_list_that_exceeds_the_size_limit_has_a_cursor_to_the_rest() {
    let stage = quick_stage();
    let environment = |at: u32| {
        let entry =
            json!({"name": "n".repeat(100), "repoUrl": "https://github.com/me/site", "stack": "node"});
        (format!("env_{at:03}"), entry)
    };
    let environments: serde_json::Map<String, Value> = (0..400).map(environment).collect();
    stage.world.write("home/.config/mcp-delegator/environments.json", &json!(environments).to_string());
    let mut client = client_with_all_tools(&stage);
    let names = |items: &[Value], key: &str| -> Vec<String> {
        items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    };
    let (pages, commands) = follow_cursors(&mut client, "_codex_manifest", "commands");
    let expected = names(&manifest(&stage), "name");
    assert_eq!((names(&commands, "name"), expected.len()), (expected, 74));
    assert!(pages > 1, "the manifest fits into one response");
    let (pages, found) = follow_cursors(&mut client, "_codex_cloud_list_environments", "environments");
    assert_eq!(names(&found, "id"), environments.keys().cloned().collect::<Vec<_>>());
    assert!(pages > 1, "the environments fit into one response");
    // In Markdown the cursor is in the text.
    let markdown = client.call("_codex_cloud_list_environments", json!({}));
    assert!(text(&markdown).contains("cursor "), "{}", text(&markdown));
    // The same in a pipe.
    let (mut found, mut args) =
        (Vec::new(), vec!["manifest".to_owned(), "--max-bytes".into(), "30000".into()]);
    loop {
        let envelope = stage.run_json(&args.iter().map(String::as_str).collect::<Vec<_>>());
        found.extend(names(envelope["data"]["commands"].as_array().unwrap(), "name"));
        match envelope["meta"]["cursor"].as_str() {
            Some(cursor) => args = [&args[..3], &["--cursor".to_owned(), cursor.to_owned()]].concat(),
            None => break,
        }
    }
    assert_eq!(found, names(&commands, "name"));
}

#[test]
fn every_schema_can_be_read_completely() {
    let stage = quick_stage();
    let mut client = client_with_all_tools(&stage);
    let (_, schemas) = follow_cursors(&mut client, "_codex_schema", "schemas");
    assert!(schemas.len() > 49, "{}", schemas.len());
    for schema in &schemas {
        for format in ["json", "markdown"] {
            let response = client.call("_codex_schema", json!({"name": schema["name"], "format": format}));
            assert_ne!(response["isError"], true, "{schema}: {response}");
            assert!(!text(&response).contains("W_TRUNCATION_001"), "{schema} as {format}");
        }
        let uri = format!("codex://schema/v3.6/{}/v1", schema["name"].as_str().unwrap());
        let resource = result(client.request("resources/read", json!({"uri": uri})))["contents"][0].clone();
        let is_command = schema["describes"].as_str().unwrap().starts_with("Input");
        let document: Value = serde_json::from_str(resource["text"].as_str().unwrap()).unwrap();
        let by_name = client.call("_codex_schema", json!({"name": schema["name"], "format": "markdown"}));
        assert!(text(&by_name).contains(&document.to_string()), "{uri}");
        assert_eq!(resource["mimeType"] == "application/json", document["$schema"].is_null(), "{uri}");
        assert!(!is_command || document["output"]["tool"].is_object(), "{uri}");
    }
}
