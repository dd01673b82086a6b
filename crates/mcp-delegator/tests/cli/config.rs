//! `config show` and configuration errors: source and precedence of values, error positions, redaction.

use delegator_testkit::generated::assert_up_to_date;
use delegator_testkit::program::World;
use delegator_testkit::stage::Stage;
use mcp_delegator::app::command_list::catalog;
use serde_json::{Value, json};

use crate::{PROGRAM, reference};

fn world() -> World {
    World::new(PROGRAM)
}

fn setting(world: &World, key: &str) -> Value {
    let run = world.run(["config", "show", key]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.json()["data"]["settings"][0].clone()
}

#[test]
fn config_show_reports_the_source_of_every_value() {
    let world = world()
        .config("max_concurrent = 7\nidle_timeout_sec = 60\n")
        .variable("MCP_DELEGATOR_IDLE_TIMEOUT_SEC", "90");
    let setting_json = setting(&world, "max_concurrent");
    assert_eq!((&setting_json["value"], &setting_json["source"]), (&json!(7), &json!("user_config")));
    assert!(setting_json["origin"].as_str().unwrap().ends_with("config.toml:1"), "{setting_json}");
    let setting_json = setting(&world, "idle_timeout_sec");
    assert_eq!(
        (&setting_json["value"], &setting_json["source"], &setting_json["origin"]),
        (&json!(90), &json!("environment"), &json!("MCP_DELEGATOR_IDLE_TIMEOUT_SEC"))
    );
    assert_eq!(setting(&world, "hard_timeout_sec")["source"], "default");
    let run = world.run(["config", "show", "envelope", "--envelope", "agent"]);
    assert_eq!(run.json()["data"]["settings"][0]["source"], "flag");
}

#[test]
fn a_configuration_error_has_line_column_and_nearest_key() {
    let run = world().config("max_concurent = 3\n[budget]\ntask_tokens = 'many'\n").run(["config", "show"]);
    assert_eq!(run.exit, Some(4));
    let envelope = run.json();
    assert_eq!(envelope["error"]["code"], "CONFIG_INVALID");
    let problems = envelope["meta"]["error_context"]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!((&problems[0]["line"], &problems[0]["column"]), (&json!(1), &json!(1)));
    assert_eq!(problems[0]["suggestion"], "Did you mean max_concurrent?");
    assert_eq!((&problems[1]["line"], &problems[1]["column"]), (&json!(3), &json!(15)));
    assert!(problems[0]["file"].as_str().unwrap().ends_with("config.toml"));
}

#[test]
fn a_configuration_error_repeats_the_value_and_states_what_to_change() {
    let details = |world: &World| {
        let run = world.run(["config", "show", "--envelope", "standard"]);
        assert_eq!(run.exit, Some(4), "{run:?}");
        run.document()["error"]["details"].clone()
    };
    let in_file = world().config("max_concurrent = 'zero'\n");
    let found = details(&in_file);
    assert_eq!((&found["field"], &found["value"]), (&json!("max_concurrent"), &json!("zero")), "{found}");
    let suggestion = found["suggestion"].as_str().unwrap();
    assert!(suggestion.starts_with("Set max_concurrent in /"), "{found}");
    assert!(suggestion.contains("config.toml to a whole number from 1 to "), "{found}");
    let in_variable = world().variable("MCP_DELEGATOR_MAX_CONCURRENT", "zero");
    let found = details(&in_variable);
    assert_eq!((&found["field"], &found["value"]), (&json!("max_concurrent"), &json!("zero")), "{found}");
    let suggestion = found["suggestion"].as_str().unwrap();
    assert!(
        suggestion.starts_with("Set MCP_DELEGATOR_MAX_CONCURRENT to a whole number from 1 to "),
        "{found}"
    );
    let mode = details(&world().config("max_mode = 'read-onyl'\n"));
    assert_eq!(
        (&mode["value"], &mode["suggestion"]),
        (&json!("read-onyl"), &json!("Did you mean read-only?"))
    );
    let number = details(&world().config("codex_bin = 5\n"));
    assert_eq!((&number["field"], &number["value"]), (&json!("codex_bin"), &json!(5)), "{number}");
    let unknown = details(&world().config("idle_timeot_sec = 5\n"));
    assert_eq!(unknown["value"], "idle_timeot_sec", "{unknown}");
    // Free text may be a secret in the wrong place.
    let secret = details(&world().config("tool_prefix = 'hunter2 hunter2'\n"));
    assert_eq!(secret["value"], Value::Null, "{secret}");
    assert!(!secret.to_string().contains("hunter2"), "{secret}");
    let human = in_file.run(["config", "show", "--format", "human"]);
    assert_eq!(human.stderr.matches("config.toml").count(), 1, "{human:?}");
}

#[test]
fn help_and_version_work_with_a_broken_configuration() {
    let world = world().config("]");
    for args in [vec!["help"], vec!["--version"], vec!["completions", "bash"], vec!["man"]] {
        assert_eq!(world.run(&args).exit, Some(0), "{args:?}");
    }
    assert_eq!(world.run(["manifest"]).exit, Some(4));
}

#[test]
fn config_show_lists_the_values_beside_the_problems_of_a_broken_configuration() {
    let world = world().config("idle_timeout_sec = 60\nmax_concurrent = 'zero'\n");
    let run = world.run(["config", "show", "--changed"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    let meta = run.json()["meta"].clone();
    let problem = &meta["error_context"]["problems"][0];
    assert_eq!((&problem["field"], &problem["line"]), (&json!("max_concurrent"), &json!(2)), "{meta}");
    assert!(problem["suggestion"].as_str().unwrap().contains("a whole number from 1 to"), "{meta}");
    let settings = meta["failure_data"]["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 1, "{meta}");
    assert_eq!((&settings[0]["key"], &settings[0]["value"]), (&json!("idle_timeout_sec"), &json!(60)));
}

#[test]
fn cancel_works_with_a_broken_configuration_and_warns() {
    let script = json!([{"wait_for_file": "never"}]);
    let stage = Stage::with_script(PROGRAM, script);
    let id = stage.exec(&[]);
    stage.world.write("home/.config/mcp-delegator/config.toml", "max_concurrent = 'zero'\n");
    for args in [&["cancel", &id, "--dry-run"][..], &["cancel", &id], &["cancel", "--all"]] {
        let run = stage.world.run(args);
        assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
        let warnings = run.json()["warnings"].to_string();
        assert!(warnings.contains("W_CONFIG_006") && warnings.contains("config.toml:1:"), "{warnings}");
    }
}

/// A client reads stdout as the protocol, whatever goes wrong.
#[test]
fn serve_prints_errors_on_stderr_only() {
    let broken = world().config("]");
    let valid = world();
    // A server starts with a broken configuration, because clients may look at tasks and end them.
    for args in [&["serve"][..], &["serve", "--format", "json"], &["serve", "--envelope", "standard"]] {
        let run = broken.run(args);
        assert!(run.exit == Some(0) && run.stdout.is_empty(), "{args:?}: {run:?}");
        assert!(run.stderr.contains("config.toml:1:1"), "{args:?}: {run:?}");
    }
    for args in [&["serve", "--bogus"][..], &["serve", "--toolsets", "nonsense", "--format", "json"]] {
        let run = valid.run(args);
        assert!(run.exit != Some(0) && run.stdout.is_empty() && !run.stderr.is_empty(), "{args:?}: {run:?}");
    }
}

#[test]
fn a_project_file_can_only_lower_limits() {
    let world = world();
    world.write("project/.mcp-delegator.toml", "hard_timeout_sec = 60\n");
    let setting_json = setting(&world, "hard_timeout_sec");
    assert_eq!((&setting_json["value"], &setting_json["source"]), (&json!(60), &json!("project")));
    world.write("project/.mcp-delegator.toml", "hard_timeout_sec = 80000\n");
    assert_eq!(setting(&world, "hard_timeout_sec")["value"], 1200);
    world.write("project/.mcp-delegator.toml", "codex_bin = '/tmp/evil'\n");
    assert_eq!(setting(&world, "codex_bin")["source"], "default");
}

#[test]
fn config_show_works_beside_a_broken_project_file_and_reports_its_problems() {
    let world = world().config("max_concurrent = 7\n");
    world.write(
        "project/.mcp-delegator.toml",
        "hard_timeout_sec = 60\ncodex_bin = '/tmp/evil'\nmax_depth =\n",
    );
    let run = world.run(["config", "show"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let envelope = run.json();
    let values = |key: &str| {
        let settings = envelope["data"]["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!((values("max_concurrent"), values("hard_timeout_sec")), (json!(7), json!(1200)));
    assert!(envelope["data"]["project_file"].as_str().unwrap().ends_with("/.mcp-delegator.toml"));
    let warnings: Vec<&str> = envelope["meta"]["warning_details"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|warning| warning["code"] == "W_CONFIG_004")
        .map(|warning| warning["message"].as_str().unwrap())
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(
        warnings[0].contains("/.mcp-delegator.toml:2:1: codex_bin: a project file may set only"),
        "{warnings:#?}"
    );
    assert!(warnings[1].contains("/.mcp-delegator.toml:3:12: not valid TOML"), "{warnings:#?}");
    // No task starts there.
    assert_eq!(world.run(["local", "exec", "x"]).exit, Some(4));
}

#[test]
fn a_configured_secret_is_redacted() {
    let world = world().variable("MCP_DELEGATOR_DATABASE_URL", "postgres://me:hunter2hunter2@db.example/x");
    let setting_json = setting(&world, "database_url");
    assert_eq!(setting_json["value"], "[REDACTED:config]");
    let run = world.run(["schema", "hunter2hunter2", "--format", "json", "--output", "x.json"]);
    assert_eq!(run.exit, Some(5));
}

#[test]
fn a_secret_in_the_url_file_is_redacted() {
    let world = world().config("database_url_file = '~/database-url'\n");
    world.write("home/database-url", "postgres://me:hunter2hunter2@db.example/x\n");
    assert!(setting(&world, "database_url_file")["value"].as_str().unwrap().ends_with("/database-url"));
    let run = world.run(["schema", "hunter2hunter2"]);
    assert!(run.exit == Some(5) && !run.stdout.contains("hunter2hunter2"), "{run:?}");
}

#[test]
fn an_unknown_setting_suggests_the_nearest() {
    let run = world().run(["config", "show", "max_mod"]);
    assert_eq!(run.exit, Some(5));
    assert_eq!(run.json()["error"]["suggestion"], "Did you mean max_mode?");
}

#[test]
fn config_show_changed_lists_only_changed_settings() {
    let run = world().config("max_concurrent = 7").run(["config", "show", "--changed"]);
    let settings = run.json()["data"]["settings"].clone();
    assert_eq!(settings.as_array().unwrap().len(), 1);
    assert_eq!(settings[0]["key"], "max_concurrent");
}

#[test]
fn the_configuration_reference_is_up_to_date() {
    assert_up_to_date("docs/configuration.md", &reference::configuration(catalog()));
}
