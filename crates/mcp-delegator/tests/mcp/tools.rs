//! Which tools a server offers, and how they are described.

use delegator_testkit::stage::Stage;
use mcp_delegator::app::command_list::catalog;
use mcp_delegator::spec::{Marker, Surface};
use serde_json::{Value, json};

use crate::client::{
    Client, ERAS, Era, STATELESS_VERSION, V2025_06, V2025_11, V2026_07, quick_stage, result, text,
};

const DEFAULT_TOOLS: [&str; 15] = [
    "_codex_local_run",
    "_codex_local_exec",
    "_codex_local_resume",
    "_codex_local_status",
    "_codex_local_wait",
    "_codex_local_results",
    "_codex_local_cancel",
    "_codex_cloud_submit",
    "_codex_cloud_status",
    "_codex_cloud_wait",
    "_codex_cloud_results",
    "_codex_cloud_cancel",
    "_codex_cloud_list_environments",
    "_codex_cloud_github_setup",
    "_codex_cleanup_registry",
];

fn list_with_args(stage: &Stage, args: &[&str]) -> Vec<Value> {
    let mut client = Client::connect_with(stage, V2025_06, args, json!({}));
    list_tools(&mut client)
}

fn list_tools(client: &mut Client) -> Vec<Value> {
    result(client.request("tools/list", json!({})))["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn both_protocol_eras_get_instructions_and_tools() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::start(&stage, &[]);
        let response = result(client.initialize(era));
        match era {
            Era::Handshake(version) => assert_eq!(response["protocolVersion"], version, "{response}"),
            Era::Stateless => {
                let versions = response["supportedVersions"].as_array().unwrap();
                assert!(versions.contains(&json!(STATELESS_VERSION)), "{response}");
                assert!(versions.contains(&json!("2025-06-18")), "{response}");
            }
        }
        for capability in ["tools", "resources", "prompts", "completions"] {
            assert!(response["capabilities"][capability].is_object(), "{capability}: {response}");
        }
        let instructions = response["instructions"].as_str().unwrap();
        assert!(instructions.len() <= 2_048 && instructions.contains("_codex_local_wait"), "{instructions}");
        assert_eq!(names(&list_tools(&mut client)), DEFAULT_TOOLS);
    }
}

#[test]
fn an_unknown_protocol_version_is_answered_with_a_known_one() {
    let stage = quick_stage();
    let mut client = Client::start(&stage, &[]);
    let response = result(client.initialize(Era::Handshake("2031-01-01")));
    assert_eq!(response["protocolVersion"], "2025-11-25", "{response}");
}

#[test]
fn initialize_does_not_need_the_registry() {
    // A file in place of the state directory makes every call fail, but not initialization.
    let stage = quick_stage();
    std::fs::write(stage.world.home().join("state"), "not a directory").unwrap();
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        assert_eq!(list_tools(&mut client).len(), 15);
        let failed = client.call("_codex_local_status", json!({}));
        assert_eq!(failed["isError"], true, "{failed}");
    }
}

/// About 2,690 tokens of o200k: this list has 4.31 bytes per token. The contract permits 12,000 bytes.
const MAX_LIST_BYTES: usize = 11_600;

#[test]
fn fifteen_tools_fit_into_the_size_limit() {
    let stage = quick_stage();
    for era in [V2025_11, V2026_07] {
        let mut client = Client::connect(&stage, era);
        let tools = list_tools(&mut client);
        let size = json!(tools).to_string().len();
        assert!(size <= MAX_LIST_BYTES, "{size} bytes");
        for tool in &tools {
            assert!(tool["description"].as_str().unwrap().len() <= 2_048, "{tool}");
            assert!(tool.get("outputSchema").is_none(), "{tool}");
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            for taboo in ["anyOf", "oneOf", "uint64", "\"null\"]"] {
                let mut others = schema.clone();
                others["properties"].as_object_mut().unwrap().remove("verify");
                assert!(!others.to_string().contains(taboo), "{taboo}: {tool}");
            }
            for (name, input) in schema["properties"].as_object().unwrap() {
                let forms = json!([{"type": "string"}, {"type": "array", "items": {"type": "string"}}]);
                let is_typed =
                    if name == "verify" { input["anyOf"] == forms } else { input["type"].is_string() };
                assert!(is_typed, "strict clients refuse {name} without a type: {tool}");
            }
        }
    }
}

