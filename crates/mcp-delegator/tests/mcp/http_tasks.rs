//! Tasks and the HTTP server: a process of a task is refused, whatever it presents.

use delegator_testkit::stage::Stage;
use serde_json::json;

use crate::PROGRAM;
use crate::http_client::{HttpServer, initialize_message};

/// A stage whose enclosed agent `helper` is this script. `request FILE` sends the request in a file, in an empty environment.
fn stage_with_helper(mechanism: &str) -> Stage {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let script = stage.root().join("bin/script");
    let helper =
        stage.write_program("bin/helper", &format!("#!/bin/sh\ncat > /dev/null\n. '{}'\n", script.display()));
    let config = format!(
        "enclosure = \"{mechanism}\"\n[agents.helper]\nprotocol = \"plain\"\ncommand = [\"{}\"]\n",
        helper.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage
}

/// The lines that the agent printed.
fn run_helper(stage: &Stage, script: &str) -> Vec<String> {
    stage.world.write("bin/script", script);
    let id = stage.exec(&["--agent", "helper", "--mode", "read-only"]);
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let log = stage.run_json(&["logs", &id]);
    log["data"]["stdout"].as_str().unwrap().lines().map(str::to_owned).collect()
}

fn request_of(server: &HttpServer, body: &str) -> String {
    let headers = server.default_headers();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

#[test]
fn a_process_of_a_task_is_refused_with_a_valid_token() {
    let stage = stage_with_helper("landlock");
    let server = HttpServer::start(&stage);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "_codex_local_exec", "arguments": {"task": "planted", "agent": "helper", "mode": "read-only"},
    }});
    stage.world.write("initialize", &request_of(&server, &initialize_message()));
    stage.world.write("call", &request_of(&server, &call.to_string()));
    let link = stage.run_json(&["dashboard", "--no-open"])["data"]["link"].as_str().unwrap().to_owned();
    let (_, query) = link.rsplit_once('/').unwrap();
    let own = format!("Host: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", server.port);
    stage.world.write("link", &format!("GET /{query} HTTP/1.1\r\n{own}"));
    let send = |file: &str, after: &str| {
        let file = stage.root().join(file);
        format!(
            "env -i /bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}; cat \"{}\" >&3; {after}'",
            server.port,
            file.display()
        )
    };
    let read_status = "head -n 1 <&3";
    let script = format!(
        "test -s '{token}' && echo 'has the token'\n{child}\n\
         (setsid {orphan} > \"$TMPDIR/orphan\" &)\nwhile [ ! -s \"$TMPDIR/orphan\" ]; do sleep 0.02; done; cat \"$TMPDIR/orphan\"\n\
         {closing}\n{stateless}\n{sign_in}\n",
        token = stage.world.home().join("state/http-token").display(),
        child = send("initialize", read_status),
        orphan = send("initialize", read_status),
        closing = send("call", "exec 3>&-"),
        stateless = send("call", read_status),
        sign_in = send("link", read_status),
    );
    let lines = run_helper(&stage, &script);
    assert_eq!(lines[0], "has the token");
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[1..].iter().all(|line| line.starts_with("HTTP/1.1 403 ")), "{lines:?}");
    let tasks = std::fs::read_dir(stage.world.home().join("state/tasks")).unwrap();
    assert_eq!(tasks.count(), 1, "a refused request submitted a task");
    assert_eq!(server.initialize().status, 200, "other clients are served");
    let host = ("Host".to_owned(), format!("127.0.0.1:{}", server.port));
    let signed_in = server.request("GET", &format!("/{query}"), &[host], "");
    assert_eq!(signed_in.status, 303, "the task did not use up the link: {signed_in:?}");
}

#[test]
fn state_and_token_are_hidden_where_the_enclosure_can_hide_files() {
    let stage = stage_with_helper("bubblewrap");
    let server = HttpServer::start(&stage);
    let (state, config) =
        (stage.world.home().join("state"), stage.world.home().join(".config/mcp-delegator"));
    let token = stage.root().join("other-token");
    let elsewhere = token.display().to_string();
    let mut command = stage.world.command(["serve", "--http", "127.0.0.1:0", "--token-file", &elsewhere]);
    let _other = HttpServer::start_with(command.stderr(std::process::Stdio::piped()), &stage);
    stage.world.write("database-url", "postgres://worker:secret@db/fleet");
    let url_file = stage.root().join("database-url").display().to_string();
    let stage = stage.variable("MCP_DELEGATOR_DATABASE_URL_FILE", &url_file);
    let script = format!(
        "ls -A '{state}' | wc -l; ls -A '{config}' | wc -l; cat '{token}' '{root}/database-url' | wc -c\n\
         touch '{state}/x' 2> /dev/null || echo read-only\ntest -d . && echo visible\n",
        state = state.display(),
        config = config.display(),
        token = token.display(),
        root = stage.root().display(),
    );
    let lines = run_helper(&stage, &script);
    assert_eq!(lines, ["0", "0", "0", "read-only", "visible"]);
    drop(server);
}
