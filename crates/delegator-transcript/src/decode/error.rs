//! Decodes the `error` field of lines and tool calls. Codex exec events carry a string or an object with a `message`;
//! the idle dialect and MCP servers carry any JSON value.

use std::borrow::Cow;

use super::{Nested, first, loose_into, read_message};
use crate::json::{Cursor, Scan, Text};

/// An `error` value whose interpretation depends on the dialect.
#[derive(Debug)]
pub(super) enum TopError<'a> {
    Text(Text<'a>),
    Json(Nested<'a>),
}

impl<'a> TopError<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, slot: &mut Option<Self>) -> Scan<()> {
        let is_text = cursor.peek() == Some(b'"');
        let mut error = None;
        let read = loose_into(cursor, &mut error);
        first(
            slot,
            error.map(|error| match error {
                Text::Plain(Cow::Borrowed(raw)) if !is_text => Self::Json(Nested(raw)),
                text => Self::Text(text),
            }),
        );
        read
    }

    /// Codex exec events: the string, or the `message` of the object.
    pub(super) fn message(self) -> Option<Text<'a>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(object) => {
                let mut message = None;
                // For an object that was truncated, the part that could be read counts.
                let _ = read_message(&mut Cursor::new(object.0), &mut message);
                message
            }
        }
    }

    /// Tool results: the message, or the whole value.
    pub(super) fn message_or_whole(self) -> Text<'a> {
        match self {
            Self::Json(Nested(raw)) => Self::Json(Nested(raw)).message().unwrap_or(Text::plain(raw)),
            Self::Text(text) => text,
        }
    }

    /// Idle dialect: the whole value.
    pub(super) fn whole(self) -> Text<'a> {
        match self {
            Self::Text(text) => text,
            Self::Json(value) => Text::plain(value.0),
        }
    }
}
