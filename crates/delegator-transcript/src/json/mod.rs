//! Reads JSON objects without copying, for lines of which most values are never used.
//!
//! [`Object::read`] lets `serde_json` walk a text once and stores every member as a borrowed, unparsed [`Value`]. Typed
//! access comes later and never fails: a value of another type counts as absent, and of a repeated key the first usable
//! value counts. A derived `Deserialize` would reject the line for each of these, and for a number out of range, half a
//! surrogate pair or a missing end.
//!
//! `serde_json` skips values without recursion, so that deep nesting cannot overflow the stack.

pub(crate) mod text;
pub(crate) mod unique;
pub(crate) mod write;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use text::Text;

/// Capacity that is enough for most objects.
const USUAL_MEMBERS: usize = 8;

/// How the text of an object ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Complete,
    /// JSON so far, but the text ended inside a value.
    Truncated,
    /// Not JSON.
    Invalid,
}

/// Keys, still escaped, and values in their order. The keys of elements of an array are empty.
type Members<'a> = Vec<(&'a str, Value<'a>)>;

/// An object or array.
#[derive(Debug, Default)]
pub(crate) struct Object<'a> {
    members: Members<'a>,
    /// The members of the object in `item`; see [`Object::read_line`].
    item: Option<Members<'a>>,
    pub(crate) ending: Ending,
}

/// A value that was checked and not parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Whole(&'a str),
    /// The beginning of the value in which a truncated text ends.
    Partial(&'a str),
}

impl<'a> Object<'a> {
    /// Reads an object or array. Of a truncated text, what is available.
    pub(crate) fn read(text: &'a str) -> Self {
        Self::read_text(text, false)
    }

    /// Like `read`, but reads the object in `item`, which is nearly the whole line, in the same pass.
    /// [`Object::take_item`] returns it.
    pub(crate) fn read_line(text: &'a str) -> Self {
        Self::read_text(text, true)
    }

    fn read_text(text: &'a str, is_line: bool) -> Self {
        let mut object = Self::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let item = is_line.then_some(&mut object.item);
        let reader = MemberReader { text, members: &mut object.members, item };
        object.ending = match reader.deserialize(&mut deserializer).and_then(|()| deserializer.end()) {
            Ok(()) => Ending::Complete,
            Err(error) if is_truncation(&error, text) => Ending::Truncated,
            Err(_) => Ending::Invalid,
        };
        object
    }

    pub(crate) fn take_item(&mut self) -> Option<Self> {
        Some(Self { members: self.item.take()?, ..Self::default() })
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.members.iter().copied()
    }

    /// The first value of the keys from which `read` returns something.
    pub(crate) fn first<T>(&self, keys: &[&str], read: impl Fn(Value<'a>) -> Option<T>) -> Option<T> {
        self.members().filter(|(key, _)| keys.contains(key)).find_map(|(_, value)| read(value))
    }

    pub(crate) fn text(&self, key: &str) -> Option<Text<'a>> {
        self.first(&[key], |value| value.text())
    }

    pub(crate) fn raw(&self, key: &str) -> Option<&'a str> {
        self.first(&[key], |value| value.raw())
    }

    /// The first value of the key that is an object.
    pub(crate) fn object(&self, key: &str) -> Option<Self> {
        self.first(&[key], |value| value.object())
    }

    /// The first list of the keys that is not empty once `read` has read its elements.
    pub(crate) fn list<T>(&self, keys: &[&str], read: impl Fn(Value<'a>) -> Option<T>) -> Vec<T> {
        let list = |value: Value<'a>| Some(value.elements()?.filter_map(&read).collect::<Vec<T>>());
        self.first(keys, |value| list(value).filter(|list| !list.is_empty())).unwrap_or_default()
    }
}

