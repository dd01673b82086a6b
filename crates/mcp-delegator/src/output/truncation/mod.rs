//! Truncates the output of a command to the size limit of its reader.
//!
//! MCP clients count characters, pipes count bytes, and both count the final text: in its envelope, escaped and redacted. So
//! the output is measured in its rendered form; if it is too long, a plan decides what to truncate. Truncated parts are
//! marked, and a warning lists what was truncated and which input returns more.

pub mod apply;
pub mod plan;

use delegator_domain::warning_code::WarningCode;

use crate::output::outcome::{CommandOutput, Outcome, SizeUnit, Truncation, Warning};
use crate::output::presentation::{Presentation, RenderedOutput};
use crate::output::printer::Printer;
use crate::output::truncation::plan::{Sizes, TruncationPlan, UNLIMITED, plan};
use crate::spec::InputSchema;

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

/// The outcome and its rendered text, truncated if necessary.
pub fn truncate_to_fit(
    mut whole: Outcome,
    presentation: &Presentation,
    limit: SizeLimit<'_>,
) -> (Outcome, RenderedOutput) {
    // Over MCP long events are always shortened; `output` and the events resource of the task contain them completely.
    if limit.unit == SizeUnit::Characters {
        shorten_events(&mut whole.output);
    }
    let rendered = presentation.render(&whole);
    if !presentation.is_size_limited(&whole) {
        return (whole, rendered);
    }
    let original_size = limit.size(&rendered.body);
    if original_size <= limit.max_size {
        return (whole, rendered);
    }
    let truncation = Truncation { max_size: limit.max_size, unit: limit.unit, original_size };
    let (sizes, inputs) = (apply::sizes(&whole.output), whole.command.inputs());
    let truncated = |plan: TruncationPlan| {
        let mut outcome = whole.clone();
        apply::apply(&mut outcome.output, plan);
        let warning = warning_text(&inputs, sizes, plan, truncation);
        outcome.output.warnings.push(Warning::new(WarningCode::Truncated, warning));
        Outcome { truncated: Some(truncation), ..outcome }
    };
    let size = |plan: TruncationPlan| limit.size(&presentation.render_draft(&truncated(plan)).body);
    let outcome = truncated(plan(sizes, limit.max_size, &size));
    let rendered = presentation.render(&outcome);
    (outcome, rendered)
}

fn shorten_events(output: &mut CommandOutput) {
    apply::apply(output, TruncationPlan { shorten_events: true, ..TruncationPlan::NONE });
}

/// What was truncated, and which input returns more or less.
fn warning_text(inputs: &InputSchema, sizes: Sizes, plan: TruncationPlan, truncation: Truncation) -> String {
    let unit = match truncation.unit {
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
    let Truncation { max_size, original_size, .. } = truncation;
    let hints = truncation_hints(inputs, plan.max_events < sizes.event_count, truncation.unit);
    format!("The output had {original_size} {unit} and was truncated to {max_size}{names}.{hints}")
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
    match hints.is_empty() {
        true => String::new(),
        false => format!(" {}.", hints.join(", ")),
    }
}

#[cfg(test)]
mod tests;
