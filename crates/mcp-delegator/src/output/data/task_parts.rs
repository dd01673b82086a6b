//! The parts of a task that have size limits of their own: the agent's output, its events and its final message.

use crate::output::data::failure::PartialResults;
use crate::output::data::task::{ResultSet, TaskReport, TaskResult, WaitedTask, WaitedTasks};
use crate::output::data::{events, final_message, output};
use crate::output::truncation::apply::{json_size, retain_first};
use crate::output::truncation::plan::{Sizes, TruncationPlan};

impl PartialResults {
    pub fn shrink(&mut self, plan: TruncationPlan) {
        self.last_output = output::shrink_last_output(&self.last_output, plan.output_bytes);
        events::truncate(&mut self.last_events, plan);
    }

    pub fn sizes(&self) -> Sizes {
        let (output_bytes, event_count) = (self.last_output.len(), self.last_events.len());
        Sizes { output_bytes, event_count, total_bytes: 0 }
    }
}

impl TaskReport {
    pub fn shrink(&mut self, plan: TruncationPlan) {
        let missing = &mut self.final_message_truncated;
        final_message::shrink(&mut self.final_message, missing, plan.priority_bytes);
        if let Some(verification) = &mut self.verification {
            verification.shrink(plan.output_bytes);
        }
        let context = self.metadata.error_context.as_mut();
        if let Some(partial) = context.and_then(|context| context.partial_results.as_mut()) {
            partial.shrink(plan);
        }
    }

    pub fn sizes(&self) -> Sizes {
        let context = self.metadata.error_context.as_ref();
        let partial = context.and_then(|context| context.partial_results.as_ref());
        partial.map_or_else(Sizes::default, PartialResults::sizes)
    }
}

impl TaskResult {
    pub fn shrink(&mut self, plan: TruncationPlan) {
        self.report.shrink(plan);
        self.output.shrink(plan.output_bytes);
    }

    pub fn sizes(&self) -> Sizes {
        let output_bytes = self.output.size();
        self.report.sizes().max(Sizes { output_bytes, ..Sizes::default() })
    }
}

impl ResultSet {
    pub fn shrink(&mut self, plan: TruncationPlan) {
        self.result.shrink(plan);
        self.events.shrink(&self.result.task_id, plan);
    }

    pub fn sizes(&self) -> Sizes {
        let event_count = self.events.items.as_ref().map_or(0, Vec::len);
        self.result.sizes().max(Sizes { event_count, ..Sizes::default() })
    }
}

impl WaitedTasks {
    pub fn shrink(&mut self, plan: TruncationPlan) {
        for task in &mut self.tasks {
            if let WaitedTask::Ended(ended) = task {
                ended.result.shrink(plan);
            }
        }
        retain_first(&mut self.tasks, plan.task_list_bytes, json_size);
    }

    pub fn sizes(&self) -> Sizes {
        let ended = self.tasks.iter().filter_map(|task| match task {
            WaitedTask::Ended(ended) => Some(ended.result.sizes()),
            WaitedTask::Unfinished(_) => None,
        });
        ended.fold(Sizes::default(), Sizes::max)
    }
}
