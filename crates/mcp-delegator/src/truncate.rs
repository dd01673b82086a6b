//! The way of an answer into the room its reader has.
//!
//! Hosts count characters, pipes count bytes, and both count what really arrives: wrapped, escaped and cleaned of
//! secrets. So an answer is measured as it will be sent, and where it is too long a plan says what gives way. Whatever
//! was cut says so itself; that something was cut, and how to get more, is told as a warning.

use crate::outcome::{CommandOutput, Outcome, SizeUnit, Truncation, Warning};
use crate::presentation::{Presentation, RenderedOutput};
use crate::spec::InputSchema;
use crate::stdout::Printer;
use crate::views::truncate_apply;
use crate::views::truncate_plan::{Sizes, TruncationPlan, UNLIMITED, plan};

/// What a reader takes.
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

/// The outcome and its texts, cut where they must be.
pub fn truncate_to_fit(
    mut whole: Outcome,
    presentation: &Presentation,
    room: SizeLimit<'_>,
) -> (Outcome, RenderedOutput) {
    // Over MCP a long event is always told in short; where it stands whole is `output`, and the task's own resource.
    if room.unit == SizeUnit::Characters {
        shorten_events(&mut whole.output);
    }
    let texts = presentation.render(&whole);
    if !presentation.is_size_limited(&whole) {
        return (whole, texts);
    }
    let original_size = room.size(&texts.body);
    if original_size <= room.max_size {
        return (whole, texts);
    }
    let truncation = Truncation { max_size: room.max_size, unit: room.unit, original_size };
    let (sizes, inputs) = (truncate_apply::sizes(&whole.output), whole.command.inputs());
    let cut_to = |cut: TruncationPlan| {
        let mut outcome = whole.clone();
        truncate_apply::apply(&mut outcome.output, cut);
        let words = warning_text(&inputs, sizes, cut, truncation);
        outcome.output.warnings.push(Warning::new("W_TRUNCATION_001", words));
        Outcome { truncated: Some(truncation), ..outcome }
    };
    let size = |cut: TruncationPlan| room.size(&presentation.render_draft(&cut_to(cut)).body);
    let outcome = cut_to(plan(sizes, room.max_size, &size));
    let texts = presentation.render(&outcome);
    (outcome, texts)
}

fn shorten_events(answer: &mut CommandOutput) {
    truncate_apply::apply(answer, TruncationPlan { shorten_events: true, ..TruncationPlan::NONE });
}

/// What was cut, and what its reader can do about it.
fn warning_text(inputs: &InputSchema, sizes: Sizes, cut: TruncationPlan, truncation: Truncation) -> String {
    let unit = match truncation.unit {
        SizeUnit::Bytes => "bytes",
        SizeUnit::Characters => "characters",
    };
    let parts = [
        ("output", cut.output_bytes < sizes.output_bytes),
        ("events", sizes.event_count > 0 && (cut.shorten_events || cut.max_events < sizes.event_count)),
        ("lists and texts", (cut.other_bytes, cut.priority_bytes) != (UNLIMITED, UNLIMITED)),
    ];
    let given: Vec<&str> = parts.into_iter().filter(|(_, is_cut)| *is_cut).map(|(part, _)| part).collect();
    let given = if given.is_empty() { String::new() } else { format!(" ({})", given.join(", ")) };
    let Truncation { max_size: most, original_size, .. } = truncation;
    let advice = truncation_hints(inputs, cut.max_events < sizes.event_count, truncation.unit);
    format!("The answer had {original_size} {unit} and was cut to fit {most}{given}.{advice}")
}

/// In the words of the surface: inputs of a tool, or flags.
fn truncation_hints(inputs: &InputSchema, fewer_events: bool, unit: SizeUnit) -> String {
    let mut hints = Vec::new();
    let mut hint = |input: &str, words: &str| {
        if let Some(property) = inputs.get(input) {
            let name = match unit {
                SizeUnit::Bytes => format!("--{}", property.flag()),
                SizeUnit::Characters => property.name.clone(),
            };
            hints.push(format!("{name} {words}"));
        }
    };
    hint("limit", "asks for fewer");
    if fewer_events {
        hint("events_cursor", "gives the events before these");
    }
    match unit {
        SizeUnit::Characters => hint("max_output_bytes", "asks for more"),
        SizeUnit::Bytes => {
            hints.extend(["--fields asks for less".to_owned(), "--max-bytes for more".to_owned()])
        }
    }
    match hints.is_empty() {
        true => String::new(),
        false => format!(" {}.", hints.join(", ")),
    }
}

#[cfg(test)]
mod tests;
