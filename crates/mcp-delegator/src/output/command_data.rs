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

/// What a command returns.
pub trait CommandData: Serialize + Debug + Clone + Send + Sync + 'static {
    /// For people and models.
    fn document(&self) -> Document {
        Document::from_value(&json!(self))
    }

    /// Truncates the parts that have limits of their own. All other lists and texts are truncated in the JSON and in the
    /// document.
    fn shrink(&mut self, _plan: TruncationPlan) {}

    /// The sizes of the parts that have limits of their own.
    fn part_sizes(&self) -> Sizes {
        Sizes::default()
    }

    /// Leads to the items that are not listed, for data with several lists.
    fn next_cursor(&self) -> Option<String> {
        None
    }

    /// The task that the data is about, if it is one.
    fn task(&self) -> Option<TaskState<'_>> {
        None
    }
}

#[derive(Debug, Clone, Copy)]
pub struct TaskState<'a> {
    pub task_id: &'a str,
    /// As callers see it.
    pub state: &'static str,
}

/// [`CommandData`] of any type.
trait AnyData: Debug + Send + Sync {
    fn to_json(&self) -> Value;
    fn document(&self) -> Document;
    fn shrink(&mut self, plan: TruncationPlan);
    fn shrunk(&self, plan: TruncationPlan) -> Arc<dyn AnyData>;
    fn part_sizes(&self) -> Sizes;
    fn next_cursor(&self) -> Option<String>;
    fn task(&self) -> Option<TaskState<'_>>;
}

impl<T: CommandData> AnyData for T {
    fn to_json(&self) -> Value {
        json!(self)
    }

    fn document(&self) -> Document {
        CommandData::document(self)
    }

    fn shrink(&mut self, plan: TruncationPlan) {
        CommandData::shrink(self, plan);
    }

    fn shrunk(&self, plan: TruncationPlan) -> Arc<dyn AnyData> {
        let mut data = self.clone();
        CommandData::shrink(&mut data, plan);
        Arc::new(data)
    }

    fn part_sizes(&self) -> Sizes {
        CommandData::part_sizes(self)
    }

    fn next_cursor(&self) -> Option<String> {
        CommandData::next_cursor(self)
    }

    fn task(&self) -> Option<TaskState<'_>> {
        CommandData::task(self)
    }
}

/// The data of one answer, how far it is truncated, and which fields of it the caller selected.
#[derive(Debug, Clone)]
pub struct Data {
    content: Arc<dyn AnyData>,
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
    /// For programs.
    pub fn to_json(&self) -> Value {
        let mut json = self.content.to_json();
        apply::truncate_data(&mut json, self.plan);
        match self.fields.is_empty() {
            true => json,
            false => fields::project(&json, &self.fields),
        }
    }

    /// For people and models, whichever fields are selected. `listed` is the length of a list that is one page.
    pub fn document(&self, listed: Option<usize>) -> Document {
        match self.plan.drop_all_data {
            true => Document::default(),
            false => self.content.document().truncated(self.plan.other_bytes, listed),
        }
    }

    /// Reduces the data to these fields.
    pub fn select(&mut self, fields: &[String]) {
        self.fields = fields.to_vec();
    }

    /// The result for each item of a command that acts on several.
    pub fn batch(&self) -> Option<&BatchResult> {
        self.batch.as_ref()
    }

    pub fn with_batch(self, batch: BatchResult) -> Data {
        Data { batch: Some(batch), ..self }
    }

    pub fn truncate(&mut self, plan: TruncationPlan) {
        if let Some(batch) = &mut self.batch {
            batch.truncate(if plan.drop_all_data { 0 } else { plan.other_bytes });
        }
        match Arc::get_mut(&mut self.content) {
            Some(content) => content.shrink(plan),
            None => self.content = self.content.shrunk(plan),
        }
        self.plan = plan;
    }

    pub fn part_sizes(&self) -> Sizes {
        self.content.part_sizes()
    }

    pub fn next_cursor(&self) -> Option<String> {
        self.content.next_cursor()
    }

    pub fn task(&self) -> Option<TaskState<'_>> {
        self.content.task()
    }
}
