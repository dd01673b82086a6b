//! The end of a turn.
//!
//! `is_error` decides, not `subtype`: API errors have the subtype `success`. `usage` counts the main agent
//! only; `modelUsage` counts sub-agents, too, and `total_cost_usd` belongs to it. Both are totals of the
//! session and begin again at zero if the process that ran the session before was killed, so the share of a
//! turn (`model_usage_since_last_result`) is read where it exists.

use super::errors;
use crate::event::{AgentError, TurnOutcome, Usage};
use crate::json::{Ending, Object, Text, Value};

#[derive(Clone, Debug)]
pub struct TurnResult<'a> {
    pub outcome: TurnOutcome<'a>,
    /// Tokens of this turn.
    pub usage: Usage,
    /// US dollars of this turn; `None` if the version does not report it.
    pub cost: Option<f64>,
    /// US dollars of the session.
    pub session_cost: Option<f64>,
    /// The answer to a request with an output schema, raw JSON.
    pub structured_output: Option<&'a str>,
}

pub(super) fn read<'a>(line: &Object<'a>) -> TurnResult<'a> {
    let share = line.object("model_usage_since_last_result");
    let share = share.filter(|models| models.ending == Ending::Complete);
    let share = share.and_then(|models| usage_of_models(&models));
    TurnResult {
        outcome: outcome(line),
        usage: match &share {
            Some((usage, _)) => *usage,
            None => line.object("usage").map(|usage| turn_usage(&usage)).unwrap_or_default(),
        },
        cost: share.map(|(_, cost)| cost),
        session_cost: line.first(&["total_cost_usd"], number),
        structured_output: line.raw("structured_output"),
    }
}

fn outcome<'a>(line: &Object<'a>) -> TurnOutcome<'a> {
    let is_interrupted = line.text("terminal_reason").is_some_and(|it| it.resolve().starts_with("aborted"));
    let subtype = line.text("subtype").unwrap_or_default();
    let is_error = line.is_true("is_error");
    if is_interrupted {
        TurnOutcome::Interrupted
    } else if is_error || subtype != *"success" {
        let message = line.text("result").filter(|text| !text.is_empty()).or_else(|| errors_text(line));
        TurnOutcome::Failed(AgentError { message: message.unwrap_or(subtype), code: errors::code(line) })
    } else {
        TurnOutcome::Completed
    }
}

fn errors_text<'a>(line: &Object<'a>) -> Option<Text<'a>> {
    let errors = line.list(&["errors"], Value::text);
    (!errors.is_empty()).then(|| Text::joined(errors, "; "))
}

fn turn_usage(usage: &Object<'_>) -> Usage {
    let keys = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    let details = usage.object("output_tokens_details");
    usage_of(usage, keys, details.and_then(|details| details.integer("thinking_tokens")))
}

/// Reads the counts of uncached, cached, cache-writing and output tokens. Cached tokens are not part of the
/// input here; in our counts they are.
fn usage_of(counts: &Object<'_>, keys: [&str; 4], thinking: Option<i64>) -> Usage {
    let [uncached, cached, written, output] = keys.map(|key| counts.integer(key).unwrap_or_default());
    Usage {
        input_tokens: uncached.saturating_add(cached).saturating_add(written),
        cached_input_tokens: cached,
        cache_write_input_tokens: Some(written),
        output_tokens: output,
        reasoning_output_tokens: thinking,
    }
}

/// Tokens and cost of all models; `None` without a model.
fn usage_of_models(models: &Object<'_>) -> Option<(Usage, f64)> {
    let keys = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
    let models = models.members().filter_map(|(_, model)| model.object());
    let shares = models.map(|model| {
        let cost = model.first(&["costUSD"], number).unwrap_or_default();
        (usage_of(&model, keys, model.integer("thinkingTokens")), cost)
    });
    shares.reduce(|(usage, cost), (more, more_cost)| (usage.plus(more), cost + more_cost))
}

fn number(value: Value<'_>) -> Option<f64> {
    value.raw()?.parse().ok().filter(|number: &f64| number.is_finite())
}
