//! Codex, which shows our tools only after a tool search, under the namespace `mcp__SERVER`.

use delegator_testkit::fake_model::{FakeModel, Reply, mcp_call, message, tool_search};
use delegator_testkit::program::{RunOutput, read_text};
use delegator_testkit::stage::Stage;
use serde_json::Value;

use super::{AGENT_ANSWER, events, installed, plan, run_host, server_variables, stage};

/// Our server name as the model sees it.
pub(super) const SHOWN_SERVER_NAME: &str = "mcp_delegator";

/// A stage with a home of Codex.
pub(super) fn with_home(stage: Stage) -> Stage {
    let codex_home = stage.world.home().join(".codex");
    stage.variable("CODEX_HOME", &codex_home.display().to_string())
}

/// The end of the server's entry in Codex's configuration: Codex passes only a few of its own variables to a server.
pub(super) fn variables_table(stage: &Stage) -> String {
    let variables =
        server_variables(stage).into_iter().map(|(name, value)| format!("{name} = \"{value}\"\n"));
    format!("[mcp_servers.mcp-delegator.env]\n{}", variables.collect::<String>())
}

/// Runs Codex without a user.
pub(super) fn run(stage: &Stage) -> RunOutput {
    let codex = installed("codex-0.166.0/node_modules/.bin/codex");
    let args = ["exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "How deep is the well?"];
    run_host(stage, &codex, &args)
}

fn configured_stage(model: &FakeModel, prefix: &str) -> Stage {
    let stage = with_home(stage());
    let codex_home = stage.world.home().join(".codex");
    // Register the server as a user would.
    stage.world.write("home/.codex/config.toml", &model.codex_config());
    // There is no user to approve calls; without approval Codex refuses calls that change something.
    assert_eq!(stage.run_json(&["setup", "codex", "--approve-tools"])["data"]["is_changed"], true);
    let mut config = read_text(&codex_home.join("config.toml"));
    config.push_str(&variables_table(&stage));
    config.push_str(&format!("MCP_DELEGATOR_TOOL_PREFIX = \"{prefix}\"\n"));
    stage.world.write("home/.codex/config.toml", &config);
    stage
}

/// The items of one type in the input of a model request.
pub(super) fn input_items<'a>(request: &'a Value, kind: &'a str) -> Vec<&'a Value> {
    request["input"].as_array().unwrap().iter().filter(|item| item["type"] == kind).collect()
}

fn assert_tools_are_used_with_prefix(prefix: &str) {
    let plan = plan();
    let names: Vec<String> = plan.iter().map(|call| format!("{prefix}{}", call.tool)).collect();
    let mut steps = vec![Reply::Output(vec![tool_search("delegate a coding task, wait for it, results")])];
    let calls = plan.iter().zip(&names);
    steps.extend(
        calls.map(|(call, name)| Reply::Output(vec![mcp_call(SHOWN_SERVER_NAME, name, &call.input)])),
    );
    steps.push(Reply::Output(vec![message("Thank you.")]));
    let model = FakeModel::start(steps);
    let stage = configured_stage(&model, prefix);
    let run = run(&stage);

    let events = events(&run);
    let completed: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "item.completed" && event["item"]["type"] == "mcp_tool_call")
        .map(|event| &event["item"])
        .collect();
    let called: Vec<&str> = completed.iter().filter_map(|item| item["tool"].as_str()).collect();
    assert_eq!(called, names, "{run:?}");
    assert!(completed.iter().all(|item| item["status"] == "completed"), "{completed:?}");

    let requests = model.requests();
    let last = requests.last().unwrap();
    let found = input_items(last, "tool_search_output")[0].to_string();
    assert!(found.contains(&format!("\"mcp__{SHOWN_SERVER_NAME}\"")), "{found}");
    for name in &names {
        assert!(found.contains(&format!("\"{name}\"")), "{name} is missing in {found}");
    }
    let results = input_items(last, "function_call_output");
    assert_eq!(results.len(), plan.len(), "{last}");
    assert!(
        !results[0].to_string().contains(AGENT_ANSWER) && results[2].to_string().contains(AGENT_ANSWER),
        "{results:?}"
    );
}

#[test]
fn codex_calls_the_tools_and_returns_results_to_its_model() {
    assert_tools_are_used_with_prefix("_codex_");
}

#[test]
fn codex_calls_tools_without_a_leading_underscore() {
    assert_tools_are_used_with_prefix("codex_");
}