/// Some clients remove schema keywords other than types, so defaults and ranges must be in the description.
#[test]
fn defaults_and_ranges_are_in_the_descriptions() {
    let tools = list_with_args(&quick_stage(), &[]);
    let text = |name: &str, property: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let description = tool["inputSchema"]["properties"][property]["description"].as_str();
        description.unwrap_or_else(|| panic!("{name} {property} has no description")).to_owned()
    };
    for spec in catalog().iter() {
        let name = spec.tool_name("_codex_");
        if !DEFAULT_TOOLS.contains(&name.as_str()) {
            continue;
        }
        assert_eq!(text(&name, "format"), "markdown (default)|json", "{name}");
        let inputs = spec.inputs();
        let offered = inputs.properties.iter().filter(|input| input.is_accepted_on(Surface::Server));
        for input in offered {
            let description = text(&name, if input.has(&Marker::Advanced) { "options" } else { &input.name });
            // Among the options, only the text after the key describes it.
            let description = description
                .split_once(&input.name)
                .map_or(description.as_str(), |(_, after)| after)
                .to_owned();
            let assert_contains = |what: &str| {
                assert!(description.contains(what), "{name} {}: {what}: {description}", input.name)
            };
            if let (Some(low), Some(high)) = (input.schema.get("minimum"), input.schema.get("maximum")) {
                assert_contains(&format!("{low}..{high}"));
            }
            match input.default() {
                Some(Value::Bool(value)) if !input.has(&Marker::Advanced) => {
                    assert_contains(&format!("default {value}"))
                }
                Some(Value::Bool(_)) => {
                    let listed = text(&name, "options");
                    let bools = listed.split("; ").find(|part| part.starts_with("false: "));
                    assert!(bools.is_some_and(|bools| bools.contains(&input.name)), "{name}: {listed}");
                }
                Some(Value::String(choice)) if input.has(&Marker::Advanced) => {
                    assert_contains(&format!("{choice} (default)"))
                }
                Some(Value::String(choice)) => assert_contains(&format!("default {choice}")),
                Some(number @ Value::Number(_)) => assert_contains(&format!("default {number}")),
                _ => {}
            }
        }
    }
    assert!(text("_codex_local_run", "task").contains("1..100000 chars"));
    let options = text("_codex_local_run", "options");
    for description in ["idempotency_key", "call_budget_sec (1..86400, default 50)"] {
        assert!(options.contains(description), "{description}: {options}");
    }
    let turned = list_with_args(&quick_stage(), &["--default-format", "json"]);
    let format = &turned[0]["inputSchema"]["properties"]["format"]["description"];
    assert_eq!(format, "markdown|json (default)");
}

#[test]
fn mode_offers_only_what_max_mode_permits() {
    let modes = |tools: &[Value], name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap().clone();
        tool["inputSchema"]["properties"]["mode"]["enum"].clone()
    };
    for (max_mode, expected) in [
        ("read-only", json!(["read-only"])),
        ("workspace-write", json!(["read-only", "workspace-write"])),
        ("danger-full-access", json!(["read-only", "workspace-write", "danger-full-access"])),
    ] {
        let stage = quick_stage().variable("MCP_DELEGATOR_MAX_MODE", max_mode);
        let tools = list_with_args(&stage, &[]);
        for name in ["_codex_local_exec", "_codex_local_resume"] {
            assert_eq!(modes(&tools, name), expected, "{name}");
        }
        let mut with_preview = expected.as_array().unwrap().clone();
        with_preview.push(json!("preview"));
        assert_eq!(modes(&tools, "_codex_local_run"), json!(with_preview));
        let manifest = stage.run_json(&["manifest"]);
        let commands = manifest["data"]["commands"].as_array().unwrap();
        let exec = commands.iter().find(|command| command["name"] == "local.exec").unwrap();
        assert_eq!(exec["mcp"]["inputSchema"]["properties"]["mode"]["enum"], expected, "{exec}");
    }
}

#[test]
fn the_configured_default_mode_is_stated_and_asked_about() {
    let stage = quick_stage().variable("MCP_DELEGATOR_DEFAULT_MODE", "workspace-write");
    let tools = list_with_args(&stage, &[]);
    for name in ["_codex_local_run", "_codex_local_exec", "_codex_local_resume"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let stated = &tool["inputSchema"]["properties"]["mode"]["description"];
        assert_eq!(stated, "default workspace-write", "{name}");
    }
    let exec = stage.run_json(&["schema", "_codex_local_exec"]);
    assert_eq!(exec["input"]["properties"]["mode"]["default"], "workspace-write", "{exec}");
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut client = Client::connect_with(&stage, V2025_06, &[], capabilities);
    let call = client.start_call("_codex_local_run", json!({"task": "mend it", "format": "json"}));
    let question = client.wait_for("the question", |message| message["method"] == "elicitation/create");
    assert!(
        question["params"]["message"].as_str().unwrap().contains("Mode: ` workspace-write `"),
        "{question}"
    );
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}));
    let result = client.response(call)["result"].clone();
    assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{result}");
}

