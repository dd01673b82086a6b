//! CLI flags, MCP tools and documentation are generated from one command spec; these tests check that they agree.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use delegator_domain::task::Mode;
use delegator_testkit::generated::{assert_up_to_date, workspace};
use mcp_delegator::app::command_list::{COMMANDS, catalog};
use mcp_delegator::commands;
use mcp_delegator::error::AppError;
use mcp_delegator::input::validation::ValidInput;
use mcp_delegator::input::{argv, tree, validation};
use mcp_delegator::spec::formats::Format;
use mcp_delegator::spec::input_schema::ModeSettings;
use mcp_delegator::spec::version::PROGRAM;
use mcp_delegator::spec::{
    self, CallOrigin, CommandSpec, Marker, Property, PropertyType, Surface, Toolset, tool_schema,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const DEFAULT_TOOLS: [&str; 15] = [
    "_codex_local_run",
    "_codex_local_exec",
    "_codex_local_resume",
    "_codex_local_status",
    "_codex_local_results",
    "_codex_local_wait",
    "_codex_local_cancel",
    "_codex_cloud_submit",
    "_codex_cloud_status",
    "_codex_cloud_results",
    "_codex_cloud_wait",
    "_codex_cloud_cancel",
    "_codex_cloud_list_environments",
    "_codex_cloud_github_setup",
    "_codex_cleanup_registry",
];

/// The tool as a server with the default configuration lists it.
fn default_definition(spec: &CommandSpec) -> Value {
    let settings = tool_schema::ToolListSettings {
        prefix: "_codex_".to_owned(),
        default_format: Format::Markdown,
        modes: ModeSettings { max: Mode::WorkspaceWrite, default: Mode::ReadOnly },
        agents: Vec::new(),
    };
    tool_schema::tool_definition(spec, &settings)
}

fn default_specs() -> Vec<&'static CommandSpec> {
    let default = [Toolset::Local, Toolset::Cloud, Toolset::Registry];
    catalog().iter().filter(|spec| default.contains(&spec.toolset)).collect()
}

