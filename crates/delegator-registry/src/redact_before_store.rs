//! Redacts every text that a caller or an agent chose before it is stored in the database.
//!
//! The formats of common credentials are always redacted; the engine adds the redactor of the process, and a
//! supervisor adds that of its task. Stored unchanged: ids, states and other values of our own, and
//! `working_dir` and `work_tree`, which are needed to run, find and restore a task. An idempotency key is
//! stored as a digest, because two redacted keys could be equal.

use std::sync::LazyLock;

use delegator_domain::question::{AnswerOption, Question};
use delegator_domain::redact::Redactor;
use delegator_domain::task::TaskEnd;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::task::{Finish, Idempotency, NewTask};

/// Applies all redactors; without one, the known credential formats are redacted.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    redactors: Vec<Redactor>,
}

impl Sink {
    pub(crate) fn of(redactor: Option<Redactor>) -> Sink {
        Sink { redactors: redactor.into_iter().collect() }
    }

    pub(crate) fn add(&mut self, redactor: Redactor) {
        self.redactors.push(redactor);
    }

    pub(crate) fn text(&self, text: &str) -> String {
        static FORMS: LazyLock<Redactor> = LazyLock::new(|| Redactor::builder().build());
        match self.redactors.as_slice() {
            [] => FORMS.redact_str(text).into_owned(),
            redactors => redactors
                .iter()
                .fold(text.to_owned(), |text, redactor| redactor.redact_str(&text).into_owned()),
        }
    }

    pub(crate) fn optional(&self, text: Option<&str>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    /// The beginning of a text. Redacted before it is truncated, because a truncated secret is not
    /// recognised.
    pub(crate) fn excerpt(&self, text: &str, max_chars: usize) -> String {
        self.text(text).chars().take(max_chars).collect()
    }

    pub(crate) fn question(&self, question: &Question) -> Question {
        let option = |option: &AnswerOption| AnswerOption {
            id: self.text(&option.id),
            label: self.text(&option.label),
            kind: option.kind,
        };
        Question {
            title: self.text(&question.title),
            detail: self.optional(question.detail.as_deref()),
            options: question.options.iter().map(option).collect(),
            ..*question
        }
    }

    /// Redacts every string in a value, keys included.
    fn json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.json(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (self.text(key), self.json(value))).collect()
            }
            other => other.clone(),
        }
    }

    pub(crate) fn task(&self, task: &NewTask) -> NewTask {
        let labels = task.labels.iter().map(|(key, value)| (self.text(key), self.text(value)));
        NewTask {
            agent: self.text(&task.agent),
            model: self.optional(task.model.as_deref()),
            title: self.text(&task.title),
            text: self.text(&task.text),
            labels: labels.collect(),
            input: self.json(&task.input),
            resumed_thread: self.optional(task.resumed_thread.as_deref()),
            ..task.clone()
        }
    }

    pub(crate) fn finish(&self, finish: &Finish) -> Finish {
        let end = match &finish.end {
            TaskEnd::Failed { kind, message, retry_at_ms } => {
                TaskEnd::Failed { kind: *kind, message: self.text(message), retry_at_ms: *retry_at_ms }
            }
            TaskEnd::Cancelled { reason } => TaskEnd::Cancelled { reason: self.optional(reason.as_deref()) },
            TaskEnd::Completed | TaskEnd::Timeout(_) => finish.end.clone(),
        };
        Finish { end, summary: self.optional(finish.summary.as_deref()), ..finish.clone() }
    }
}

impl Idempotency {
    pub fn stored_key(&self) -> String {
        let digest =
            Sha256::new_with_prefix("mcp-delegator idempotency key\0").chain_update(&self.key).finalize();
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{digits}")
    }
}