/// A client that was configured while the file was valid must still be able to end its tasks.
#[test]
fn a_broken_configuration_refuses_only_new_tasks() {
    let stage = quick_stage();
    let id = stage.exec(&[]);
    stage.world.write("home/.config/mcp-delegator/config.toml", "max_depth = 'x'\n");
    let mut client = Client::connect(&stage, V2025_06);
    let mut call = |name: &str, arguments: Value| {
        let call = client.start_call(name, arguments);
        client.response(call)["result"]["structuredContent"].clone()
    };
    for (name, arguments) in [
        ("_codex_local_wait", json!({"task_id": id, "format": "json"})),
        ("_codex_local_status", json!({"format": "json"})),
        ("_codex_local_results", json!({"task_id": id, "format": "json"})),
        ("_codex_local_cancel", json!({"task_id": id, "format": "json"})),
        ("_codex_cloud_status", json!({"format": "json"})),
    ] {
        let answer = call(name, arguments);
        assert!(answer["meta"]["warnings"].to_string().contains("config.toml:1:13"), "{name}: {answer}");
    }
    let refused = call("_codex_local_exec", json!({"task": "x", "format": "json"}));
    assert_eq!(refused["error"]["details"]["code"], "CONFIG_INVALID", "{refused}");
    assert!(refused.to_string().contains("restart the MCP server"), "{refused}");
}

#[test]
fn verify_is_a_string_or_a_list() {
    let stage = quick_stage().variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let tools = list_with_args(&stage, &[]);
    let mut client = Client::connect(&stage, V2025_06);
    for verb in ["run", "exec", "resume"] {
        let name = format!("_codex_local_{verb}");
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let declared = &tool["inputSchema"]["properties"]["verify"];
        assert!(declared["description"].as_str().is_some_and(|text| text.contains("words")), "{declared}");
        for verify in [json!("true --flag"), json!(["true", "--flag"])] {
            assert!(jsonschema::is_valid(&tool["inputSchema"], &json!({"task": "x", "verify": verify})));
            if verb == "resume" {
                continue;
            }
            let accepted = client.envelope(&name, json!({"task": "x", "verify": verify}));
            let waited =
                client.envelope("_codex_local_wait", json!({"task_id": accepted["data"]["task_id"]}));
            assert_eq!(waited["data"]["verification"]["command"], verify, "{waited}");
        }
    }
}

#[test]
fn annotations_match_the_effects_of_each_tool() {
    let tools = list_with_args(&quick_stage(), &[]);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        // A hint that is not stated has the default of MCP.
        let defaults = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true});
        let hint = |key: &str| tool["annotations"].get(key).unwrap_or(&defaults[key]).as_bool();
        for (key, default) in defaults.as_object().unwrap() {
            assert_ne!(tool["annotations"].get(key), Some(default), "{tool} repeats a default");
        }
        assert!(tool["annotations"].as_object().is_some_and(|hints| !hints.is_empty()), "{tool}");
        let reads = ["status", "wait", "results", "list_environments", "github_setup"];
        let ends = name.ends_with("cancel") || name.ends_with("cleanup_registry");
        if reads.iter().any(|ending| name.ends_with(ending)) {
            assert_eq!(hint("readOnlyHint"), Some(true), "{tool}");
        } else if ends {
            assert_eq!((hint("destructiveHint"), hint("idempotentHint")), (Some(true), Some(true)), "{tool}");
        } else {
            assert_eq!((hint("destructiveHint"), hint("openWorldHint")), (Some(false), Some(true)), "{tool}");
            assert_ne!(hint("readOnlyHint"), Some(true), "{tool}");
        }
    }
}

