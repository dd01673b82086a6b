//! Parts of forms, and links that keep the query of the page.

use maud::{Markup, html};

use crate::mcp::pages::request::PageRequest;

/// A choice with nothing chosen by default.
pub(super) fn choice(
    name: &str,
    label: &str,
    chosen: Option<&str>,
    options: impl IntoIterator<Item = (String, String)>,
) -> Markup {
    html! {
        label {
            (label)
            select name=(name) {
                option value="" { "Any" }
                @for (value, text) in options {
                    option value=(value) selected[chosen == Some(value.as_str())] { (text) }
                }
            }
        }
    }
}

/// The address of this page with another value in its query.
pub(super) fn query_with(request: &PageRequest, name: &str, value: &str) -> String {
    let others = request.query.iter().filter(|(known, _)| known != name);
    let others = others.map(|(name, value)| (name.as_str(), value.as_str()));
    let own = (!value.is_empty()).then_some((name, value));
    let pairs: Vec<String> =
        others.chain(own).map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    format!("{}?{}", request.path, pairs.join("&"))
}

pub(super) fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}
