//! Requests with a method we know and parameters nobody could mean.
//!
//! To the library they are requests of an unknown kind, and it would say that there is no such method. What is wrong is
//! found out by reading the parameters once more as what they should have been.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CancelTaskParams, CompleteRequestParams, GetPromptRequestParams, GetTaskParams,
    InitializeRequestParams, ReadResourceRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// `None`: the method is really unknown, or nothing is wrong with the parameters.
pub fn params_error(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let why = match method {
        "initialize" => parse_error::<InitializeRequestParams>(params),
        "tools/call" => parse_error::<CallToolRequestParams>(params),
        "prompts/get" => parse_error::<GetPromptRequestParams>(params),
        "resources/read" => parse_error::<ReadResourceRequestParams>(params),
        "completion/complete" => parse_error::<CompleteRequestParams>(params),
        "tasks/get" => parse_error::<GetTaskParams>(params),
        "tasks/cancel" => parse_error::<CancelTaskParams>(params),
        _ => None,
    }?;
    Some(ErrorData::invalid_params(format!("The parameters of {method} cannot be read: {why}."), None))
}

fn parse_error<T: DeserializeOwned>(params: Option<&Value>) -> Option<String> {
    let empty = || Value::Object(serde_json::Map::new());
    serde_json::from_value::<T>(params.cloned().unwrap_or_else(empty)).err().map(|error| error.to_string())
}
