//! The error for a known method with invalid parameters.
//!
//! rmcp treats such a request as one with an unknown method and would respond "method not found". Parsing the
//! parameters again as the type of that method gives the real error.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CancelTaskParams, CompleteRequestParams, GetPromptRequestParams, GetTaskParams,
    InitializeRequestParams, ReadResourceRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// `None`: the method is unknown, or its parameters are valid.
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
    Some(ErrorData::invalid_params(format!("The parameters of {method} are invalid: {why}."), None))
}

fn parse_error<T: DeserializeOwned>(params: Option<&Value>) -> Option<String> {
    let empty = || Value::Object(serde_json::Map::new());
    serde_json::from_value::<T>(params.cloned().unwrap_or_else(empty)).err().map(|error| error.to_string())
}
