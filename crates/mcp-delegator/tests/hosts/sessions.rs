//! Sessions of both hosts: the same script of tool calls, and what the model was shown.
//!
//! The server is registered by hand, so that a session can choose the program and its arguments.

use delegator_testkit::fake_model::{
    FakeModel, Protocol, Reply, mcp_call, message, text_block, tool_search, tool_use,
};
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use super::{Call, claude_code, codex, stage_of};

/// The last message of every scripted model.
const FINAL_MESSAGE: &str = "Thank you.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    ClaudeCode,
    Codex,
}

/// The server that a host starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerChoice<'a> {
    pub(super) program: &'a str,
    pub(super) toolsets: &'a str,
}

/// What the model was shown.
#[derive(Debug)]
pub(super) struct Session {
    /// The definitions of our tools.
    pub(super) tools: Vec<Value>,
    /// The results of the calls, in order.
    pub(super) results: Vec<String>,
    /// The first request after the tools were offered.
    pub(super) first_request: Value,
}

impl Host {
    pub(super) const ALL: [Host; 2] = [Host::ClaudeCode, Host::Codex];

    /// Runs the turns of the model, each with its calls, in a host without a user.
    pub(super) fn session(self, server: ServerChoice<'_>, turns: Vec<Vec<Call>>) -> Session {
        let count = turns.iter().map(Vec::len).sum::<usize>();
        let session = match self {
            Host::ClaudeCode => claude_code_session(server, turns),
            Host::Codex => codex_session(server, turns),
        };
        assert_eq!(session.results.len(), count, "{self:?}: {:?}", session.results);
        session
    }
}

fn claude_code_session(server: ServerChoice<'_>, turns: Vec<Vec<Call>>) -> Session {
    let name = |call: &Call| claude_code::shown_tool_name(&call.tool);
    let turn = |calls: &Vec<Call>| {
        Reply::Output(calls.iter().map(|call| tool_use(&name(call), &call.input)).collect())
    };
    let mut replies: Vec<Reply> = turns.iter().map(turn).collect();
    replies.push(Reply::Output(vec![text_block(FINAL_MESSAGE)]));
    let model = FakeModel::start_with_protocol(Protocol::Messages, replies);
    let stage = claude_code::with_model(stage_of(server.program), &model);
    let entry = json!({"command": server.program, "args": ["serve", "--toolsets", server.toolsets]});
    stage.world.write("home/mcp.json", &json!({"mcpServers": {"mcp-delegator": entry}}).to_string());
    let config = stage.world.home().join("mcp.json").display().to_string();
    claude_code::run(&stage, &["--strict-mcp-config", "--mcp-config", &config]);

    let requests = model.requests();
    let tools = requests[0]["tools"].as_array().unwrap().iter();
    let is_ours = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("mcp__mcp-delegator__");
    let last = &requests.last().unwrap()["messages"];
    Session {
        tools: tools.filter(is_ours).cloned().collect(),
        results: claude_code::blocks(last, "tool_result")
            .map(|result| shown_text(&result["content"]))
            .collect(),
        first_request: requests[0].clone(),
    }
}

fn codex_session(server: ServerChoice<'_>, turns: Vec<Vec<Call>>) -> Session {
    let mut replies = vec![Reply::Output(vec![tool_search("delegate a coding task, wait for it, results")])];
    let call =
        |call: &Call| mcp_call(codex::SHOWN_SERVER_NAME, &format!("_codex_{}", call.tool), &call.input);
    replies.extend(turns.iter().map(|calls| Reply::Output(calls.iter().map(call).collect())));
    replies.push(Reply::Output(vec![message(FINAL_MESSAGE)]));
    let model = FakeModel::start(replies);
    let stage = codex::with_home(stage_of(server.program));
    write_codex_config(&stage, server, &model.codex_config());
    codex::run(&stage);

    let requests = model.requests();
    let last = requests.last().unwrap();
    let found = codex::input_items(last, "tool_search_output")[0]["tools"].as_array().unwrap();
    let is_ours = |group: &&Value| group["name"] == format!("mcp__{}", codex::SHOWN_SERVER_NAME);
    let groups = found.iter().filter(is_ours);
    Session {
        tools: groups.flat_map(|group| group["tools"].as_array().unwrap()).cloned().collect(),
        results: codex::input_items(last, "function_call_output")
            .into_iter()
            .map(|result| shown_text(&result["output"]))
            .collect(),
        first_request: requests[1].clone(),
    }
}

fn write_codex_config(stage: &Stage, server: ServerChoice<'_>, model_config: &str) {
    let entry = format!(
        "[mcp_servers.mcp-delegator]\ncommand = {:?}\nargs = [\"serve\", \"--toolsets\", {:?}]\n\
         default_tools_approval_mode = \"approve\"\n",
        server.program, server.toolsets
    );
    let config = format!("{model_config}{entry}{}", codex::variables_table(stage));
    stage.world.write("home/.codex/config.toml", &config);
}

/// The text of a tool result: a string, or a list of text blocks.
fn shown_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => {
            let texts = blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