#[test]
fn the_default_toolsets_are_the_fifteen_tools() {
    let names: BTreeSet<String> = default_specs().iter().map(|spec| spec.tool_name("_codex_")).collect();
    assert_eq!(names, DEFAULT_TOOLS.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn command_paths_are_unique_and_every_group_has_a_heading() {
    let paths: BTreeSet<_> = catalog().iter().map(|spec| spec.path).collect();
    assert_eq!(paths.len(), catalog().0.len());
    let is_in_group = |spec: &&CommandSpec| spec.path.len() > 1 && catalog().find(&spec.path[..1]).is_none();
    for spec in catalog().iter().filter(is_in_group) {
        assert!(!spec::catalog::group_about(&spec.path[..1]).is_empty(), "{:?}", spec.path);
    }
}

#[test]
fn suggestions_of_input_checks_name_inputs_instead_of_flags() {
    let served = catalog().iter().filter(|spec| spec.toolset != Toolset::Hidden);
    for spec in served {
        let required = spec.inputs().properties.into_iter().filter(|input| input.required);
        let least: Map<String, Value> =
            required.map(|input| (input.name.clone(), input.placeholder())).collect();
        let input = (spec.input.parse)(&Value::Object(least)).unwrap();
        for problem in (spec.input.rules)(input.as_ref()).problems() {
            let suggestion = problem.suggestion.unwrap_or_default();
            assert!(!suggestion.contains("--"), "{:?}: {suggestion}", spec.path);
        }
    }
}

#[test]
fn clap_and_schema_have_the_same_names_choices_and_positions() {
    let mut root = tree::root(catalog());
    root.build();
    for spec in catalog().iter() {
        let mut command = &root;
        for word in spec.path {
            command = command.find_subcommand(word).unwrap();
        }
        let global: BTreeSet<_> = root.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let flags: BTreeSet<String> = command
            .get_arguments()
            .filter(|arg| arg.get_long().is_some() && !global.contains(arg.get_id().as_str()))
            // `--task-file` gives the input `task`, `--stdin` the input `text` and `--worktree` a value of `isolation`.
            .filter(|arg| !arg.get_id().as_str().contains('@'))
            // `--last` gives the input that names the task.
            .filter(|arg| arg.get_id() != tree::LAST)
            .map(|arg| arg.get_id().to_string())
            .collect();
        let inputs = spec.inputs();
        let properties: BTreeSet<String> = inputs.names().map(str::to_owned).collect();
        assert_eq!(flags, properties, "{}", spec.name());
        for property in &inputs.properties {
            let arg = command.get_arguments().find(|arg| arg.get_id() == property.name.as_str()).unwrap();
            assert_eq!(arg.get_long(), Some(property.flag().as_str()));
            let offered: Vec<String> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            match property.kind {
                PropertyType::Flag => assert_eq!(offered, ["true", "false"]),
                _ => assert_eq!(offered, property.choices(), "{} {}", spec.name(), property.name),
            }
            let by_position =
                command.get_positionals().any(|arg| arg.get_id() == &tree::positional_id(&property.name));
            assert_eq!(by_position, property.has(&Marker::Positional), "{} {}", spec.name(), property.name);
        }
    }
}

#[test]
fn tool_properties_are_the_flags_of_the_command() {
    for spec in catalog().iter().filter(|spec| spec.toolset != Toolset::Hidden) {
        let tool = default_definition(spec);
        let schema = &tool["inputSchema"];
        let mut offered: BTreeSet<String> =
            schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert!(offered.remove("format"), "{}", spec.name());
        let inputs = spec.inputs();
        let served = inputs.properties.iter().filter(|property| property.is_accepted_on(Surface::Server));
        if offered.remove("options") {
            let listed = schema["properties"]["options"]["description"].as_str().unwrap();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let tokens: BTreeSet<&str> = listed.split(|letter| !is_part(letter)).collect();
            let rare = inputs.properties.iter().filter(|property| property.has(&Marker::Advanced));
            offered.extend(rare.map(|p| p.name.clone()).filter(|name| tokens.contains(name.as_str())));
        }
        let served: BTreeSet<String> = served.map(|property| property.name.clone()).collect();
        assert_eq!(offered, served, "{}", spec.name());
    }
}

#[test]
fn schemas_use_only_widely_supported_keywords() {
    fn walk(value: &Value, at: &str) {
        match value {
            Value::Object(object) => {
                for key in object.keys() {
                    assert!(!key.starts_with("x-"), "{at}: our marker {key} leaks");
                }
                assert!(object.get("type").is_none_or(Value::is_string), "{at}: {value}");
                assert!(object.get("format").is_none_or(|format| !format.is_string()), "{at}: {value}");
                assert!(!object.contains_key("$ref") && !object.contains_key("anyOf"), "{at}: {value}");
                object.iter().for_each(|(key, inner)| walk(inner, &format!("{at}.{key}")));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, at)),
            _ => {}
        }
    }
    for spec in catalog().iter() {
        let schema = spec.inputs().to_value();
        walk(&schema, &spec.name());
        assert!(jsonschema::validator_for(&schema).is_ok(), "{}", spec.name());
        for property in spec.inputs().properties {
            assert!(!property.description.is_empty(), "{} {} has no description", spec.name(), property.name);
        }
    }
}

/// About 2,690 tokens of o200k: this list has 4.31 bytes per token. The contract permits 12,000 bytes.
const MAX_LIST_BYTES: usize = 11_600;

#[test]
fn the_tool_list_matches_its_snapshots_and_is_small() {
    let tools: Vec<Value> = default_specs().iter().map(|spec| default_definition(spec)).collect();
    let size = json!({"tools": tools}).to_string().len();
    assert!(size <= MAX_LIST_BYTES, "tools/list has {size} bytes");
    for tool in &tools {
        assert!(tool["description"].as_str().unwrap().len() <= 2000);
        let name = tool["name"].as_str().unwrap();
        let text = serde_json::to_string_pretty(tool).unwrap() + "\n";
        assert_up_to_date(&format!("crates/mcp-delegator/tests/snapshots/tools/{name}.json"), &text);
    }
}

/// The tool table in the README is generated from the tool snapshots.
#[test]
fn the_readme_lists_the_served_tools() {
    let folder = workspace().join("crates/mcp-delegator/tests/snapshots/tools");
    let snapshot = |spec: &CommandSpec| -> Value {
        let path = folder.join(format!("{}.json", spec.tool_name("_codex_")));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let is_default =
        |spec: &&CommandSpec| !matches!(spec.toolset, Toolset::Worktree | Toolset::Extra | Toolset::Hidden);
    let mut table = "| tool | what it does |\n|---|---|\n".to_owned();
    for spec in catalog().iter().filter(is_default) {
        let tool = snapshot(spec);
        let about = tool["description"].as_str().unwrap();
        table += &format!("| `{}` | {about} |\n", tool["name"].as_str().unwrap());
    }
    let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    let (before, rest) = readme.split_once(TABLE_BEGINS).unwrap();
    let (_, after) = rest.split_once(TABLE_ENDS).unwrap();
    assert_up_to_date("README.md", &format!("{before}{TABLE_BEGINS}{table}{TABLE_ENDS}{after}"));
}

const TABLE_BEGINS: &str = "<!-- tools: generated -->\n";
const TABLE_ENDS: &str = "<!-- tools: end -->\n";

#[test]
fn annotations_match_the_effects_of_each_command() {
    let of = |name: &str| {
        let spec = default_specs().into_iter().find(|spec| spec.tool_name("_codex_") == name).unwrap();
        tool_schema::annotations(spec)
    };
    for name in ["status", "wait", "results"].map(|verb| format!("_codex_local_{verb}")) {
        assert_eq!(of(&name)["readOnlyHint"], true, "{name}");
    }
    // Destructive and open world are the defaults of MCP, so they are not stated.
    for name in ["_codex_local_cancel", "_codex_cleanup_registry"] {
        assert_eq!(of(name), json!({"idempotentHint": true, "openWorldHint": false}), "{name}");
    }
    for name in ["_codex_local_run", "_codex_local_exec", "_codex_local_resume", "_codex_cloud_submit"] {
        assert_eq!(of(name), json!({"destructiveHint": false}), "{name}");
    }
}

#[test]
fn the_command_reference_is_up_to_date() {
    assert_up_to_date("docs/commands.md", &crate::reference::commands(catalog()));
}

/// The command line that is equivalent to this input object.
fn args_of(spec: &CommandSpec, object: &Map<String, Value>) -> Vec<OsString> {
    let mut args: Vec<String> = [PROGRAM].iter().chain(spec.path).map(|word| (*word).to_owned()).collect();
    let inputs = spec.inputs();
    for (name, value) in object {
        let flag = inputs.get(name).unwrap().flag();
        let mut push = |text: String| args.push(format!("--{flag}={text}"));
        match value {
            Value::String(text) => push(text.clone()),
            Value::Array(items) if items.len() > 1 => {
                items.iter().for_each(|item| push(item.as_str().unwrap().to_owned()))
            }
            other => push(other.to_string()),
        }
    }
    args.into_iter().map(OsString::from).collect()
}

fn arbitrary_text(property: &Property) -> BoxedStrategy<String> {
    match property.name.as_str() {
        "task_id" | "task_ids" => {
            "(T-(local|cloud)-)?[0-9a-hjkmnp-tv-z]{4,10}".prop_map(String::from).boxed()
        }
        "thread_id" => "[0-9a-z][0-9a-z-]{0,30}".boxed(),
        "model" | "models" | "agents" => "[a-z0-9@]([./]?[a-z0-9:@+-]){0,20}".boxed(),
        "profile" | "reasoning_effort" => "[a-z0-9]([.]?[a-z0-9-]){0,20}".boxed(),
        "env_allow_list" => "[A-Z_][A-Z0-9_]{0,12}".boxed(),
        "repo_url" | "repository" => "https://github\\.com/[a-z]{1,8}/[a-z.-]{1,8}".boxed(),
        "git_user_email" => "[a-z]{1,8}@[a-z]{1,8}".boxed(),
        "working_dir" => "/[ -~é]{0,20}".boxed(),
        // Anything a user might type, including leading hyphens, brackets and line breaks.
        _ => "[-=\\[{\"' a-zé\n]{0,6}[!-~é]{1,20}".boxed(),
    }
}

fn arbitrary_value(property: &Property) -> BoxedStrategy<Value> {
    let bound = |key: &str, default: i64| property.schema.get(key).and_then(Value::as_i64).unwrap_or(default);
    let choices: Vec<String> = property.choices().into_iter().map(str::to_owned).collect();
    let text =
        if choices.is_empty() { arbitrary_text(property) } else { prop::sample::select(choices).boxed() };
    match property.kind {
        PropertyType::Flag => any::<bool>().prop_map(Value::from).boxed(),
        PropertyType::Integer => {
            (bound("minimum", 0)..=bound("maximum", 1_000_000)).prop_map(Value::from).boxed()
        }
        PropertyType::Text => text.prop_map(Value::from).boxed(),
        PropertyType::List => prop::collection::vec(text, 0..4).prop_map(Value::from).boxed(),
        PropertyType::Pairs => {
            prop::collection::btree_map("[a-z=]{1,6}", "[ -~é]{0,9}", 0..4).prop_map(|map| json!(map)).boxed()
        }
        PropertyType::Object => {
            prop::collection::btree_map("[a-z]{1,6}", any::<i32>(), 0..3).prop_map(|map| json!(map)).boxed()
        }
    }
}

/// A command and a random input object for it, with any optional input left out.
fn arbitrary_call() -> impl Strategy<Value = (&'static CommandSpec, Map<String, Value>)> {
    prop::sample::select(catalog().0).prop_flat_map(|spec| {
        let inputs = spec.inputs().properties;
        let values: Vec<BoxedStrategy<Option<(String, Value)>>> = inputs
            .into_iter()
            .map(|property| {
                let name = property.name.clone();
                let value = arbitrary_value(&property).prop_map(move |value| (name.clone(), value));
                if property.required { value.prop_map(Some).boxed() } else { prop::option::of(value).boxed() }
            })
            .collect();
        values.prop_map(move |pairs| (spec, pairs.into_iter().flatten().collect::<Map<_, _>>()))
    })
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

fn validate(
    surface: Surface,
    spec: &'static CommandSpec,
    object: Map<String, Value>,
) -> Result<ValidInput, AppError> {
    let origin = CallOrigin { surface, current_dir: Path::new("/p") };
    validation::validate(spec, object, vec![], origin, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn args_and_json_give_equal_commands((spec, object) in arbitrary_call()) {
        let read = argv::parse(catalog(), &args_of(spec, &object)).unwrap();
        prop_assert_eq!(read.spec.map(|spec| spec.path), Some(spec.path));
        prop_assert_eq!(&read.problems, &vec![]);
        prop_assert_eq!(Value::Object(read.object.clone()), Value::Object(object.clone()));
        // The typed commands are equal as well, or both are refused.
        let by_args = validate(Surface::CommandLine, spec, read.object);
        let by_json = validate(Surface::CommandLine, spec, object);
        let command = COMMANDS.iter().find(|command| command.spec.path == spec.path).unwrap();
        let prepared = |input| (command.prepare)(input);
        prop_assert_eq!(
            format!("{:?}", by_args.clone().and_then(prepared)),
            format!("{:?}", by_json.clone().and_then(prepared))
        );
        prop_assert_eq!(by_args, by_json);
    }

    #[test]
    fn camel_case_and_options_give_the_same_command((spec, object) in arbitrary_call()) {
        let mut other = Map::new();
        let mut options = Map::new();
        for (name, value) in &object {
            let target = if name.len() % 2 == 0 { &mut other } else { &mut options };
            target.insert(camel_case(name), value.clone());
        }
        other.insert("options".into(), Value::Object(options));
        let plain = validate(Surface::CommandLine, spec, object);
        let mixed = validate(Surface::CommandLine, spec, other);
        match (plain, mixed) {
            (Ok(plain), Ok(mixed)) => prop_assert_eq!(plain, mixed),
            (Err(plain), Err(mixed)) => prop_assert_eq!(plain.code, mixed.code),
            (plain, mixed) => prop_assert!(false, "{plain:?} is not {mixed:?}"),
        }
    }

    #[test]
    fn no_command_line_panics_the_parser(words in prop::collection::vec("[-a-z=é@]{0,8}|manifest|config|show|local|exec|--task|--limit", 0..8)) {
        let argv: Vec<OsString> = [PROGRAM.to_owned()].into_iter().chain(words).map(OsString::from).collect();
        let _ = argv::parse(catalog(), &argv);
    }
}

#[test]
fn two_spellings_of_one_input_are_refused() {
    let object = json!({"task": "x", "workingDir": "/a", "working_dir": "/b"});
    let error = validate(Surface::Server, &commands::local::exec::SPEC, object.as_object().unwrap().clone())
        .unwrap_err();
    assert_eq!(error.problems.len(), 1);
    assert_eq!(error.problems[0].field, "working_dir");
}

#[test]
fn all_problems_are_reported_together_with_suggestions() {
    let object = json!({"taks": "x", "mode": "write", "idle_timeout_sec": 0, "labels": ["a"], "model": "-x"});
    let error = validate(Surface::Server, &commands::local::exec::SPEC, object.as_object().unwrap().clone())
        .unwrap_err();
    let fields: Vec<&str> = error.problems.iter().map(|problem| problem.field.as_str()).collect();
    for field in ["taks", "mode", "idle_timeout_sec", "labels", "model", "task"] {
        assert!(fields.contains(&field), "{field} is missing in {fields:?}");
    }
    assert_eq!(error.problems[0].suggestion.as_deref(), Some("Did you mean task?"));
}

#[test]
fn rules_between_inputs_are_checked() {
    let problems = |spec: &'static CommandSpec, object: Value| -> Vec<String> {
        let error = validate(Surface::Server, spec, object.as_object().unwrap().clone()).unwrap_err();
        error
            .problems
            .iter()
            .map(|problem| format!("{} {}", problem.field, problem.code.facts().agent))
            .collect()
    };
    let run = &commands::local::run::SPEC;
    assert_eq!(
        problems(run, json!({"task": "x", "mode": "workspace-write"})),
        ["confirm CONFIRMATION_REQUIRED"]
    );
    assert_eq!(problems(run, json!({"task": " \n"})), ["task INVALID_VALUE"]);
    assert_eq!(problems(run, json!({"task": "a\u{0}b"})), ["task INVALID_VALUE"]);
    assert_eq!(problems(run, json!({"task": "x".repeat(100_001)})), ["task INVALID_VALUE"]);
    assert_eq!(problems(run, json!({"task": "x", "working_dir": "relative"})), ["working_dir INVALID_VALUE"]);
    assert_eq!(
        problems(run, json!({"task": "x", "env_allow_list": ["A"]})),
        ["env_allow_list INVALID_VALUE"]
    );
    let resume = &commands::local::resume::SPEC;
    assert_eq!(problems(resume, json!({"task": "x"})), ["thread_id MISSING_ARGUMENT"]);
    assert_eq!(problems(resume, json!({"task": "x", "thread_id": "--last"})), ["thread_id INVALID_ID"]);
    assert_eq!(
        problems(resume, json!({"task": "x", "thread_id": "a", "task_id": "T-local-aaaa"})),
        ["task_id INVALID_VALUE"]
    );
    let wait = &commands::local::wait::SPEC;
    assert_eq!(problems(wait, json!({})), ["task_id MISSING_ARGUMENT"]);
    assert_eq!(problems(wait, json!({"task_id": "../../x"})), ["task_id INVALID_ID"]);
}

#[test]
fn on_the_command_line_only_a_mode_without_sandbox_needs_a_confirmation() {
    let refused = |spec: &'static CommandSpec, more: Value| {
        let mut object = json!({"task": "x", "thread_id": "a"});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if !spec.path.contains(&"resume") {
            object.as_object_mut().unwrap().shift_remove("thread_id");
        }
        let result = validate(Surface::CommandLine, spec, object.as_object().unwrap().clone());
        result.err().map(|error| error.code.facts().agent)
    };
    for spec in [&commands::local::run::SPEC, &commands::local::exec::SPEC, &commands::local::resume::SPEC] {
        assert_eq!(refused(spec, json!({"mode": "workspace-write"})), None);
        assert_eq!(refused(spec, json!({"mode": "workspace-write", "confirm": true})), None);
        let full = json!({"mode": "danger-full-access"});
        assert_eq!(refused(spec, full), Some("CONFIRMATION_REQUIRED"));
        assert_eq!(refused(spec, json!({"mode": "danger-full-access", "confirm": true})), None);
    }
}

#[test]
fn relative_paths_are_resolved_on_the_command_line_and_refused_elsewhere() {
    let object = json!({"task": "x", "workingDir": "web", "options": {"add_dirs": ["../lib"]}});
    let object = object.as_object().unwrap();
    let exec = &commands::local::exec::SPEC;
    let valid = validate(Surface::CommandLine, exec, object.clone()).unwrap();
    assert_eq!(
        (valid.get("working_dir"), valid.get("add_dirs")),
        (Some(&json!("/p/web")), Some(&json!(["/p/../lib"])))
    );
    let refused = validate(Surface::Server, exec, object.clone()).unwrap_err();
    assert_eq!(refused.problems[0].field, "working_dir", "{refused:?}");
}

#[test]
fn several_ids_by_position_are_a_list() {
    let parsed = |line: &str| {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let invocation = argv::parse(catalog(), &args).unwrap();
        assert_eq!(invocation.problems, vec![], "{line}");
        Value::Object(invocation.object)
    };
    assert_eq!(parsed("p local wait a"), json!({"task_id": "a"}));
    assert_eq!(parsed("p local wait a b a"), json!({"task_ids": ["a", "b", "a"]}));
    assert_eq!(parsed("p local wait a --until any b"), json!({"task_ids": ["a", "b"], "until": "any"}));
    assert_eq!(parsed("p local wait a --task-ids b"), json!({"task_ids": ["a", "b"]}));
    assert_eq!(parsed("p local wait --task-ids a"), json!({"task_ids": ["a"]}));
}

#[test]
fn the_longest_task_is_counted_in_characters() {
    let object = json!({"task": "𝕏".repeat(100_000)});
    let accepted =
        validate(Surface::Server, &commands::local::exec::SPEC, object.as_object().unwrap().clone());
    assert!(accepted.is_ok(), "{accepted:?}");
}

#[test]
fn frequently_used_inputs_are_properties_of_their_tools() {
    for (name, inputs) in [
        ("local_status", &["working_dir", "labels", "limit", "cursor"][..]),
        ("local_wait", &["max_output_bytes"]),
        ("local_results", &["max_output_bytes", "events_cursor"]),
        ("local_run", &["verify"]),
        ("local_exec", &["verify"]),
        ("local_resume", &["verify"]),
    ] {
        let spec = default_specs().into_iter().find(|spec| spec.snake_name() == name).unwrap();
        let tool = default_definition(spec);
        for input in inputs {
            assert!(tool["inputSchema"]["properties"][input].is_object(), "{name} {input}");
        }
    }
}

#[test]
fn a_default_in_a_schema_is_not_filled_in() {
    let object = json!({"task": "x"}).as_object().unwrap().clone();
    let exec = &commands::local::exec::SPEC;
    assert_eq!(exec.inputs().get("hard_timeout_sec").unwrap().default(), Some(&json!(1200)));
    let valid = validate(Surface::CommandLine, exec, object).unwrap();
    assert_eq!(valid.get("hard_timeout_sec"), None, "the configured limit would not count");
}
