//! The body of a model provider's error response. Codex passes some of them on unchanged as its error
//! message.
//!
//! Providers wrap the same facts differently: `{"error":{…}}`, `{"detail":{…}}`, `{"detail":"…"}`, or no
//! wrapper.

use serde_json::{Map, Value};

#[derive(Debug, Default, PartialEq)]
pub struct ErrorBody {
    /// `code` and `type`: names for programs.
    pub names: Vec<String>,
    pub message: Option<String>,
    pub reset: Option<ResetTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResetTime {
    /// Seconds from the response on.
    InSeconds(f64),
    /// Seconds since 1970.
    AtSecond(i64),
    /// A date in RFC 3339.
    AtDate(String),
}

impl ErrorBody {
    /// `None` if the text does not begin with a JSON object. Codex adds text behind it, such as the id of the
    /// request.
    pub fn parse(text: &str) -> Option<ErrorBody> {
        let root: Map<String, Value> = serde_json::Deserializer::from_str(text).into_iter().next()?.ok()?;
        let wrapped =
            ["error", "detail"].iter().find_map(|key| root.get(*key).filter(|value| !value.is_null()));
        Some(match wrapped {
            Some(Value::String(message)) => {
                ErrorBody { message: Some(message.clone()), ..ErrorBody::default() }
            }
            Some(Value::Object(fields)) => ErrorBody::from_fields(fields),
            _ => ErrorBody::from_fields(&root),
        })
    }

    fn from_fields(fields: &Map<String, Value>) -> ErrorBody {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let reset = match (fields.get("resets_in_seconds").and_then(Value::as_f64), fields.get("resets_at")) {
            (Some(seconds), _) => Some(ResetTime::InSeconds(seconds)),
            (None, Some(Value::String(date))) => Some(ResetTime::AtDate(date.clone())),
            (None, Some(second)) => second.as_i64().map(ResetTime::AtSecond),
            (None, None) => None,
        };
        let names = ["code", "type"].into_iter().filter_map(text).collect();
        ErrorBody { names, message: text("message"), reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_removed() {
        let parse =
            |text: &str| ErrorBody::parse(text).map(|body| (body.names.join(" "), body.message, body.reset));
        let message = |text: &str| Some(text.to_owned());
        let cases = [
            (
                r#"{"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}"#,
                Some(("c t".to_owned(), message("m"), None)),
            ),
            (r#" {"detail": "m"}"#, Some((String::new(), message("m"), None))),
            (r#"{"error": null, "message": "m", "code": 5}"#, Some((String::new(), message("m"), None))),
            (
                r#"{"error": {"type": "t", "resets_in_seconds": 90}}"#,
                Some(("t".to_owned(), None, Some(ResetTime::InSeconds(90.0)))),
            ),
            (
                r#"{"detail": {"code": "c", "resets_at": 1794808752}}"#,
                Some(("c".to_owned(), None, Some(ResetTime::AtSecond(1_794_808_752)))),
            ),
            (r#"{"error": {"code": "c"}}, request id: 1"#, Some(("c".to_owned(), None, None))),
            ("[1]", None),
            ("{cut", None),
            ("text", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
