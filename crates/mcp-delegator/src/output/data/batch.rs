//! The result of a command that acts on several items: one entry per item.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::AppError;
use crate::output::documents::document::{Document, table};
use crate::output::truncation::apply::{count_fitting, json_size};

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BatchResult {
    pub total_operations: usize,
    pub successful: usize,
    pub failed: usize,
    /// Some items failed, and some succeeded.
    pub partial_success: bool,
    pub results: Vec<BatchItem>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BatchItem {
    /// What the command acted on, such as a task id.
    pub target: String,
    pub success: bool,
    pub result: Option<Map<String, Value>>,
    pub error: Option<ItemError>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ItemError {
    pub code: &'static str,
    pub kind: &'static str,
    pub message: String,
    /// The state of the task, if it is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl From<&AppError> for ItemError {
    fn from(error: &AppError) -> ItemError {
        let facts = error.code.facts();
        ItemError {
            code: facts.agent,
            kind: facts.kind.name(),
            message: error.message.clone(),
            state: error.context.get("state").and_then(Value::as_str).map(str::to_owned),
        }
    }
}

impl BatchResult {
    /// Retains the first items that fit into this many bytes.
    pub fn truncate(&mut self, max_bytes: usize) {
        let count = count_fitting(&self.results, max_bytes, json_size);
        self.results.truncate(count);
    }

    /// Appends the items that failed, with the reason of each.
    pub fn append_failures(&self, document: &mut Document) {
        let reasons = self.results.iter().filter_map(|item| Some((&item.target, item.error.as_ref()?)));
        let rows = reasons.map(|(target, error)| vec![target.clone(), error.message.clone()]).collect();
        if let Some(failed) = table(&["failed", "reason"], rows) {
            document.insert_before_next(failed);
        }
    }
}
