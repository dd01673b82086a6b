//! Reads columns into values, and rows into records.
//!
//! The type of a field decides how its column is read. A text that is not a value of that type is an error,
//! never a default.

use std::collections::BTreeMap;

use delegator_domain::message::{Delivery, MessageNumber, MessageState};
use delegator_domain::notification::{Channel, SubjectKind};
use delegator_domain::question::{AnswerOption, QuestionKind, QuestionNumber, QuestionState};
use delegator_domain::task::{
    ChainOutcome, GroupId, LimitKind, Mode, Provider, SandboxKind, State, TaskId, Verification,
};
use rusqlite::Row;
use rusqlite::types::Type;
use serde_json::Value;

use crate::compare_and_set::Nonce;

pub(crate) trait Column: Sized {
    fn read(row: &Row<'_>, column: &'static str) -> rusqlite::Result<Self>;
}

#[derive(Debug, thiserror::Error)]
#[error("column {column} has {found:?}")]
struct UnreadableColumn {
    column: &'static str,
    found: String,
}

pub(crate) fn unreadable(column: &'static str, found: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(UnreadableColumn { column, found }))
}

fn parse<T>(column: &'static str, text: String, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    parse(&text).ok_or_else(|| unreadable(column, text))
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// Types that SQLite knows, and those that are read from one of them.
macro_rules! columns {
    ($($Type:ty $(: $convert:expr)?,)*) => {
        $(impl Column for $Type {
            fn read(row: &Row<'_>, column: &'static str) -> rusqlite::Result<$Type> {
                row.get(column)$(.map($convert))?
            }
        })*
    };
}

columns! {
    bool,
    i64,
    u32,
    u64,
    String,
    Option<i64>,
    Option<u64>,
    Option<String>,
    MessageNumber: MessageNumber,
    QuestionNumber: QuestionNumber,
}

/// Types that are stored as text, and how the text is parsed.
macro_rules! text_columns {
    ($($Type:ty: $parse:expr,)*) => {
        $(impl Column for $Type {
            fn read(row: &Row<'_>, column: &'static str) -> rusqlite::Result<$Type> {
                parse(column, row.get(column)?, $parse)
            }
        }

        impl Column for Option<$Type> {
            fn read(row: &Row<'_>, column: &'static str) -> rusqlite::Result<Option<$Type>> {
                let found: Option<String> = row.get(column)?;
                found.map(|text| parse(column, text, $parse)).transpose()
            }
        })*
    };
}

text_columns! {
    TaskId: |text| text.parse().ok(),
    GroupId: |text| text.parse().ok(),
    Nonce: Nonce::from_text,
    State: State::from_name,
    Mode: Mode::from_name,
    SandboxKind: SandboxKind::from_name,
    Provider: Provider::from_name,
    ChainOutcome: ChainOutcome::from_name,
    LimitKind: LimitKind::from_name,
    Delivery: Delivery::from_name,
    MessageState: MessageState::from_name,
    QuestionKind: QuestionKind::from_name,
    QuestionState: QuestionState::from_name,
    SubjectKind: SubjectKind::from_name,
    Channel: Channel::from_name,
    Verification: Verification::from_name,
    BTreeMap<String, String>: from_json,
    Value: from_json,
    Vec<AnswerOption>: from_json,
    Vec<String>: from_json,
    Vec<i32>: from_json,
}

/// Defines a struct and `from_row`, which reads each field from the column of its name. `= function` names
/// the function that reads the field instead.
macro_rules! record {
    (@read $row:ident $field:ident) => { $crate::columns::Column::read($row, stringify!($field))? };
    (@read $row:ident $field:ident $read:expr) => { $read($row)? };
    (
        $(#[$about:meta])*
        $visibility:vis struct $Record:ident {
            $($(#[$doc:meta])* $field_visibility:vis $field:ident: $Type:ty $(= $read:expr)?,)*
        }
    ) => {
        $(#[$about])*
        $visibility struct $Record {
            $($(#[$doc])* $field_visibility $field: $Type,)*
        }

        impl $Record {
            pub(crate) fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<$Record> {
                Ok($Record { $($field: $crate::columns::record!(@read row $field $($read)?),)* })
            }
        }
    };
}

pub(crate) use record;
