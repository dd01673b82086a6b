//! The data of an answer. It stays typed until an envelope serialises it or a document describes it.

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::output::data::batch::BatchResult;
use crate::output::documents::document::Document;
use crate::output::fields;
use crate::output::truncation::apply;
use crate::output::truncation::plan::{Sizes, TruncationPlan};

pub trait CommandData: SerializedData + Debug + Send + Sync + 'static {
    fn document(&self) -> Document {
        Document::from_value(&self.to_json())
    }

    /// Truncates the parts that have limits of their own, and returns the sizes that they had. All other
    /// lists and texts are truncated in the JSON and in the document.
    fn shrink(&mut self, _plan: TruncationPlan) -> Sizes {
        Sizes::default()
    }

    /// Leads to the items that are not listed, for data with several lists. `is_selected` tells which fields
    /// the caller reads.
    fn next_cursor(&self, _is_selected: &dyn Fn(&str) -> bool) -> Option<String> {
        None
    }

    fn task(&self) -> Option<TaskState<'_>> {
        None
    }
}

/// Every type of command data can be serialised and copied.
pub trait SerializedData {
    fn to_json(&self) -> Value;
    fn to_shared(&self) -> Arc<dyn CommandData>;
}

impl<T: CommandData + Serialize + Clone> SerializedData for T {
    fn to_json(&self) -> Value {
        json!(self)
    }

    fn to_shared(&self) -> Arc<dyn CommandData> {
        Arc::new(self.clone())
    }
}

#[derive(Debug, Clone, Copy)]
pub struct TaskState<'a> {
    pub task_id: &'a str,
    /// As callers see it.
    pub state: &'static str,
}

/// The data of one answer, how far it is truncated, and which fields of it the caller selected.
#[derive(Debug, Clone)]
pub struct Data {
    content: Arc<dyn CommandData>,
    plan: TruncationPlan,
    fields: Vec<String>,
    batch: Option<BatchResult>,
}

impl<T: CommandData> From<T> for Data {
    fn from(data: T) -> Data {
        Data { content: Arc::new(data), plan: TruncationPlan::NONE, fields: Vec::new(), batch: None }
    }
}

impl Data {
    pub fn to_json(&self) -> Value {
        let mut json = self.content.to_json();
        apply::truncate_data(&mut json, self.plan);
        if self.fields.is_empty() { json } else { fields::project(&json, &self.fields) }
    }

    /// For people and models, whichever fields are selected. `listed` is the length of a list that is one
    /// page.
    pub fn document(&self, listed: Option<usize>) -> Document {
        if self.plan.drop_all_data {
            return Document::default();
        }
        self.content.document().truncated(self.plan.other_bytes, listed)
    }

    pub fn select(&mut self, fields: &[String]) {
        self.fields = fields.to_vec();
    }

    pub fn batch(&self) -> Option<&BatchResult> {
        self.batch.as_ref()
    }

    pub fn with_batch(self, batch: BatchResult) -> Data {
        Data { batch: Some(batch), ..self }
    }

    /// Returns the sizes that the parts with limits of their own had.
    pub fn truncate(&mut self, plan: TruncationPlan) -> Sizes {
        if let Some(batch) = &mut self.batch {
            batch.truncate(if plan.drop_all_data { 0 } else { plan.other_bytes });
        }
        self.plan = plan;
        if Arc::get_mut(&mut self.content).is_none() {
            self.content = self.content.to_shared();
        }
        Arc::get_mut(&mut self.content).map(|content| content.shrink(plan)).unwrap_or_default()
    }

    pub fn next_cursor(&self) -> Option<String> {
        let is_selected = |name: &str| {
            self.fields.is_empty() || self.fields.iter().any(|path| path.split('.').next() == Some(name))
        };
        self.content.next_cursor(&is_selected)
    }

    pub fn task(&self) -> Option<TaskState<'_>> {
        self.content.task()
    }
}