impl<'a> Value<'a> {
    /// Its JSON; of a truncated value, what is available.
    fn available(self) -> &'a str {
        let (Self::Whole(json) | Self::Partial(json)) = self;
        json
    }

    pub(crate) fn is_null(self) -> bool {
        self.available() == "null"
    }

    pub(crate) fn is_object(self) -> bool {
        self.available().starts_with('{')
    }

    /// A string; of a truncated one, what is available.
    pub(crate) fn text(self) -> Option<Text<'a>> {
        let inside = self.available().strip_prefix('"')?;
        Some(match self {
            Self::Whole(_) => Text::Json(inside.strip_suffix('"')?),
            Self::Partial(_) => Text::cut_json(inside),
        })
    }

    /// A string as text and any other value except `null` as its JSON, for fields that may have any type.
    pub(crate) fn text_or_json(self) -> Option<Text<'a>> {
        self.text().or_else(|| (!self.is_null()).then(|| Text::plain(self.available())))
    }

    /// Any complete value except `null`, as it stands in the line.
    pub(crate) fn raw(self) -> Option<&'a str> {
        match self {
            Self::Whole(json) if json != "null" => Some(json),
            Self::Whole(_) | Self::Partial(_) => None,
        }
    }

    /// A whole number. Beyond 64 bits it stays at the end of the range.
    pub(crate) fn integer(self) -> Option<i64> {
        let json = self.raw().filter(|json| json.starts_with(|c: char| c == '-' || c.is_ascii_digit()))?;
        // `as` saturates, which is what is wanted of 1e999.
        json.parse().ok().or_else(|| json.parse::<f64>().ok().map(|number| number as i64))
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        self.raw()?.parse().ok()
    }

    /// An object; of a truncated one, what is available.
    pub(crate) fn object(self) -> Option<Object<'a>> {
        self.is_object().then(|| Object::read(self.available()))
    }

    /// The complete elements of an array.
    pub(crate) fn elements(self) -> Option<impl Iterator<Item = Value<'a>>> {
        let array = self.available().starts_with('[').then(|| Object::read(self.available()))?;
        Some(array.members.into_iter().map(|(_, element)| element))
    }
}

/// Whether the text is one JSON value and nothing else.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether the text ended too early. `serde_json` calls a number without its last digits invalid.
fn is_truncation(error: &serde_json::Error, text: &str) -> bool {
    let ends_in_number = text.ends_with(['-', '+', '.', 'e', 'E']) && error.column() == text.len();
    error.is_eof() || ends_in_number
}

/// Collects members; those read before an error remain.
struct MemberReader<'a, 'o> {
    text: &'a str,
    members: &'o mut Members<'a>,
    /// Where to put the members of the object in `item`, instead of its JSON.
    item: Option<&'o mut Option<Members<'a>>>,
}

impl<'a> DeserializeSeed<'a> for MemberReader<'a, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for MemberReader<'a, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object or array")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { text, members, mut item } = self;
        members.reserve(USUAL_MEMBERS);
        while let Some(key) = map.next_key::<&RawValue>()? {
            let key = key.get().get(1..key.get().len() - 1).unwrap_or_default();
            if key == "item"
                && text_after_key(text, key).starts_with('{')
                && let Some(item) = item.take()
            {
                let members = item.insert(Members::new());
                map.next_value_seed(MemberReader { text, members, item: None })?;
                continue;
            }
            let value = map.next_value::<&RawValue>();
            members.push(match &value {
                Ok(value) => (key, Value::Whole(value.get())),
                Err(_) => (key, Value::Partial(text_after_key(text, key))),
            });
            value?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<&RawValue>()? {
            self.members.push(("", Value::Whole(element.get())));
        }
        Ok(())
    }
}

/// The text from the value of `key` on; `key` is a slice of `text`.
fn text_after_key<'a>(text: &'a str, key: &str) -> &'a str {
    const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
    let quote = (key.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize) + key.len();
    let rest = text.get(quote + 1..).unwrap_or_default().trim_start_matches(SPACE);
    rest.strip_prefix(':').unwrap_or_default().trim_start_matches(SPACE)
}

#[cfg(test)]
mod tests;
