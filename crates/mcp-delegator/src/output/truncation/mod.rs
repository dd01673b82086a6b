//! Truncates the output of a command to the size limit of its reader.
//!
//! MCP clients count characters, pipes count bytes, and both count the final text: in its envelope, escaped
//! and redacted. So the output is measured in its rendered form; if it is too long, a plan decides what to
//! truncate. Truncated parts are marked, and a warning lists what was truncated and which input returns more.

pub mod apply;
pub mod plan;

use delegator_domain::warning_code::WarningCode;
use serde::Deserialize;
use serde_json::json;

use crate::error::{AppError, Problem};
use crate::output::data::failure::PartialResults;
use crate::output::outcome::{CommandOutput, Outcome, Warning};
use crate::output::presentation::{Presentation, RenderedOutput};
use crate::output::printer::Printer;
use crate::output::truncation::apply::{MIN_TEXT_BYTES, PARTIAL_RESULTS, json_size};
use crate::output::truncation::plan::{Sizes, TruncationPlan, UNLIMITED, plan};
use crate::output::values::TruncationMeta;
use crate::spec::InputSchema;

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    Bytes,
    Characters,
}

#[derive(Debug, Clone, Copy)]
pub struct SizeLimit<'a> {
    pub max_size: usize,
    pub unit: SizeUnit,
    pub printer: &'a Printer,
}

impl SizeLimit<'_> {
    fn size(&self, text: &str) -> usize {
        match self.unit {
            SizeUnit::Bytes => self.printer.redacted_line(text).len(),
            SizeUnit::Characters => self.printer.redact(text).chars().count(),
        }
    }
}

pub fn truncate_to_fit(
    mut whole: Outcome,
    presentation: &Presentation,
    limit: SizeLimit<'_>,
) -> (Outcome, RenderedOutput) {
    // Over MCP long events are always shortened; `output` and the events resource of the task contain them
    // completely.
    if limit.unit == SizeUnit::Characters {
        truncate(&mut whole.output, TruncationPlan { shorten_events: true, ..TruncationPlan::NONE });
    }
    let rendered = presentation.render(&whole);
    if !presentation.is_size_limited(&whole) {
        return (whole, rendered);
    }
    let original_size = limit.size(&rendered.body);
    if original_size <= limit.max_size {
        return (whole, rendered);
    }
    let facts = TruncationMeta {
        truncated: true,
        max_bytes: (limit.unit == SizeUnit::Bytes).then_some(limit.max_size),
        max_characters: (limit.unit == SizeUnit::Characters).then_some(limit.max_size),
        original_size,
    };
    let (sizes, inputs) = (sizes(&whole.output), whole.command.inputs());
    let truncated = |plan: TruncationPlan| {
        let mut outcome = whole.clone();
        truncate(&mut outcome.output, plan);
        let warning = warning_text(&inputs, sizes, plan, limit, original_size);
        outcome.output.warnings.push(Warning::new(WarningCode::Truncated, warning));
        Outcome { truncated: Some(facts), ..outcome }
    };
    let size = |plan: TruncationPlan| limit.size(&presentation.render_draft(&truncated(plan)).body);
    let outcome = truncated(plan(sizes, limit.max_size, &size));
    let rendered = presentation.render(&outcome);
    (outcome, rendered)
}

/// Truncates data and error. Returns the sizes that the parts with limits of their own had.
fn truncate(output: &mut CommandOutput, plan: TruncationPlan) -> Sizes {
    let in_data = output.data.as_mut().map(|data| data.truncate(plan)).unwrap_or_default();
    let in_error = output.completion.error_mut().map(|error| truncate_error(error, plan)).unwrap_or_default();
    output.update_cursors();
    in_data.max(in_error)
}

fn truncate_error(error: &mut AppError, plan: TruncationPlan) -> Sizes {
    let mut sizes = Sizes::default();
    let partial = error.context.get(PARTIAL_RESULTS).map(PartialResults::deserialize);
    if let Some(Ok(mut partial)) = partial {
        sizes = partial.shrink(plan);
        error.context.insert(PARTIAL_RESULTS.to_owned(), json!(partial));
    }
    apply::truncate_object(&mut error.context, plan);
    for text in [Some(&mut error.message), error.detail.as_mut()].into_iter().flatten() {
        apply::shorten(text, plan.other_bytes);
    }
    let count = apply::count_fitting(&error.problems, plan.other_bytes, problem_size).max(1);
    error.problems.truncate(count);
    sizes
}

fn sizes(output: &CommandOutput) -> Sizes {
    let in_data = output.data.as_ref().map_or(0, |data| json_size(&data.to_json()));
    let in_error = output.completion.error().map_or(0, |error| {
        let problems = error.problems.iter().map(problem_size).sum();
        let context = error.context.values().map(json_size).sum();
        let message = error.message.len() + error.detail.as_ref().map_or(0, String::len);
        message.max(problems).max(context)
    });
    let total_bytes = in_data.max(in_error);
    Sizes { total_bytes, ..truncate(&mut output.clone(), TruncationPlan::NONE) }
}

fn problem_size(problem: &Problem) -> usize {
    let facts =
        problem.value.as_ref().map_or(0, json_size) + problem.context.values().map(json_size).sum::<usize>();
    MIN_TEXT_BYTES + problem.field.len() + problem.problem.len() + problem.advice().len() + facts
}

/// What was truncated, and which input returns more or less.
fn warning_text(
    inputs: &InputSchema,
    sizes: Sizes,
    plan: TruncationPlan,
    limit: SizeLimit<'_>,
    original_size: usize,
) -> String {
    let unit = match limit.unit {
        SizeUnit::Bytes => "bytes",
        SizeUnit::Characters => "characters",
    };
    let parts = [
        ("output", plan.output_bytes < sizes.output_bytes),
        ("events", sizes.event_count > 0 && (plan.shorten_events || plan.max_events < sizes.event_count)),
        ("lists and texts", (plan.other_bytes, plan.priority_bytes) != (UNLIMITED, UNLIMITED)),
    ];
    let names: Vec<&str> =
        parts.into_iter().filter(|(_, is_truncated)| *is_truncated).map(|(part, _)| part).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let hints = truncation_hints(inputs, plan.max_events < sizes.event_count, limit.unit);
    format!("The output had {original_size} {unit} and was truncated to {}{names}.{hints}", limit.max_size)
}

/// Hints with the names the caller uses: inputs of a tool, or flags.
fn truncation_hints(inputs: &InputSchema, fewer_events: bool, unit: SizeUnit) -> String {
    let mut hints = Vec::new();
    let mut hint = |input: &str, effect: &str| {
        if let Some(property) = inputs.get(input) {
            let name = match unit {
                SizeUnit::Bytes => format!("--{}", property.flag()),
                SizeUnit::Characters => property.name.clone(),
            };
            hints.push(format!("{name} {effect}"));
        }
    };
    hint("limit", "returns fewer");
    if fewer_events {
        hint("events_cursor", "returns the events before these");
    }
    match unit {
        SizeUnit::Characters => hint("max_output_bytes", "returns more"),
        SizeUnit::Bytes => hints.extend(["--fields returns less".to_owned(), "--max-bytes more".to_owned()]),
    }
    if hints.is_empty() { String::new() } else { format!(" {}.", hints.join(", ")) }
}

#[cfg(test)]
mod tests;
