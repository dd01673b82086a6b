//! Resources and prompts.

use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, ERAS, V2025_06, V2025_11, V2026_07, quick_stage, result};

fn read(client: &mut Client, uri: &str) -> Value {
    result(client.request("resources/read", json!({"uri": uri})))["contents"][0].clone()
}

#[test]
fn schemas_and_tasks_can_be_listed_and_read() {
    let stage = quick_stage();
    let id = stage.exec(&[]);
    stage.wait(&id);
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        let listed = result(client.request("resources/list", json!({})))["resources"].clone();
        let uris: Vec<&str> =
            listed.as_array().unwrap().iter().map(|item| item["uri"].as_str().unwrap()).collect();
        let schemas: Vec<&&str> = uris.iter().filter(|uri| uri.starts_with("codex://schema/v3.6/")).collect();
        assert_eq!(schemas.len(), 6, "{uris:?}");
        // The template names the schemas of the commands.
        for uri in schemas.into_iter().chain([&"codex://schema/v3.6/local.status/v1"]) {
            let schema: Value =
                serde_json::from_str(read(&mut client, uri)["text"].as_str().unwrap()).unwrap();
            jsonschema::validator_for(&schema).unwrap();
        }
        let task = format!("codex://task/{id}");
        assert!(uris.contains(&task.as_str()), "{uris:?}");
        let report = read(&mut client, &task);
        assert_eq!((&report["uri"], &report["mimeType"]), (&json!(task), &json!("application/json")));
        let report: Value = serde_json::from_str(report["text"].as_str().unwrap()).unwrap();
        assert_eq!((&report["state"], &report["final_message"]), (&json!("completed"), &json!("All done.")));
        let events = read(&mut client, &format!("{task}/events"));
        let lines: Vec<Value> = events["text"]
            .as_str()
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.last().unwrap()["type"], "turn.completed", "{events}");
        let templates =
            result(client.request("resources/templates/list", json!({})))["resourceTemplates"].clone();
        let uri_templates: Vec<&str> =
            templates.as_array().unwrap().iter().map(|item| item["uriTemplate"].as_str().unwrap()).collect();
        for uri in [
            "codex://schema/v3.6/{name}/v1",
            "codex://task/{id}",
            "codex://task/{id}/events",
            "codex://task/{id}/diff",
            "codex://environment-template/{name}",
        ] {
            assert!(uri_templates.contains(&uri), "{uri_templates:?}");
        }
    }
}

#[test]
fn an_unknown_resource_is_an_error() {
    let stage = quick_stage();
    for (era, code) in [(V2025_06, -32002), (V2026_07, -32602)] {
        let mut client = Client::connect(&stage, era);
        for uri in [
            "codex://task/T-local-0000000000",
            "codex://task/../../etc/passwd",
            "codex://schema/v3.6/nothing/v1",
            "file:///etc/passwd",
        ] {
            let reply = client.request("resources/read", json!({"uri": uri}));
            let found = reply["error"]["code"].as_i64();
            assert!(found == Some(code) || found == Some(-32602), "{uri}: {reply}");
            assert!(!reply["error"]["message"].as_str().unwrap().is_empty(), "{reply}");
        }
    }
}

#[test]
fn resources_are_redacted() {
    let stage = delegator_testkit::stage::Stage::with_script(
        crate::PROGRAM,
        delegator_testkit::stage::successful_turn(&[json!({"message": "it is s3cr3t-value-4711"})]),
    )
    .variable("DEPLOY_TOKEN", "s3cr3t-value-4711");
    let id = stage.exec(&[]);
    stage.wait(&id);
    let mut client = Client::connect(&stage, V2025_06);
    for uri in [format!("codex://task/{id}"), format!("codex://task/{id}/events")] {
        let contents = read(&mut client, &uri);
        assert!(!contents.to_string().contains("s3cr3t-value"), "{contents}");
    }
}

#[test]
fn the_diff_of_a_task_is_a_resource_and_a_tool() {
    let steps = [json!({"write_file": {"path": "key.txt", "text": "s3cr3t-value-4711\nplain\n"}})];
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&steps)).variable("DEPLOY_TOKEN", "s3cr3t-value-4711");
    let git = stage.world.run_as(std::path::Path::new("/usr/bin/git"), ["init", "--quiet"]);
    assert_eq!(git.exit, Some(0), "{git:?}");
    let id = stage.exec(&["--mode", "workspace-write"]);
    stage.wait(&id);
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "extra"], json!({}));
    let resource = read(&mut client, &format!("codex://task/{id}/diff"));
    let text = resource["text"].as_str().unwrap();
    assert_eq!(resource["mimeType"], "text/x-diff");
    assert!(text.contains("+++ b/key.txt") && text.contains("+plain") && !text.contains("s3cr3t"), "{text}");
    for (format, expected) in [("json", "\"+plain\""), ("markdown", "+plain")] {
        let params = json!({"name": "_codex_diff", "arguments": {"task_id": id, "path": ["key.txt"], "format": format}});
        let answer = result(client.request("tools/call", params));
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected) && !text.contains("s3cr3t"), "{text}");
    }
}

