//! The lines that we send, without a line end.

use serde_json::json;

use crate::json::Text;
use crate::json::write::{Object, line};

pub fn user_message(text: &str) -> Vec<u8> {
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
    line("user", |line| {
        line.value("message", &message);
        line.raw("parent_tool_use_id", "null");
        line.plain("session_id", "");
    })
}

/// Ends the turn; its commands are killed.
pub fn interrupt(request_id: &str) -> Vec<u8> {
    line("control_request", |line| {
        line.plain("request_id", request_id);
        line.object("request", |request| request.plain("subtype", "interrupt"));
    })
}

/// Permits a tool. `input` is the input of the request, raw JSON.
pub fn allow_tool(request_id: &Text<'_>, input: &str) -> Vec<u8> {
    success(request_id, |response| {
        response.plain("behavior", "allow");
        response.raw("updatedInput", input);
    })
}

/// Answers the questions of a request. `answers` are pairs of a question and its answer; the answers of a
/// question with several are separated by commas.
pub fn answer_questions<'t>(
    request_id: &Text<'_>,
    input: &str,
    answers: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Vec<u8> {
    success(request_id, |response| {
        response.plain("behavior", "allow");
        response.object("updatedInput", |updated| {
            let input = crate::json::Object::read(input);
            for (key, value) in input.members().filter(|(key, _)| *key != "answers") {
                if let Some(json) = value.raw() {
                    updated.raw(&Text::json(key).resolve(), json);
                }
            }
            updated.object("answers", |object| {
                for (question, answer) in answers {
                    object.plain(question, answer);
                }
            });
        });
    })
}

/// Refuses a tool; the agent sees the message and goes on.
pub fn deny_tool(request_id: &Text<'_>, message: &str) -> Vec<u8> {
    success(request_id, |response| {
        response.plain("behavior", "deny");
        response.plain("message", message);
    })
}

pub fn refuse_request(request_id: &Text<'_>, error: &str) -> Vec<u8> {
    control_response(request_id, "error", |response| response.plain("error", error))
}

fn success(request_id: &Text<'_>, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    control_response(request_id, "success", |response| response.object("response", write))
}

fn control_response(request_id: &Text<'_>, subtype: &str, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    line("control_response", |line| {
        line.object("response", |response| {
            response.plain("subtype", subtype);
            response.text("request_id", request_id);
            write(response);
        });
    })
}
