//! Decodes token counts.

use super::first;
use crate::event::Usage;
use crate::json::{Cursor, Scan};

/// Reads token counts; `None` if the value is not an object.
pub(super) fn read_usage(cursor: &mut Cursor<'_>) -> Scan<Option<Usage>> {
    if cursor.peek() != Some(b'{') {
        cursor.skip()?;
        return Ok(None);
    }
    let mut fields = UsageFields::default();
    cursor.object(|cursor, key| fields.read(cursor, key.simple().unwrap_or_default()))?;
    Ok(Some(fields.into_usage().unwrap_or_default()))
}

/// The fields of a [`Usage`], at whatever level they appear.
#[derive(Debug, Default)]
pub(super) struct UsageFields {
    input: Option<i64>,
    cached: Option<i64>,
    cache_write: Option<i64>,
    output: Option<i64>,
    reasoning: Option<i64>,
}

impl UsageFields {
    /// Reads or skips the value of this key.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>, key: &str) -> Scan<()> {
        let slot = match key {
            "input_tokens" => &mut self.input,
            "cached_input_tokens" => &mut self.cached,
            "cache_write_input_tokens" => &mut self.cache_write,
            "output_tokens" => &mut self.output,
            "reasoning_output_tokens" => &mut self.reasoning,
            _ => return cursor.skip(),
        };
        first(slot, cursor.integer()?);
        Ok(())
    }

    /// `None` when no field was present.
    pub(super) fn into_usage(self) -> Option<Usage> {
        let Self { input, cached, cache_write, output, reasoning } = self;
        input.or(cached).or(cache_write).or(output).or(reasoning)?;
        Some(Usage {
            input_tokens: input.unwrap_or_default(),
            cached_input_tokens: cached.unwrap_or_default(),
            cache_write_input_tokens: cache_write,
            output_tokens: output.unwrap_or_default(),
            reasoning_output_tokens: reasoning,
        })
    }
}
