//! The bytes that a model reads to delegate one task: tool list, instructions and results.
//!
//! `DELEGATOR_PROGRAM=/path/to/mcp-delegator cargo nextest run -p mcp-delegator --test hosts bytes --no-capture` prints
//! the figures of another build.

#![expect(clippy::disallowed_methods, reason = "the program to measure is named by a variable")]

use serde_json::json;

use super::sessions::{Host, ServerChoice, Session};
use super::{Call, PROGRAM};

/// The size of what the model was shown.
fn shown_bytes(session: &Session) -> (usize, usize) {
    let tools = session.tools.iter().map(|tool| tool.to_string().len()).sum();
    (tools, instructions_bytes(session))
}

/// The length of our instructions in the request, from their first to their last words; 0 if they are not in it.
fn instructions_bytes(session: &Session) -> usize {
    let request = session.first_request.to_string();
    let Some(begin) = request.find("Delegates coding tasks to ") else { return 0 };
    let last = "Rarely needed inputs go into options.";
    request[begin..].find(last).map_or(0, |end| end + last.len())
}

#[test]
fn the_model_reads_few_bytes_to_delegate_a_task() {
    let program = std::env::var("DELEGATOR_PROGRAM").unwrap_or_else(|_| PROGRAM.to_owned());
    println!(
        "host, toolsets: tool list + instructions + exec + wait = bytes (results: bytes of that further call)"
    );
    for host in Host::ALL {
        for toolsets in ["local,registry", "local,cloud,registry"] {
            let call = |tool: &str, input| vec![Call { tool: tool.to_owned(), input }];
            let task = json!({"task": "How deep is the well?", "options": {"skip_git_repo_check": true}});
            let turns = vec![
                call("local_exec", task),
                call("local_wait", json!({"task_id": "T-the-task"})),
                call("local_results", json!({"task_id": "T-the-task"})),
            ];
            let session = host.session(ServerChoice { program: &program, toolsets }, turns);
            let (tools, instructions) = shown_bytes(&session);
            let sizes: Vec<usize> = session.results.iter().map(String::len).collect();
            let sum = tools + instructions + sizes[0] + sizes[1];
            println!(
                "{host:?}, {toolsets}: {tools} + {instructions} + {} + {} = {sum} (results: {})",
                sizes[0], sizes[1], sizes[2]
            );
            assert!(
                instructions > 0,
                "{host:?} does not pass the instructions on, or their words have changed"
            );
            assert!(sum < 14_100, "{sum} bytes");
        }
    }
}
