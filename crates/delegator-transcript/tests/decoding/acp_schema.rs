//! The official types of the protocol accept what we send, and read what the agents sent.

use agent_client_protocol_schema::v1;
use delegator_transcript::wire::acp::outgoing::{self, ClientInfo, ConfigValue};
use delegator_transcript::wire::json_rpc::RequestId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::acp::recordings;

/// Every member that we sent is a member of the type, with the same value.
fn assert_part_of(part: &Value, whole: &Value, line: &str) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (key, value) in part {
                // The types leave out what has its default value.
                let found = whole.get(key).unwrap_or(value);
                let is_default = [json!(false), json!([]), json!({}), json!(null)].contains(value);
                assert!(
                    is_default || whole.contains_key(key) || value.is_object(),
                    "{key} is unknown: {line}"
                );
                assert_part_of(value, found, line);
            }
        }
        (part, whole) => assert_eq!(part, whole, "{line}"),
    }
}

fn assert_read_as<T: DeserializeOwned + Serialize>(value: &Value, line: &str) {
    let typed: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_part_of(value, &serde_json::to_value(&typed).expect("JSON"), line);
}

/// Checks a message of ours.
fn assert_accepted(line: &[u8]) {
    let line = std::str::from_utf8(line).expect("UTF-8");
    let message: Value = serde_json::from_str(line).expect("JSON");
    let params = &message["params"];
    assert_eq!(message["jsonrpc"], "2.0");
    match message["method"].as_str() {
        Some("initialize") => assert_read_as::<v1::InitializeRequest>(params, line),
        Some("session/new") => assert_read_as::<v1::NewSessionRequest>(params, line),
        Some("session/load") => assert_read_as::<v1::LoadSessionRequest>(params, line),
        Some("session/resume") => assert_read_as::<v1::ResumeSessionRequest>(params, line),
        Some("session/set_mode") => assert_read_as::<v1::SetSessionModeRequest>(params, line),
        Some("session/set_config_option") => {
            assert_read_as::<v1::SetSessionConfigOptionRequest>(params, line)
        }
        // The extension has the parameters of a prompt.
        Some("session/prompt" | "_session/steering") => assert_read_as::<v1::PromptRequest>(params, line),
        Some("session/cancel") => assert_read_as::<v1::CancelNotification>(params, line),
        Some(method) => panic!("{method} is not checked"),
        None if message.get("error").is_some() => assert_read_as::<v1::Error>(&message["error"], line),
        None => assert_read_as::<v1::RequestPermissionResponse>(&message["result"], line),
    }
}

#[test]
fn the_official_types_accept_every_message_that_we_send() {
    let client = ClientInfo { name: "mcp-delegator", title: "mcp-delegator", version: "1.0.0" };
    let request = RequestId::Text("86b8821b".to_owned());
    let directories = ["/other".to_owned()];
    for line in [
        outgoing::initialize(0, client),
        outgoing::new_session(1, "/work", &[]),
        outgoing::new_session(1, "/work", &directories),
        outgoing::load_session(2, "s", "/work", &directories),
        outgoing::resume_session(3, "s", "/work", &directories),
        outgoing::set_mode(4, "s", "plan"),
        outgoing::set_config_option(5, "s", "model", ConfigValue::Choice("opus")),
        outgoing::set_config_option(6, "s", "auto_approve", ConfigValue::Switch(true)),
        outgoing::prompt(7, "s", "fix\n\"it\""),
        outgoing::steer(8, "s", "and this"),
        outgoing::cancel("s"),
        outgoing::select_option(&request, "allow"),
        outgoing::select_option(&RequestId::Number(0), "allow"),
        outgoing::cancel_request(&request),
        outgoing::refuse(&request, "fs/write_text_file"),
    ] {
        assert_accepted(&line);
    }
}

#[test]
fn the_model_of_gemini_is_set_by_a_method_that_the_types_do_not_have() {
    let line = String::from_utf8(outgoing::set_model(1, "s", "gemini-pro")).expect("UTF-8");
    let expected = r#"{"jsonrpc":"2.0","id":1,"method":"session/set_model","params":{"sessionId":"s","modelId":"gemini-pro"}}"#;
    assert_eq!(line, expected);
}

#[test]
fn the_official_types_read_the_recorded_updates_and_permission_requests() {
    let (mut updates, mut requests) = (0, 0);
    for (name, stream) in recordings() {
        for line in stream.lines().filter(|line| !line.starts_with(r#"{"sent":"#)) {
            let message: Value = serde_json::from_str(line).expect("JSON");
            let params = message["params"].clone();
            let read = match message["method"].as_str() {
                Some("session/update") => {
                    updates += 1;
                    serde_json::from_value::<v1::SessionNotification>(params).map(drop)
                }
                Some("session/request_permission") => {
                    requests += 1;
                    serde_json::from_value::<v1::RequestPermissionRequest>(params).map(drop)
                }
                _ => Ok(()),
            };
            read.unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
        }
    }
    assert!(updates > 600 && requests > 60, "{updates} {requests}");
}
