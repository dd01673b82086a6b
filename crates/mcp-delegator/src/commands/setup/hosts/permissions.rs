//! The rule in Claude Code's `settings.json` that lets it call the tools of this server without asking.
//!
//! Pure functions from text to text, as in `json_entry`. The rule is the one for all tools of a server; rules
//! for single tools are the user's.

use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::{Value, json};

use crate::commands::setup::hosts::json_entry::{Syntax, cannot_edit, verified, with_comments};
use crate::commands::setup::hosts::{Edit, EntryError};

const GROUP: &str = "permissions";
const LIST: &str = "allow";
const RULE: &str = "mcp__mcp-delegator";

/// Claude Code ignores a file with comments (measured with 2.1.325).
const SYNTAX: Syntax = Syntax::Json;

pub fn sample() -> String {
    serde_json::to_string_pretty(&json!({GROUP: {LIST: [RULE]}})).unwrap_or_default() + "\n"
}

pub fn is_allowed(text: &str) -> Result<bool, EntryError> {
    Ok(!text.trim().is_empty() && has_rule(&SYNTAX.parse(text)?))
}

fn has_rule(settings: &Value) -> bool {
    let rules = settings[GROUP][LIST].as_array();
    rules.into_iter().flatten().any(|rule| *rule == RULE || *rule == format!("{RULE}__*"))
}

pub fn allow(text: &str) -> Result<Edit, EntryError> {
    if text.trim().is_empty() {
        return Ok(Edit::Changed(sample()));
    }
    let mut expected = SYNTAX.parse(text)?;
    if has_rule(&expected) {
        return Ok(Edit::Unchanged);
    }
    let settings = expected.as_object_mut();
    let group = settings.map(|settings| settings.entry(GROUP).or_insert_with(|| json!({})));
    let group = group.and_then(Value::as_object_mut);
    let rules = group.map(|group| group.entry(LIST).or_insert_with(|| json!([])));
    let Some(rules) = rules.and_then(Value::as_array_mut) else {
        return Err(cannot_edit(format!("{GROUP}.{LIST} is not a list")));
    };
    rules.push(RULE.into());
    let edited = CstRootNode::parse(text, &with_comments()).ok().and_then(|root| {
        let group = root.object_value()?.object_value_or_create(GROUP)?;
        group.array_value_or_create(LIST)?.append(CstInputValue::String(RULE.to_owned()));
        Some(root.to_string())
    });
    verified(edited, SYNTAX, &expected, "the rule cannot be added without rewriting the file")
}

/// Removes the rule that [`allow`] adds; the list stays, even if it is empty.
pub fn disallow(text: &str) -> Result<Edit, EntryError> {
    if text.trim().is_empty() {
        return Ok(Edit::Unchanged);
    }
    let before = SYNTAX.parse(text)?;
    let mut expected = before.clone();
    let rules = expected.get_mut(GROUP).and_then(|group| group.get_mut(LIST));
    if let Some(rules) = rules.and_then(Value::as_array_mut) {
        rules.retain(|rule| rule != RULE);
    }
    if expected == before {
        return Ok(Edit::Unchanged);
    }
    let edited = CstRootNode::parse(text, &with_comments()).ok().and_then(|root| {
        let rules = root.object_value()?.object_value(GROUP)?.array_value(LIST)?.elements();
        let is_ours =
            |text: &jsonc_parser::cst::CstStringLit| text.decoded_value().is_ok_and(|it| it == RULE);
        rules.into_iter().filter_map(|rule| rule.as_string_lit().filter(is_ours)).for_each(|it| it.remove());
        Some(root.to_string())
    });
    verified(edited, SYNTAX, &expected, "the rule cannot be removed without rewriting the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(edit: Result<Edit, EntryError>) -> String {
        match edit {
            Ok(Edit::Changed(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_rule_is_added_once_and_removed_again() {
        for (before, after, removed) in [
            (
                "{\n  \"model\":  \"opus\"\n}\n",
                "{\n  \"model\":  \"opus\",\n  \"permissions\": {\n    \"allow\": [\"mcp__mcp-delegator\"]\n  }\n}\n",
                "{\n  \"model\":  \"opus\",\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n",
            ),
            (
                "{\n    \"permissions\": {\n        \"allow\": [\n            \"Bash(ls:*)\"\n        ],\n        \"deny\": []\n    }\n}\n",
                "{\n    \"permissions\": {\n        \"allow\": [\n            \"Bash(ls:*)\",\n            \"mcp__mcp-delegator\"\n        ],\n        \"deny\": []\n    }\n}\n",
                "{\n    \"permissions\": {\n        \"allow\": [\n            \"Bash(ls:*)\"\n        ],\n        \"deny\": []\n    }\n}\n",
            ),
            (
                "{\"permissions\":{\"allow\":[\"mcp__mcp-delegator___codex_local_wait\"]}}",
                "{\"permissions\":{\"allow\":[\"mcp__mcp-delegator___codex_local_wait\", \"mcp__mcp-delegator\"]}}",
                "{\"permissions\":{\"allow\":[\"mcp__mcp-delegator___codex_local_wait\"]}}",
            ),
        ] {
            assert_eq!(disallow(before), Ok(Edit::Unchanged));
            let text = changed(allow(before));
            assert_eq!(text, after);
            assert_eq!((is_allowed(before), is_allowed(&text)), (Ok(false), Ok(true)));
            assert_eq!(allow(&text), Ok(Edit::Unchanged));
            assert_eq!(changed(disallow(&text)), removed);
        }
        assert_eq!(changed(allow("")), sample());
        assert_eq!(allow("{\"permissions\": {\"allow\": [\"mcp__mcp-delegator__*\"]}}"), Ok(Edit::Unchanged));
    }

    #[test]
    fn a_file_that_cannot_be_edited_is_refused() {
        for text in
            ["[]", "{ // mine\n}", "{\"permissions\": []}", "{\"permissions\": {\"allow\": \"all\"}}", "{"]
        {
            assert!(allow(text).is_err(), "{text}");
        }
        for text in ["[]", "{}", "{\"permissions\": []}"] {
            assert_eq!(disallow(text), Ok(Edit::Unchanged), "{text}");
        }
    }
}
