//! Codex exec events, with the names and the key order of Codex.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Runner, StepResult};
use crate::script::{PlanSteps, ThreadStarted, Usage};

/// The plan of a turn that has not ended.
#[derive(Debug)]
pub(super) struct OpenPlan {
    item: String,
    steps: Vec<String>,
    done: usize,
}

impl OpenPlan {
    fn details(&self) -> Value {
        let todo = |(index, text)| json!({"text": text, "completed": index < self.done});
        let items: Vec<Value> = self.steps.iter().enumerate().map(todo).collect();
        json!({"type": "todo_list", "items": items})
    }
}

/// The directory of `--cd DIR` or `-C DIR`; empty for the current directory.
pub(super) fn requested_directory(argv: &[OsString]) -> PathBuf {
    let requested = argv.windows(2).find(|pair| pair[0] == "--cd" || pair[0] == "-C");
    match requested {
        Some(pair) if pair[1] != "." => PathBuf::from(&pair[1]),
        _ => PathBuf::new(),
    }
}

impl Runner {
    /// The thread of `resume THREAD`.
    pub(super) fn requested_thread(&self) -> Option<String> {
        let mut args = self.argv.iter().skip(1).skip_while(|arg| *arg != "resume").skip(1);
        args.next().filter(|arg| *arg != "-").map(|arg| arg.to_string_lossy().into_owned())
    }

    pub(super) fn thread_started(&mut self, which: &ThreadStarted) -> StepResult {
        let requested = self.requested_thread().filter(|_| !which.new);
        let id = which.id.clone().or(requested).unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        self.event(&json!({"type": "thread.started", "thread_id": id}))
    }

    pub(super) fn turn_started(&mut self) -> StepResult {
        self.exit_code = 0;
        self.event(&json!({"type": "turn.started"}))
    }

    pub(super) fn message(&mut self, text: &str) -> StepResult {
        self.whole_item(json!({"type": "agent_message", "text": text}))
    }

    pub(super) fn reasoning(&mut self, text: &str) -> StepResult {
        self.whole_item(json!({"type": "reasoning", "text": text}))
    }

    pub(super) fn warning(&mut self, text: &str) -> StepResult {
        self.whole_item(json!({"type": "error", "message": text}))
    }

    pub(super) fn error(&mut self, text: &str) -> StepResult {
        self.event(&json!({"type": "error", "message": text}))
    }

    pub(super) fn plan(&mut self, plan: &PlanSteps) -> StepResult {
        let before = self.plan.take().map(|open| open.item);
        let phase = if before.is_some() { "item.updated" } else { "item.started" };
        let item = before.unwrap_or_else(|| self.new_item());
        self.show_plan(phase, OpenPlan { item, steps: plan.steps.clone(), done: plan.done })
    }

    pub(super) fn plan_done(&mut self, done: usize) -> StepResult {
        match self.plan.take() {
            Some(open) => self.show_plan("item.updated", OpenPlan { done, ..open }),
            None => Ok(()),
        }
    }

    fn show_plan(&mut self, phase: &str, plan: OpenPlan) -> StepResult {
        let shown = self.item(phase, &plan.item, plan.details());
        self.plan = Some(plan);
        shown
    }

    /// Codex completes its plan just before the end of the turn.
    fn close_plan(&mut self) -> StepResult {
        match self.plan.take() {
            Some(plan) => self.item("item.completed", &plan.item, plan.details()),
            None => Ok(()),
        }
    }

    pub(super) fn turn_completed(&mut self, usage: Usage) -> StepResult {
        self.close_plan()?;
        self.event(&json!({"type": "turn.completed", "usage": {
            "input_tokens": usage.input_tokens,
            "cached_input_tokens": usage.cached_input_tokens,
            "cache_write_input_tokens": usage.cache_write_input_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_output_tokens": usage.reasoning_output_tokens,
        }}))
    }

    pub(super) fn turn_failed(&mut self, text: &str) -> StepResult {
        self.exit_code = 1;
        self.close_plan()?;
        self.event(&json!({"type": "turn.failed", "error": {"message": text}}))
    }

    fn event(&mut self, event: &Value) -> StepResult {
        self.line(&event.to_string())
    }

    pub(super) fn new_item(&mut self) -> String {
        let id = format!("item_{}", self.next_item);
        self.next_item += 1;
        id
    }

    fn whole_item(&mut self, details: Value) -> StepResult {
        let id = self.new_item();
        self.item("item.completed", &id, details)
    }

    /// Writes an event about an item: its id first, then its details.
    pub(super) fn item(&mut self, phase: &str, id: &str, details: Value) -> StepResult {
        let mut item = json!({"id": id});
        if let (Value::Object(item), Value::Object(details)) = (&mut item, details) {
            item.extend(details);
        }
        self.event(&json!({"type": phase, "item": item}))
    }
}
