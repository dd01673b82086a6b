//! Claude Code, which shows our tools as `mcp__SERVER__TOOL`.

use delegator_testkit::fake_model::{FakeModel, Protocol, Reply, text_block, tool_use};
use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use super::{AGENT_ANSWER, events, installed, plan, run_host, stage};

pub(super) fn shown_tool_name(tool: &str) -> String {
    format!("mcp__mcp-delegator___codex_{tool}")
}

/// A stage in which Claude Code uses this model.
pub(super) fn with_model(stage: Stage, model: &FakeModel) -> Stage {
    stage.world.write("home/.claude/.claude.json", "{}");
    let claude_home = stage.world.home().join(".claude").display().to_string();
    [
        ("CLAUDE_CONFIG_DIR", claude_home.as_str()),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Offer all tools at once instead of a tool search.
        ("ENABLE_TOOL_SEARCH", "false"),
        ("ANTHROPIC_BASE_URL", &format!("http://127.0.0.1:{}", model.port)),
        ("ANTHROPIC_API_KEY", "not-checked"),
    ]
    .into_iter()
    .fold(stage, |stage, (name, value)| stage.variable(name, value))
}

/// Registers the server as a user would. The server inherits the environment of Claude Code.
fn register_server(stage: &Stage) {
    assert_eq!(stage.run_json(&["setup", "claude-code"])["data"]["is_changed"], true);
}

/// The content blocks of one type in a conversation.
pub(super) fn blocks<'a>(messages: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let contents =
        messages.as_array().into_iter().flatten().filter_map(|message| message["content"].as_array());
    contents.flatten().filter(move |block| block["type"] == kind)
}

/// Runs Claude Code without a user.
pub(super) fn run(stage: &Stage, more_args: &[&str]) -> RunOutput {
    run_without_permission(stage, &[&["--allowedTools", "mcp__mcp-delegator"], more_args].concat())
}

fn run_without_permission(stage: &Stage, more_args: &[&str]) -> RunOutput {
    let claude = installed("claude-code-2.1.325/node_modules/.bin/claude");
    let args = ["-p", "How deep is the well?", "--output-format", "stream-json", "--verbose"];
    run_host(stage, &claude, &[&args, more_args].concat())
}

#[test]
fn claude_code_calls_the_tools_and_returns_results_to_its_model() {
    let mut steps: Vec<Reply> = plan()
        .iter()
        .map(|call| Reply::Output(vec![tool_use(&shown_tool_name(&call.tool), &call.input)]))
        .collect();
    steps.push(Reply::Output(vec![text_block("Thank you.")]));
    let model = FakeModel::start_with_protocol(Protocol::Messages, steps);
    let stage = with_model(stage(), &model);
    register_server(&stage);
    let run = run(&stage, &[]);

    let events = events(&run);
    let server = &events.iter().find(|event| event["subtype"] == "init").unwrap()["mcp_servers"][0];
    assert_eq!(
        (&server["name"], &server["status"]),
        (&json!("mcp-delegator"), &json!("connected")),
        "{server}"
    );
    let requests = model.requests();
    let offered: Vec<&str> =
        requests[0]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let plan = plan();
    for call in &plan {
        assert!(
            offered.contains(&shown_tool_name(&call.tool).as_str()),
            "{} is missing in {offered:?}",
            call.tool
        );
    }

    let last = &requests.last().unwrap()["messages"];
    let called: Vec<&str> = blocks(last, "tool_use").filter_map(|block| block["name"].as_str()).collect();
    assert_eq!(called, plan.iter().map(|call| shown_tool_name(&call.tool)).collect::<Vec<_>>());
    let results: Vec<&Value> = blocks(last, "tool_result").collect();
    assert_eq!(results.len(), plan.len(), "{last}");
    assert!(results.iter().all(|result| result["is_error"] != true), "{results:?}");
    assert!(
        !results[0].to_string().contains(AGENT_ANSWER) && results[2].to_string().contains(AGENT_ANSWER),
        "{results:?}"
    );
    assert_eq!(events.last().unwrap()["result"], "Thank you.");
}

#[test]
fn setup_lets_claude_code_call_tools_without_a_user() {
    let call = &plan()[0];
    for (args, is_refused) in [(&[][..], true), (&["--approve-tools"], false)] {
        let steps = vec![
            Reply::Output(vec![tool_use(&shown_tool_name(&call.tool), &call.input)]),
            Reply::Output(vec![text_block("Thank you.")]),
        ];
        let model = FakeModel::start_with_protocol(Protocol::Messages, steps);
        let stage = with_model(stage(), &model);
        stage.run_json(&[&["setup", "claude-code"], args].concat());
        run_without_permission(&stage, &[]);
        let last = model.requests().last().unwrap()["messages"].clone();
        let result = blocks(&last, "tool_result").next().unwrap_or_else(|| panic!("{last}")).clone();
        assert_eq!(result["is_error"] == true, is_refused, "{result}");
        assert_eq!(result.to_string().contains("T-local-"), !is_refused, "{result}");
    }
}
