//! Reads JSON objects without copying, for lines of which most values are never used.
//!
//! [`Object::read`] walks a text once, checks its grammar and stores every member as a borrowed, unparsed
//! [`Value`]. Typed access comes later and never fails: a value of another type counts as absent, and of a
//! repeated key the first usable value counts. A derived `Deserialize` would reject the line for each of
//! these, and for a number out of range, half a surrogate pair or a missing end;
//! `serde_json::value::RawValue` would do, but takes twice as long for small events.

mod scanner;
pub(crate) mod text;
pub(crate) mod unique;
pub(crate) mod write;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};
use smallvec::SmallVec;

use scanner::Scanner;
pub(crate) use scanner::is_json;
pub(crate) use text::Ending;
pub use text::Text;

/// Keys, still escaped, and values in their order. The keys of elements of an array are empty. Most objects
/// have few members, which take no allocation.
type Members<'a> = SmallVec<[(&'a str, Value<'a>); 6]>;

#[derive(Debug, Default)]
pub(crate) struct Object<'a> {
    members: Members<'a>,
    pub(crate) ending: Ending,
}

/// A value that was checked and not parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// Its JSON and, if it is a string, how many bytes longer its escapes are than their meaning.
    Whole(&'a str, usize),
    /// The beginning of the value in which a truncated text ends.
    Partial(&'a str),
}

impl<'a> Object<'a> {
    /// Reads an object or array, or what is available of a truncated one.
    pub(crate) fn read(text: &'a str) -> Self {
        Self::read_line(text, None)
    }

    /// Like `read`, but reads the first object in `item`, which is nearly the whole line, into `item` in the
    /// same pass.
    pub(crate) fn read_line(text: &'a str, item: Option<&mut Option<Self>>) -> Self {
        let mut object = Self::default();
        let mut scanner = Scanner::new(text);
        let read = object.read_members(&mut scanner, item).and_then(|()| scanner.end());
        object.ending = read.err().unwrap_or_default();
        object
    }

    /// Reads the members of an object or array; those that were read before an error remain.
    fn read_members(
        &mut self,
        scanner: &mut Scanner<'a>,
        mut item: Option<&mut Option<Self>>,
    ) -> Result<(), Ending> {
        let is_object = scanner.peek() == Some(b'{');
        let closing = if is_object { b'}' } else { b']' };
        scanner.take(if is_object { b'{' } else { b'[' })?;
        if scanner.peek() == Some(closing) {
            return scanner.take(closing);
        }
        loop {
            let key = if is_object { scanner.key()? } else { "" };
            let rest = scanner.rest();
            if key == "item"
                && rest.starts_with('{')
                && let Some(item) = item.take()
            {
                item.insert(Self::default()).read_members(scanner, None)?;
            } else {
                let skipped = scanner.skip();
                if let Ok(surplus) = skipped {
                    let length = rest.len() - scanner.remaining();
                    self.members.push((key, Value::Whole(rest.get(..length).unwrap_or_default(), surplus)));
                } else if is_object {
                    self.members.push((key, Value::Partial(rest)));
                }
                skipped?;
            }
            if scanner.peek() != Some(b',') {
                return scanner.take(closing);
            }
            scanner.take(b',')?;
        }
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

    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        self.first(&[key], Value::integer)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.first(&[key], Value::boolean) == Some(true)
    }

    pub(crate) fn has_text(&self, key: &str, text: &str) -> bool {
        self.text(key).is_some_and(|found| found == *text)
    }

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
    pub(crate) fn available(self) -> &'a str {
        let (Self::Whole(json, _) | Self::Partial(json)) = self;
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
            Self::Whole(_, surplus) => Text::Json(inside.strip_suffix('"')?, inside.len() - 1 - surplus),
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
            Self::Whole(json, _) if json != "null" => Some(json),
            Self::Whole(..) | Self::Partial(_) => None,
        }
    }

    /// A whole number. Beyond 64 bits it stays at the end of the range.
    pub(crate) fn integer(self) -> Option<i64> {
        let json = self.raw().filter(|json| json.starts_with(|c: char| c == '-' || c.is_ascii_digit()))?;
        // `as` saturates, which is what is wanted of 1e999.
        json.parse().ok().or_else(|| json.parse::<f64>().ok().map(|number| number as i64))
    }

    /// A whole number of 32 bits, such as an exit code.
    pub(crate) fn small_integer(self) -> Option<i32> {
        i32::try_from(self.integer()?).ok()
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        self.raw()?.parse().ok()
    }

    /// A variant of a derived enum, by its name.
    pub(crate) fn variant<T: DeserializeOwned>(self) -> Option<T> {
        let name = self.text()?;
        let name: StrDeserializer<'_, serde::de::value::Error> = name.simple()?.into_deserializer();
        T::deserialize(name).ok()
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

#[cfg(test)]
mod tests;
