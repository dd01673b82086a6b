//! Stores the last few lines of the stream, truncated, so that a report can show what happened last.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::framer::{Line, LineBody};

const MAX_LINES: usize = 50;
const MAX_LINE_BYTES: usize = 2 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentLine {
    /// Counted from 1.
    pub number: u64,
    pub bytes: u64,
    /// The line as the agent printed it, truncated to 2 KiB.
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct RecentLines {
    lines: VecDeque<(u64, u64, Vec<u8>)>,
}

impl RecentLines {
    pub(super) fn push(&mut self, line: &Line<'_>) {
        let reused = if self.lines.len() >= MAX_LINES { self.lines.pop_front() } else { None };
        let mut buffer = reused.map(|(_, _, buffer)| buffer).unwrap_or_default();
        let (LineBody::Whole(bytes) | LineBody::Truncated { head: bytes, .. }) = line.body;
        buffer.clear();
        buffer.extend_from_slice(&bytes[..bytes.len().min(MAX_LINE_BYTES)]);
        self.lines.push_back((line.number, line.length, buffer));
    }

    pub(super) fn last_line(&self) -> Option<String> {
        let texts = self.lines.iter().rev().map(|(_, _, stored)| String::from_utf8_lossy(stored));
        texts.map(|text| text.trim().to_owned()).find(|text| !text.is_empty())
    }

    pub(super) fn report(&self) -> Vec<RecentLine> {
        let line = |(number, bytes, stored): &(u64, u64, Vec<u8>)| {
            let text = String::from_utf8_lossy(stored);
            // A character split by the truncation must not become a replacement character.
            let is_truncated = *bytes > stored.len() as u64;
            let text = if is_truncated { text.trim_end_matches('\u{fffd}') } else { &text };
            RecentLine { number: *number, bytes: *bytes, text: text.to_owned() }
        };
        self.lines.iter().map(line).collect()
    }
}
