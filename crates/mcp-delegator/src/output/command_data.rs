//! The data of an answer. It stays typed until an envelope serialises it or a document describes it.

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::output::data::batch::BatchResult;
use crate::output::documents::document::Document;
use crate::output::truncation::apply;
use crate::output::truncation::plan::TruncationPlan;

/// What a command returns.
pub trait CommandData: Serialize + Debug + Send + Sync + 'static {
    /// For people and models.
    fn document(&self) -> Document {
        Document::from_value(&json!(self))
    }
}

/// [`CommandData`] of any type.
trait AnyData: Debug + Send + Sync {
    fn to_json(&self) -> Value;
    fn document(&self) -> Document;
}

impl<T: CommandData> AnyData for T {
    fn to_json(&self) -> Value {
        json!(self)
    }

    fn document(&self) -> Document {
        CommandData::document(self)
    }
}

/// The data of one answer, and how far it is truncated.
#[derive(Debug, Clone)]
pub struct Data {
    content: Content,
    plan: TruncationPlan,
    batch: Option<BatchResult>,
}

#[derive(Debug, Clone)]
enum Content {
    Typed(Arc<dyn AnyData>),
    Json(Value),
}

impl<T: CommandData> From<T> for Data {
    fn from(data: T) -> Data {
        Data { content: Content::Typed(Arc::new(data)), plan: TruncationPlan::NONE, batch: None }
    }
}

impl Data {
    /// Data without a document of its own.
    pub fn json(data: impl Serialize) -> Data {
        Data { content: Content::Json(json!(data)), plan: TruncationPlan::NONE, batch: None }
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Json(data) => data.clone(),
            Content::Typed(data) => {
                let mut json = data.to_json();
                apply::truncate_data(&mut json, self.plan);
                json
            }
        }
    }

    /// For people and models. `describe` is for data without a type, `listed` the length of a list that is one page.
    pub fn document(&self, describe: fn(&Value) -> Document, listed: Option<usize>) -> Document {
        match &self.content {
            Content::Typed(_) if self.plan.drop_all_data => Document::default(),
            Content::Typed(data) => data.document().truncated(self.plan.other_bytes, listed),
            Content::Json(data) => describe(data),
        }
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
        match &mut self.content {
            Content::Typed(_) => self.plan = plan,
            Content::Json(data) => apply::truncate_data(data, plan),
        }
    }

    /// Data without a type of its own.
    pub fn json_mut(&mut self) -> Option<&mut Value> {
        match &mut self.content {
            Content::Typed(_) => None,
            Content::Json(data) => Some(data),
        }
    }
}
