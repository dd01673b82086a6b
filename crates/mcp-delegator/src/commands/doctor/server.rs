//! Starts the MCP server as a client would, and makes the first calls of a client.
//!
//! The server is a child process with pipes. It gets the calls at once; its answers are read in a thread, so
//! that the check ends after a time limit whatever the server does.

#![expect(clippy::disallowed_methods, reason = "this check starts the server of this program")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use super::check::Check;
use crate::commands::prelude::*;
use crate::commands::setup::registration;
use crate::spec::version::PRODUCT_VERSION;

const NAME: &str = "server";
const LIMIT: Duration = Duration::from_secs(10);
const TOOLS_LIST: u64 = 2;

struct ToolList {
    tools: usize,
    bytes: usize,
}

pub fn check(context: &Context<'_>) -> Check {
    let Some(program) = context.process.program.as_deref() else {
        return Check::warning(NAME, "not tried: the path of this program is unknown", "");
    };
    let args = registration(context, &[], false).args;
    let started = Instant::now();
    match list_tools(program, &args) {
        Ok(ToolList { tools, bytes }) => {
            let ms = started.elapsed().as_millis();
            Check::ok(NAME, format!("answers in {ms} ms with {tools} tools ({bytes} bytes)"))
        }
        Err(problem) => {
            let suggestion = format!("Run it yourself: mcp-delegator {}", args.join(" "));
            Check::problem(NAME, ErrorCode::Internal, problem, suggestion)
        }
    }
}

fn list_tools(program: &Path, args: &[String]) -> Result<ToolList, String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("it could not be started: {error}"))?;
    let answer = exchange(&mut child);
    let _ = child.kill();
    let exit = child.wait();
    match (answer, exit) {
        (Ok(answer), _) => Ok(answer),
        (Err(problem), Ok(status)) if status.code().is_some() => Err(format!("{problem} ({status})")),
        (Err(problem), _) => Err(problem),
    }
}

fn exchange(child: &mut Child) -> Result<ToolList, String> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("it has no standard streams".to_owned());
    };
    let (sender, lines) = channel();
    let reader = std::thread::Builder::new().name("server-check".into());
    let reading = reader.spawn(move || {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let _ = lines.try_for_each(|line| sender.send(line));
    });
    reading.map_err(|error| error.to_string())?;
    let client = json!({"name": "mcp-delegator doctor", "version": PRODUCT_VERSION});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let calls = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": TOOLS_LIST, "method": "tools/list"}),
    ];
    let text: String = calls.iter().map(|call| format!("{call}\n")).collect();
    stdin.write_all(text.as_bytes()).map_err(|_| "it ended at once".to_owned())?;
    answer(&lines, LIMIT)
}

/// The answer to the last call. Standard input stays open meanwhile, or the server would end.
fn answer(lines: &Receiver<String>, limit: Duration) -> Result<ToolList, String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("it did not answer within {} s", limit.as_secs_f64()),
            RecvTimeoutError::Disconnected => "it ended without an answer".to_owned(),
        })?;
        let message: Value =
            serde_json::from_str(&line).map_err(|_| "it printed a line that is not JSON".to_owned())?;
        if message["id"] == TOOLS_LIST {
            let tools = message["result"]["tools"].as_array();
            let tools = tools.ok_or_else(|| format!("it answered with an error: {}", message["error"]))?;
            return Ok(ToolList { tools: tools.len(), bytes: message["result"]["tools"].to_string().len() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_slow_has_not_ended() {
        let (sender, lines) = channel();
        let problem = |lines| answer(lines, Duration::from_millis(1)).err();
        assert_eq!(problem(&lines).as_deref(), Some("it did not answer within 0.001 s"));
        drop(sender);
        assert_eq!(problem(&lines).as_deref(), Some("it ended without an answer"));
    }
}
