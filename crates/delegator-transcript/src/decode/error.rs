//! Errors of lines and calls: 001 has text or an object with a `message`, 003 and MCP servers have anything.

use std::borrow::Cow;

use super::{Nested, first, loose_into, read_message};
use crate::json::{Cursor, Scan, Text};

/// An error, not yet read as any dialect means it.
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

    /// As 001 means it.
    pub(super) fn message(self) -> Option<Text<'a>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(object) => {
                let mut message = None;
                // What is not an object, or was cut off, has as much of a message as was read.
                let _ = read_message(&mut Cursor::new(object.0), &mut message);
                message
            }
        }
    }

    /// As results of tools mean it: the message, or all there is.
    pub(super) fn message_or_whole(self) -> Text<'a> {
        match self {
            Self::Json(Nested(raw)) => Self::Json(Nested(raw)).message().unwrap_or(Text::plain(raw)),
            Self::Text(text) => text,
        }
    }

    /// As 003 means it.
    pub(super) fn whole(self) -> Text<'a> {
        match self {
            Self::Text(text) => text,
            Self::Json(value) => Text::plain(value.0),
        }
    }
}
