//! Small charts as SVG. Each has its numbers as text, too.

use delegator_transcript::Usage;
use maud::{Markup, html};

use crate::commands::usage::grouped;

const WIDTH: i64 = 600;
const HEIGHT: i64 = 80;

/// One bar for each name; nothing for a single one, which compares nothing.
pub(super) fn bars(title: &str, values: &[(String, i64)]) -> Markup {
    let most = values.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let count = i64::try_from(values.len()).unwrap_or(1).max(1);
    let (step, width) = ((WIDTH / count).max(1), WIDTH.max(count));
    html! {
        @if most > 0 && values.len() > 1 {
            figure class="chart" {
                figcaption { (title) }
                svg viewBox=(format!("0 0 {width} {HEIGHT}")) role="img" aria-label=(title) {
                    @for (at, (name, value)) in (0..).zip(values) {
                        @let height = (value.saturating_mul(HEIGHT) / most).max(1);
                        rect x=(at * step) y=(HEIGHT - height) width=((step - 2).clamp(1, 40)) height=(height) {
                            title { (name) ": " (grouped(*value)) }
                        }
                    }
                }
            }
        }
    }
}

/// The parts of the tokens of a task in one bar.
pub(super) fn tokens(usage: Usage) -> Markup {
    let fresh = usage.input_tokens.saturating_sub(usage.cached_input_tokens).max(0);
    let parts = [("read", fresh), ("cached", usage.cached_input_tokens), ("written", usage.output_tokens)];
    let total = parts.iter().fold(0_i64, |sum, (_, count)| sum.saturating_add(*count));
    html! {
        @if total > 0 {
            figure class="chart" {
                figcaption { "Tokens: " @for (name, count) in parts { (grouped(count)) " " (name) " " } }
                svg viewBox=(format!("0 0 {WIDTH} 12")) role="img" aria-label="Tokens by kind" {
                    @for (at, (name, count)) in parts.iter().enumerate() {
                        @let before = parts[..at].iter().fold(0_i64, |sum, (_, count)| sum.saturating_add(*count));
                        rect class=(name) x=(before.saturating_mul(WIDTH) / total) y="0" width=(count.saturating_mul(WIDTH) / total) height="12" {
                            title { (name) ": " (count) }
                        }
                    }
                }
            }
        }
    }
}