#[test]
fn options_select_the_served_tools() {
    let stage = quick_stage();
    let local: Vec<&str> = DEFAULT_TOOLS.iter().copied().filter(|name| name.contains("_local_")).collect();
    assert_eq!(names(&list_with_args(&stage, &["--toolsets", "local"])), local);
    assert!(list_with_args(&stage, &["--toolsets", "local,cloud,registry,extra"]).len() > 15);
    let two = list_with_args(&stage, &["--tools", "local_status,_codex_local_wait"]);
    assert_eq!(names(&two), ["_codex_local_status", "_codex_local_wait"]);
    let without_run = list_with_args(&stage, &["--exclude-tools", "local_run"]);
    assert_eq!(names(&without_run), DEFAULT_TOOLS[1..]);
    let safe = list_with_args(&stage, &["--read-only"]);
    assert!(safe.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{safe:?}");
    assert!(names(&safe).contains(&"_codex_local_results"));
    let mut client = Client::connect_with(&stage, V2025_06, &["--read-only"], json!({}));
    let refused =
        client.request("tools/call", json!({"name": "_codex_local_exec", "arguments": {"task": "x"}}));
    assert_eq!(
        refused["error"]["code"], -32602,
        "a tool that is not offered must not be callable: {refused}"
    );
}

#[test]
fn environment_variables_select_the_served_tools() {
    let stage = quick_stage()
        .variable("MCP_DELEGATOR_TOOL_PREFIX", "codex_")
        .variable("MCP_DELEGATOR_TOOLSETS", "registry")
        .variable("MCP_DELEGATOR_DEFAULT_FORMAT", "json");
    let mut client = Client::connect(&stage, V2025_06);
    assert_eq!(names(&list_tools(&mut client)), ["codex_cleanup_registry"]);
    let result = client.call("codex_cleanup_registry", json!({"dry_run": true}));
    assert_eq!(result["structuredContent"]["tool"], "codex_cleanup_registry", "{result}");
    let stage = quick_stage().variable("MCP_DELEGATOR_READ_ONLY", "true");
    assert!(list_with_args(&stage, &[]).len() < 15);
}

#[test]
fn an_invalid_tool_selection_is_refused_with_empty_stdout() {
    let stage = quick_stage();
    for (args, expected) in [
        (vec!["--toolsets", "locl,nonsense"], vec!["locl", "nonsense", "local"]),
        (vec!["--tools", "local_stats"], vec!["local_status"]),
        (
            vec![
                "--toolsets",
                "local",
                "--read-only",
                "--exclude-tools",
                "local_status,local_wait,local_results",
            ],
            vec!["no tool to serve"],
        ),
    ] {
        let run = stage.world.run([&["serve"], args.as_slice()].concat());
        assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        for word in expected {
            assert!(run.stderr.contains(word), "{word}: {run:?}");
        }
    }
}

#[test]
fn a_prefix_renames_the_tools_everywhere() {
    let stage = quick_stage();
    let mut client = Client::connect_with(&stage, V2025_06, &["--tool-prefix", "codex_"], json!({}));
    let tools = list_tools(&mut client);
    assert!(names(&tools).iter().all(|name| name.starts_with("codex_")), "{tools:?}");
    let result = client.call("codex_local_exec", json!({"task": "do it"}));
    assert!(text(&result).contains("codex_local_wait") && !text(&result).contains("_codex_"), "{result}");
    let result = client.envelope("codex_local_status", json!({}));
    assert_eq!(result["tool"], "codex_local_status", "{result}");
}

#[test]
fn json_can_be_the_default_with_output_schemas() {
    let stage = quick_stage();
    let mut client =
        Client::connect_with(&stage, V2025_11, &["--default-format", "json", "--output-schemas"], json!({}));
    let tools = list_tools(&mut client);
    let status = tools.iter().find(|tool| tool["name"] == "_codex_local_status").unwrap();
    let schema = &status["outputSchema"];
    assert_eq!(schema["type"], "object", "{status}");
    let failing = client.call("_codex_local_status", json!({"limit": -1}));
    let fine = client.call("_codex_local_status", json!({}));
    // A client that knows the output schema rejects a result without structured content, even in Markdown.
    let markdown = client.call("_codex_local_status", json!({"format": "markdown"}));
    assert!(text(&markdown).contains("No task is running"), "{markdown}");
    for result in [failing, fine, markdown] {
        let valid = jsonschema::validator_for(schema).unwrap().is_valid(&result["structuredContent"]);
        assert!(valid, "{result}");
    }
    let refused = stage.world.run(["serve", "--output-schemas"]);
    assert_eq!(refused.exit, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--default-format json"), "{refused:?}");
}

#[test]
fn malformed_params_are_invalid_params_errors() {
    let stage = quick_stage();
    for era in [V2025_06, V2026_07] {
        let mut client = Client::connect(&stage, era);
        for (method, params) in [
            ("tools/call", json!({})),
            ("tools/call", json!({"name": 5})),
            ("tools/call", json!({"name": "_codex_local_status", "arguments": []})),
            ("tools/call", json!({"name": "_codex_local_status", "arguments": "{}"})),
            ("prompts/get", json!({})),
            ("resources/read", json!({"uri": 7})),
            ("completion/complete", json!({})),
        ] {
            let refused = client.request(method, params.clone());
            assert_eq!(refused["error"]["code"], -32602, "{method} {params}: {refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains(method), "{refused}");
        }
        assert_eq!(client.request("tools/nonsense", json!({}))["error"]["code"], -32601);
    }
}