#[test]
fn task_ids_are_completed() {
    let stage = quick_stage();
    let (first, second) = (stage.exec(&[]), stage.exec(&[]));
    let mut client = Client::connect(&stage, V2026_07);
    let mut complete = |reference: Value, name: &str, prefix: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": prefix}});
        result(client.request("completion/complete", params))["completion"]["values"].clone()
    };
    let template = json!({"type": "ref/resource", "uri": "codex://task/{id}"});
    let prompt = json!({"type": "ref/prompt", "name": "review_results"});
    for (reference, name) in [(template.clone(), "id"), (prompt, "task_id")] {
        let all = complete(reference.clone(), name, "T-local-");
        assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
        let prefix = &first[..first.len() - 1];
        assert!(!second.starts_with(prefix), "both ids match the prefix");
        assert_eq!(complete(reference, name, prefix), json!([first]));
    }
    let delegate = json!({"type": "ref/prompt", "name": "delegate"});
    assert_eq!(complete(delegate, "mode", "work"), json!(["workspace-write"]));
    assert_eq!(complete(template, "nothing", ""), json!([]));
    stage.wait(&first);
    stage.wait(&second);
}

#[test]
fn prompts_are_filled_in() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::connect_with(&stage, era, &["--tool-prefix", "c_"], json!({}));
        let prompts = result(client.request("prompts/list", json!({})))["prompts"].clone();
        let names: Vec<&str> =
            prompts.as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["delegate", "review_results"]);
        let arguments = json!({"task": "mend the roof", "working_dir": "/house"});
        let filled =
            result(client.request("prompts/get", json!({"name": "delegate", "arguments": arguments})));
        let message = filled["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(
            message.contains("mend the roof")
                && message.contains("/house")
                && message.contains(" c_local_exec"),
            "{message}"
        );
        let review = json!({"name": "review_results", "arguments": {"task_id": "T-1"}});
        let filled = result(client.request("prompts/get", review));
        assert!(filled.to_string().contains("T-1"), "{filled}");
        let wild = json!({"name": "delegate", "arguments": {"task": "x", "mode": "wild"}});
        for wrong in [json!({"name": "delegate"}), json!({"name": "nothing"}), wild] {
            let reply = client.request("prompts/get", wrong);
            assert_eq!(reply["error"]["code"], -32602, "{reply}");
        }
    }
}

#[test]
fn prompts_need_the_tools_they_name() {
    let stage = quick_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &["--read-only"], json!({}));
    let prompts = result(client.request("prompts/list", json!({})))["prompts"].clone();
    assert_eq!(prompts.as_array().unwrap().len(), 1, "{prompts}");
    let refused = client.request("prompts/get", json!({"name": "delegate", "arguments": {"task": "x"}}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn reading_the_report_resource_marks_the_result_read() {
    let stage = quick_stage();
    let id = stage.exec(&[]);
    let mut client = Client::connect(&stage, V2025_06);
    wait_until("it has ended", || {
        client.envelope("_codex_local_status", json!({}))["data"]["unread"]["task_ids"] == json!([id])
    });
    read(&mut client, &format!("codex://task/{id}"));
    let status = client.envelope("_codex_local_status", json!({}));
    assert!(status["data"].get("unread").is_none(), "{status}");
}

#[test]
fn schemas_are_listed_without_a_registry() {
    let stage = quick_stage();
    std::fs::write(stage.world.home().join("state"), "not a directory").unwrap();
    let mut client = Client::connect(&stage, V2026_07);
    let listed = result(client.request("resources/list", json!({})))["resources"].to_string();
    assert!(listed.contains("codex://schema/v3.6/error/v1"), "{listed}");
}

#[test]
fn an_unknown_cursor_is_refused() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let reply = client.request(method, json!({"cursor": "made up"}));
        assert_eq!(reply["error"]["code"], -32602, "{method}: {reply}");
    }
}

#[test]
fn an_item_with_two_ids_has_its_item_id_in_every_response() {
    let search =
        r#"{"type":"item.completed","item":{"id":"item_7","type":"web_search","id":"ws_1","query":"q"}}"#;
    let stage = Stage::with_script(PROGRAM, successful_turn(&[json!({"line": search})]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "local,extra"], json!({}));
    let resource = read(&mut client, &format!("codex://task/{id}/events"));
    let results = client.envelope("_codex_local_results", json!({"task_id": id, "include_events": true}));
    let normalized = client.envelope("_codex_events_normalize", json!({"source": id}));
    for response in [resource, results, normalized] {
        let text = response.to_string();
        assert!(text.contains("item_7") && !text.contains("ws_1"), "{text}");
    }
}
