//! Decodes token counts.

use crate::event::Usage;
use crate::json::{Ending, Object, Value};

/// The token counts in an object; `None` if the value is not a complete object.
pub(super) fn decode_usage(value: Value<'_>) -> Option<Usage> {
    let counts = value.object().filter(|counts| counts.ending == Ending::Complete)?;
    Some(usage_in(&counts).unwrap_or_default())
}

/// The token counts among other fields; `None` if there are none.
pub(super) fn usage_in(fields: &Object<'_>) -> Option<Usage> {
    let count = |key: &str| fields.first(&[key], |value| value.integer());
    let (input, cached, output) =
        (count("input_tokens"), count("cached_input_tokens"), count("output_tokens"));
    let (cache_write, reasoning) = (count("cache_write_input_tokens"), count("reasoning_output_tokens"));
    input.or(cached).or(cache_write).or(output).or(reasoning)?;
    Some(Usage {
        input_tokens: input.unwrap_or_default(),
        cached_input_tokens: cached.unwrap_or_default(),
        cache_write_input_tokens: cache_write,
        output_tokens: output.unwrap_or_default(),
        reasoning_output_tokens: reasoning,
    })
}
