//! The end of a turn.
//!
//! `is_error` decides, not `subtype`: API errors have the subtype `success`. `usage` counts the main agent only;
//! `modelUsage` counts sub-agents, too, and `total_cost_usd` belongs to it. Both are totals of the session and begin
//! again at zero if the process that ran the session before was killed, so the share of a turn
//! (`model_usage_since_last_result`) is read where it exists.

use super::errors;
use crate::event::{ErrorCode, Usage};
use crate::json::{Ending, Object, Text, Value};

/// `result`
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

/// How a turn ended.
#[derive(Clone, Debug)]
pub enum TurnOutcome<'a> {
    Completed,
    /// We interrupted it.
    Interrupted,
    Failed {
        message: Text<'a>,
        code: Option<ErrorCode>,
    },
}

pub(super) fn read<'a>(line: &Object<'a>) -> TurnResult<'a> {
    let share = line.object("model_usage_since_last_result");
    let share = share.map(|models| ModelUsage::read(&models)).filter(|share| share.models > 0);
    TurnResult {
        outcome: outcome(line),
        usage: match &share {
            Some(share) => share.usage,
            None => line.object("usage").map(|usage| turn_usage(&usage)).unwrap_or_default(),
        },
        cost: share.map(|share| share.cost),
        session_cost: line.first(&["total_cost_usd"], number),
        structured_output: line.raw("structured_output"),
    }
}

fn outcome<'a>(line: &Object<'a>) -> TurnOutcome<'a> {
    let is_interrupted = line.text("terminal_reason").is_some_and(|it| it.resolve().starts_with("aborted"));
    let subtype = line.text("subtype").unwrap_or_default();
    let is_error = line.first(&["is_error"], Value::boolean) == Some(true);
    if is_interrupted {
        TurnOutcome::Interrupted
    } else if is_error || subtype != *"success" {
        let message = line.text("result").filter(|text| !text.is_empty()).or_else(|| errors_text(line));
        TurnOutcome::Failed { message: message.unwrap_or(subtype), code: errors::code(line) }
    } else {
        TurnOutcome::Completed
    }
}

fn errors_text<'a>(line: &Object<'a>) -> Option<Text<'a>> {
    let errors = line.list(&["errors"], Value::text);
    (!errors.is_empty()).then(|| Text::joined(errors, "; "))
}

/// Cached tokens are not part of `input_tokens` here; in our counts they are.
fn turn_usage(usage: &Object<'_>) -> Usage {
    let count = |key: &str| usage.first(&[key], Value::integer);
    let details = usage.object("output_tokens_details");
    let tokens = Tokens {
        uncached: count("input_tokens").unwrap_or_default(),
        cached: count("cache_read_input_tokens").unwrap_or_default(),
        written: count("cache_creation_input_tokens").unwrap_or_default(),
        output: count("output_tokens").unwrap_or_default(),
        thinking: details.and_then(|details| details.first(&["thinking_tokens"], Value::integer)),
    };
    tokens.into_usage()
}

/// Tokens and cost of all models.
#[derive(Debug, Default)]
struct ModelUsage {
    models: usize,
    usage: Usage,
    cost: f64,
}

impl ModelUsage {
    fn read(models: &Object<'_>) -> Self {
        let mut all = Self::default();
        if models.ending != Ending::Complete {
            return all;
        }
        for model in models.members().filter_map(|(_, model)| model.object()) {
            let count = |key: &str| model.first(&[key], Value::integer);
            let tokens = Tokens {
                uncached: count("inputTokens").unwrap_or_default(),
                cached: count("cacheReadInputTokens").unwrap_or_default(),
                written: count("cacheCreationInputTokens").unwrap_or_default(),
                output: count("outputTokens").unwrap_or_default(),
                thinking: count("thinkingTokens"),
            };
            all.usage = all.usage.plus(tokens.into_usage());
            all.cost += model.first(&["costUSD"], number).unwrap_or_default();
            all.models += 1;
        }
        all
    }
}

struct Tokens {
    uncached: i64,
    cached: i64,
    written: i64,
    output: i64,
    thinking: Option<i64>,
}

impl Tokens {
    fn into_usage(self) -> Usage {
        Usage {
            input_tokens: self.uncached.saturating_add(self.cached).saturating_add(self.written),
            cached_input_tokens: self.cached,
            cache_write_input_tokens: Some(self.written),
            output_tokens: self.output,
            reasoning_output_tokens: self.thinking,
        }
    }
}

fn number(value: Value<'_>) -> Option<f64> {
    value.raw()?.parse().ok().filter(|number: &f64| number.is_finite())
}
