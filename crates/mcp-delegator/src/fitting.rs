//! The way of an answer into the room its reader has.
//!
//! Hosts count characters, pipes count bytes, and both count what really arrives: wrapped, escaped and cleaned of
//! secrets. So an answer is measured as it will be sent, and where it is too long a plan says what gives way. Whatever
//! was cut says so itself; that something was cut, and how to get more, is told as a warning.

use crate::outcome::{Answer, Outcome, Truncation, Unit, Warning};
use crate::presentation::{Presentation, Texts};
use crate::registry::InputSchema;
use crate::stdout::Printer;
use crate::views::cap;
use crate::views::cut::{Cut, Sizes, WHOLE, plan};

/// What a reader takes.
#[derive(Debug, Clone, Copy)]
pub struct Room<'a> {
    pub most: usize,
    pub unit: Unit,
    pub printer: &'a Printer,
}

impl Room<'_> {
    fn size(&self, text: &str) -> usize {
        match self.unit {
            Unit::Bytes => self.printer.clean(text).len(),
            Unit::Characters => self.printer.clean_line(text).chars().count(),
        }
    }
}

/// The outcome and its texts, cut where they must be.
pub fn fitting(mut whole: Outcome, presentation: &Presentation, room: Room<'_>) -> (Outcome, Texts) {
    // Over MCP a long event is always told in short; where it stands whole is `output`, and the task's own resource.
    if room.unit == Unit::Characters {
        shorten_events(&mut whole.answer);
    }
    let texts = presentation.texts(&whole);
    if !presentation.is_capped(&whole) {
        return (whole, texts);
    }
    let original_size = room.size(&texts.answer);
    if original_size <= room.most {
        return (whole, texts);
    }
    let truncation = Truncation { most: room.most, unit: room.unit, original_size };
    let (sizes, inputs) = (cap::sizes(&whole.answer), whole.command.inputs());
    let cut_to = |cut: Cut| {
        let mut outcome = whole.clone();
        cap::apply(&mut outcome.answer, cut);
        let words = words(&inputs, sizes, cut, truncation);
        outcome.answer.warnings.push(Warning::new("W_TRUNCATION_001", words));
        Outcome { truncated: Some(truncation), ..outcome }
    };
    let size = |cut: Cut| room.size(&presentation.draft(&cut_to(cut)).answer);
    let outcome = cut_to(plan(sizes, room.most, &size));
    let texts = presentation.texts(&outcome);
    (outcome, texts)
}

fn shorten_events(answer: &mut Answer) {
    cap::apply(answer, Cut { short_events: true, ..Cut::NONE });
}

/// What was cut, and what its reader can do about it.
fn words(inputs: &InputSchema, sizes: Sizes, cut: Cut, truncation: Truncation) -> String {
    let unit = match truncation.unit {
        Unit::Bytes => "bytes",
        Unit::Characters => "characters",
    };
    let parts = [
        ("output", cut.output < sizes.output),
        ("events", sizes.events > 0 && (cut.short_events || cut.events < sizes.events)),
        ("lists and texts", (cut.others, cut.last) != (WHOLE, WHOLE)),
    ];
    let given: Vec<&str> = parts.into_iter().filter(|(_, is_cut)| *is_cut).map(|(part, _)| part).collect();
    let given = if given.is_empty() { String::new() } else { format!(" ({})", given.join(", ")) };
    let Truncation { most, original_size, .. } = truncation;
    let advice = advice(inputs, cut.events < sizes.events, truncation.unit);
    format!("The answer had {original_size} {unit} and was cut to fit {most}{given}.{advice}")
}

/// In the words of the surface: inputs of a tool, or flags.
fn advice(inputs: &InputSchema, fewer_events: bool, unit: Unit) -> String {
    let mut hints = Vec::new();
    let mut hint = |input: &str, words: &str| {
        if let Some(property) = inputs.get(input) {
            let name = match unit {
                Unit::Bytes => format!("--{}", property.flag()),
                Unit::Characters => property.name.clone(),
            };
            hints.push(format!("{name} {words}"));
        }
    };
    hint("limit", "asks for fewer");
    if fewer_events {
        hint("events_cursor", "gives the events before these");
    }
    match unit {
        Unit::Characters => hint("max_output_bytes", "asks for more"),
        Unit::Bytes => hints.extend(["--fields asks for less".to_owned(), "--max-bytes for more".to_owned()]),
    }
    match hints.is_empty() {
        true => String::new(),
        false => format!(" {}.", hints.join(", ")),
    }
}

#[cfg(test)]
mod tests;
