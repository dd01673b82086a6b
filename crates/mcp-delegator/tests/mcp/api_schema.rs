//! The OpenAPI document of the HTTP API is valid, and the server keeps to it whatever it is sent. Needs
//! `scripts/install-schemathesis`.

#![expect(clippy::disallowed_methods, reason = "tests run the checkers")]

use std::path::{Path, PathBuf};
use std::process::Command;

use delegator_testkit::generated::workspace;
use delegator_testkit::stage::{Stage, successful_turn};

use crate::PROGRAM;
use crate::http_client::HttpServer;

fn tool(name: &str) -> PathBuf {
    let path = workspace().join(".tools/schemathesis-1/bin").join(name);
    assert!(path.exists(), "{} is missing: run scripts/install-schemathesis", path.display());
    path
}

#[track_caller]
fn assert_passes(command: &mut Command, dir: &Path) {
    let output = command.current_dir(dir).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
}

/// The queue is paused, so that no submitted task starts.
#[test]
fn the_server_keeps_to_a_valid_document_whatever_it_is_sent() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let ended = stage.exec(&[]);
    stage.wait(&ended);
    stage.run_json(&["queue", "pause"]);
    stage.exec(&["--labels", "team=parser"]);
    let server = HttpServer::start(&stage);
    let dir = &stage.root();
    let document = server.request("GET", "/api/v1/openapi.json", &server.default_headers(), "");
    stage.world.write("openapi.json", &document.body);
    assert_passes(Command::new(tool("openapi-spec-validator")).arg("openapi.json"), dir);
    // What is read is an ended task; what acts gets any id. Several paths of the greatest length would be more than
    // the head of a request can have, which the HTTP library refuses without a body.
    let settings = format!(
        r#"[[operations]]
include-path = "/api/v1/tasks/{{id}}/diff"
parameters = {{ "path.id" = "{ended}", "query.path" = "src" }}
[[operations]]
include-method = "GET"
parameters = {{ "path.id" = "{ended}" }}
"#
    );
    stage.world.write("schemathesis.toml", &settings);
    let authorization = format!("Authorization: Bearer {}", server.token);
    let url = format!("http://127.0.0.1:{}/api/v1/openapi.json", server.port);
    let options = [
        // A stream has no end.
        ["--exclude-path", "/api/v1/stream"],
        // What the schema permits can be refused for its meaning, and null is an input that is not given.
        ["--exclude-checks", "positive_data_acceptance,negative_data_rejection"],
        ["--phases", "coverage,fuzzing"],
        ["--max-examples", "5"],
        ["--warnings", "off"],
    ];
    let flags = ["--generation-deterministic", "--no-shrink", "--continue-on-failure", "--no-color"];
    assert_passes(
        Command::new(tool("st")).args(["run", &url, "-H", &authorization]).args(options.concat()).args(flags),
        dir,
    );
}
