//! Writes an event with exactly the documented fields, types and values of Codex exec events.
//!
//! The text of the line is filtered: documented values are copied in their order, other fields are dropped. A
//! value that a reader of the documented types would reject makes the whole event not documented, and the
//! caller decides what happens to it. Only two values are replaced: `declined`, for which the documented
//! types have `failed`, and the id of an item that is not `item_N`.

use delegator_domain::named_enum;

use crate::json::write::{self, plain_string};
use crate::json::{Object, Text, Value};

/// The field of an event that is not documented for Codex exec events; its value is the reason.
pub const MARK: &str = "mcp_delegator_nonstandard";

named_enum! {
    /// Why an event is not a documented one.
    pub(super) enum Deviation {
        /// An item of a type that is not documented.
        UnknownItem = "unknown_item",
        /// A patch that is not finished: only finished ones are documented.
        PatchInProgress = "patch_in_progress",
        /// A command or call that was not allowed to run; written as `failed`.
        Declined = "declined",
        /// The id of an item is not `item_N`, or was given to another item before; written as a free one.
        ItemId = "item_id",
        /// A documented field is missing or has another type or value.
        InvalidField = "invalid_field",
    }
}

enum Type {
    Text,
    /// Not empty.
    Id,
    /// 64 bits, signed.
    Tokens,
    /// 32 bits, signed.
    ExitCode,
    Boolean,
    OneOf(&'static [&'static str]),
    /// The status of an item; the documented values.
    Status(&'static [&'static str]),
    Object(&'static [Field]),
    Objects(&'static [Field]),
    Item,
}

struct Field {
    name: &'static str,
    kind: Type,
    is_required: bool,
}

const fn field(name: &'static str, kind: Type) -> Field {
    Field { name, kind, is_required: true }
}

const TYPE: Field = field("type", Type::Text);
const ID: Field = field("id", Type::Id);
const CALL_STATUS: Field = field("status", Type::Status(&["in_progress", "completed", "failed"]));
const PATCH_STATUS: Field = field("status", Type::Status(&["completed", "failed"]));
const EXIT_CODE: Field = Field { name: "exit_code", kind: Type::ExitCode, is_required: false };

const USAGE: &[Field] = &[
    field("input_tokens", Type::Tokens),
    field("cached_input_tokens", Type::Tokens),
    field("output_tokens", Type::Tokens),
];
const ERROR: &[Field] = &[field("message", Type::Text)];
const CHANGE: &[Field] =
    &[field("path", Type::Text), field("kind", Type::OneOf(&["add", "delete", "update"]))];
const TODO: &[Field] = &[field("text", Type::Text), field("completed", Type::Boolean)];

type Fields = &'static [(&'static str, &'static [Field])];

const EVENTS: Fields = &[
    ("thread.started", &[TYPE, field("thread_id", Type::Text)]),
    ("turn.started", &[TYPE]),
    ("turn.completed", &[TYPE, field("usage", Type::Object(USAGE))]),
    ("turn.failed", &[TYPE, field("error", Type::Object(ERROR))]),
    ("error", &[TYPE, field("message", Type::Text)]),
    ("item.started", &[TYPE, field("item", Type::Item)]),
    ("item.updated", &[TYPE, field("item", Type::Item)]),
    ("item.completed", &[TYPE, field("item", Type::Item)]),
];

const ITEMS: Fields = &[
    ("agent_message", &[ID, TYPE, field("text", Type::Text)]),
    ("reasoning", &[ID, TYPE, field("text", Type::Text)]),
    (
        "command_execution",
        &[
            ID,
            TYPE,
            field("command", Type::Text),
            field("aggregated_output", Type::Text),
            EXIT_CODE,
            CALL_STATUS,
        ],
    ),
    ("file_change", &[ID, TYPE, field("changes", Type::Objects(CHANGE)), PATCH_STATUS]),
    ("mcp_tool_call", &[ID, TYPE, field("server", Type::Text), field("tool", Type::Text), CALL_STATUS]),
    ("web_search", &[ID, TYPE, field("query", Type::Text)]),
    ("todo_list", &[ID, TYPE, field("items", Type::Objects(TODO))]),
    ("error", &[ID, TYPE, field("message", Type::Text)]),
];

fn fields_of(types: Fields, object: &Object<'_>) -> Option<&'static [Field]> {
    let kind = object.text("type")?;
    types.iter().find(|(name, _)| kind == **name).map(|(_, fields)| *fields)
}

/// Appends the documented form of an event (of an item, with this id), whose grammar was checked and which
/// has no repeated keys. Returns the deviation that was replaced; on an error, what was appended is
/// incomplete.
pub(super) fn write_documented(
    line: &str,
    item_id: Option<&Text<'_>>,
    out: &mut Vec<u8>,
) -> Result<Option<Deviation>, Deviation> {
    let event = Object::read(line);
    let fields = fields_of(EVENTS, &event).ok_or(Deviation::InvalidField)?;
    let mut writer = Writer { out, item_id, replaced: None };
    writer.object(&event, fields)?;
    Ok(writer.replaced)
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    item_id: Option<&'o Text<'o>>,
    replaced: Option<Deviation>,
}

impl Writer<'_> {
    fn object(&mut self, source: &Object<'_>, fields: &[Field]) -> Result<(), Deviation> {
        self.out.push(b'{');
        let mut written = 0;
        for (key, value) in source.members() {
            // A null of an optional field means the same as its absence.
            let is_documented = |field: &&Field| field.name == key && (field.is_required || !value.is_null());
            let Some(field) = fields.iter().find(is_documented) else { continue };
            if written > 0 {
                self.out.push(b',');
            }
            plain_string(self.out, field.name);
            self.out.push(b':');
            self.value(value, &field.kind)?;
            written += 1;
        }
        self.out.push(b'}');
        let is_present = |field: &Field| source.members().any(|(key, _)| key == field.name);
        let is_complete = fields.iter().all(|field| !field.is_required || is_present(field));
        if is_complete { Ok(()) } else { Err(Deviation::InvalidField) }
    }

    fn value(&mut self, value: Value<'_>, kind: &Type) -> Result<(), Deviation> {
        let json = value.raw().ok_or(Deviation::InvalidField)?;
        let is_text = |allowed: &[&str]| value.text().is_some_and(|text| allowed.iter().any(|a| text == **a));
        let is_valid = match kind {
            Type::Id if value.text().is_none_or(|id| id.is_empty()) => false,
            Type::Id if self.item_id.is_some_and(|id| value.text().as_ref() != Some(id)) => {
                self.replaced = Some(Deviation::ItemId);
                plain_string(self.out, &self.item_id.map(Text::resolve).unwrap_or_default());
                return Ok(());
            }
            Type::Text | Type::Id => return self.text(value, json),
            Type::Tokens => json.parse::<i64>().is_ok_and(|number| number.to_string() == json),
            Type::ExitCode => json.parse::<i32>().is_ok_and(|number| number.to_string() == json),
            Type::Boolean => value.boolean().is_some(),
            Type::OneOf(allowed) => is_text(allowed),
            Type::Status(allowed) if is_text(allowed) => true,
            Type::Status(_) if is_text(&["declined"]) => {
                self.replaced = Some(Deviation::Declined);
                self.out.extend_from_slice(br#""failed""#);
                return Ok(());
            }
            // Calls may be in progress, patches not.
            Type::Status(_) if is_text(&["in_progress"]) => return Err(Deviation::PatchInProgress),
            Type::Status(_) => false,
            Type::Object(fields) => return self.object(&object(value)?, fields),
            Type::Objects(fields) => return self.objects(value, fields),
            Type::Item => {
                let item = object(value)?;
                item.text("type").ok_or(Deviation::InvalidField)?;
                return self.object(&item, fields_of(ITEMS, &item).ok_or(Deviation::UnknownItem)?);
            }
        };
        if !is_valid {
            return Err(Deviation::InvalidField);
        }
        self.out.extend_from_slice(json.as_bytes());
        Ok(())
    }

    /// Half a surrogate pair, which readers reject, is written as a replacement character.
    fn text(&mut self, value: Value<'_>, json: &str) -> Result<(), Deviation> {
        let text = value.text().ok_or(Deviation::InvalidField)?;
        if json.contains("\\u") && serde_json::from_str::<String>(json).is_err() {
            plain_string(self.out, &text.resolve());
        } else {
            self.out.extend_from_slice(json.as_bytes());
        }
        Ok(())
    }

    fn objects(&mut self, value: Value<'_>, fields: &[Field]) -> Result<(), Deviation> {
        let elements: Vec<_> = value.elements().ok_or(Deviation::InvalidField)?.collect();
        let mut result = Ok(());
        let Self { out, item_id, replaced } = self;
        write::array(out, &elements, |out, element| {
            let mut writer = Writer { out, item_id: *item_id, replaced: *replaced };
            let written = object(*element).and_then(|element| writer.object(&element, fields));
            result = result.and(written);
        });
        result
    }
}

fn object(value: Value<'_>) -> Result<Object<'_>, Deviation> {
    value.object().ok_or(Deviation::InvalidField)
}
