//! Token counts of the agents, as counts of this product: input with cached tokens, output with reasoning.
//!
//! The protocol defines the counts as disjoint, and some agents follow that (opencode, claude-acp). Others
//! include cached tokens in the input or reasoning in the output (Copilot, Qwen Code, codex-acp). The total
//! that all of them write shows which of them it is.

use crate::event::Usage;
use crate::json::Value;

/// Token counts of a turn or of one call of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    input: i64,
    output: i64,
    cached_read: i64,
    cached_write: i64,
    thought: Option<i64>,
    total: Option<i64>,
}

impl TokenCounts {
    /// An object with `inputTokens` and so on, or, as Gemini CLI writes them, `input_tokens`.
    pub(crate) fn read(value: Value<'_>) -> Option<Self> {
        let counts = value.object()?;
        let count = |keys: &[&str]| counts.first(keys, Value::integer).map(|count| count.max(0));
        let (input, output) =
            (count(&["inputTokens", "input_tokens"]), count(&["outputTokens", "output_tokens"]));
        (input.is_some() || output.is_some()).then(|| Self {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cached_read: count(&["cachedReadTokens", "cachedInputTokens"]).unwrap_or(0),
            cached_write: count(&["cachedWriteTokens"]).unwrap_or(0),
            thought: count(&["thoughtTokens"]),
            total: count(&["totalTokens"]),
        })
    }

    pub(crate) fn is_zero(&self) -> bool {
        (self.input, self.output, self.cached_read, self.cached_write) == (0, 0, 0, 0)
    }

    pub(crate) fn usage(&self) -> Usage {
        let cached = self.cached_read.saturating_add(self.cached_write);
        let thought = self.thought.unwrap_or(0);
        let adds_up = |input: i64, output: i64| self.total == Some(input.saturating_add(output));
        let (input, output) = (self.input, self.output);
        let (with_cached, with_thought) = (input.saturating_add(cached), output.saturating_add(thought));
        let (input_tokens, output_tokens) = if adds_up(input, output) {
            (input, output)
        } else if adds_up(with_cached, output) {
            (with_cached, output)
        } else if adds_up(input, with_thought) {
            (input, with_thought)
        } else {
            (with_cached, with_thought)
        };
        Usage {
            input_tokens,
            cached_input_tokens: self.cached_read,
            cache_write_input_tokens: (self.cached_write > 0).then_some(self.cached_write),
            output_tokens,
            reasoning_output_tokens: self.thought,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    #[test]
    fn cached_and_reasoning_tokens_are_part_of_input_and_output_whatever_the_agent_includes() {
        let (input, cached, output, thought) = (910, 280, 161, 35);
        for (agent, counts, expected) in [
            (
                "copilot",
                r#"{"inputTokens":910,"outputTokens":161,"totalTokens":1071,"thoughtTokens":35,"cachedReadTokens":280,"cachedWriteTokens":0}"#,
                (input, cached, output, Some(thought)),
            ),
            (
                "codex-acp",
                r#"{"totalTokens":1071,"inputTokens":630,"cachedReadTokens":280,"cachedWriteTokens":0,"outputTokens":161,"thoughtTokens":35}"#,
                (input, cached, output, Some(thought)),
            ),
            (
                "claude-acp",
                r#"{"inputTokens":910,"outputTokens":161,"cachedReadTokens":280,"cachedWriteTokens":35,"totalTokens":1386}"#,
                (1225, cached, output, None),
            ),
            (
                "opencode",
                r#"{"inputTokens":120,"outputTokens":21,"totalTokens":186,"thoughtTokens":5,"cachedReadTokens":40}"#,
                (160, 40, 26, Some(5)),
            ),
            ("goose", r#"{"totalTokens":186,"inputTokens":160,"outputTokens":26}"#, (160, 0, 26, None)),
            ("gemini", r#"{"input_tokens":910,"output_tokens":161}"#, (910, 0, 161, None)),
        ] {
            let object = format!(r#"{{"counts":{counts}}}"#);
            let counts = Object::read(&object).first(&["counts"], TokenCounts::read).expect("counts");
            let usage = counts.usage();
            let found = (
                usage.input_tokens,
                usage.cached_input_tokens,
                usage.output_tokens,
                usage.reasoning_output_tokens,
            );
            assert_eq!(found, expected, "{agent}");
        }
    }
}
