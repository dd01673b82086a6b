//! The findings of a review: the final message of the agent, parsed leniently.
//!
//! Not every agent has an output schema, and some wrap JSON in prose or name the keys differently. A message
//! without findings that can be read stays a text, with a warning.

use crate::output::prelude::*;

/// More are not read.
const MAX_FINDINGS: usize = 200;
/// In prose, so many brackets may come before the JSON.
const MAX_BRACKETS: usize = 64;
/// A longer text of a finding is shortened.
const MAX_TEXT_CHARS: usize = 4_000;
const SEVERITIES: [&str; 3] = ["error", "warning", "note"];

/// A problem that a reviewer found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Relative to the directory of the task; null if it concerns no single file.
    pub file: Option<String>,
    pub line: Option<u64>,
    #[schemars(extend("enum" = SEVERITIES))]
    pub severity: &'static str,
    pub title: String,
    pub detail: String,
}

pub fn message_schema() -> Value {
    let text = json!({"type": "string"});
    let finding = json!({
        "type": "object",
        "properties": {
            "file": {"type": ["string", "null"]},
            "line": {"type": ["integer", "null"]},
            "severity": {"type": "string", "enum": SEVERITIES},
            "title": text,
            "detail": text,
        },
        "required": ["file", "line", "severity", "title", "detail"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {"findings": {"type": "array", "items": finding}},
        "required": ["findings"],
        "additionalProperties": false,
    })
}

/// The findings of a review. `None` if the task is no review, or if its message cannot be read.
pub fn of_task(task: &Task, record: Option<&Record>) -> Option<Vec<Finding>> {
    if !is_review(task) {
        return None;
    }
    parse(&record?.report.final_message.as_ref()?.text)
}

fn is_review(task: &Task) -> bool {
    task.input.get("review") == Some(&Value::Bool(true))
}

pub fn warning(task: &Task, record: Option<&Record>) -> Option<Warning> {
    let is_unreadable = is_review(task) && task.state == State::Completed && of_task(task, record).is_none();
    is_unreadable.then(|| {
        Warning::new(
            WarningCode::FindingsUnreadable,
            "the reviewer did not answer with findings in the requested format; its final message is shown as text",
        )
    })
}

/// The findings in a message: the message itself, a fenced block, or the first JSON value in it that has
/// findings.
fn parse(message: &str) -> Option<Vec<Finding>> {
    let starts = message.char_indices().filter(|(_, character)| matches!(character, '{' | '['));
    starts.take(MAX_BRACKETS).find_map(|(at, _)| findings_at(&message[at..]))
}

fn findings_at(text: &str) -> Option<Vec<Finding>> {
    let value = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
    let items = match &value {
        Value::Array(items) => items,
        other => other.get("findings")?.as_array()?,
    };
    let found: Vec<Finding> = items.iter().take(MAX_FINDINGS).filter_map(finding).collect();
    (items.is_empty() || !found.is_empty()).then_some(found)
}

fn finding(item: &Value) -> Option<Finding> {
    let text = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| item.get(key)?.as_str()).map(str::trim)?;
        let short: String = found.chars().take(MAX_TEXT_CHARS).collect();
        (!short.is_empty()).then_some(short)
    };
    let title = text(&["title", "message", "summary"]);
    let detail = text(&["detail", "details", "description", "explanation", "body"]);
    let title =
        title.or_else(|| detail.as_deref().and_then(|detail| detail.lines().next()).map(str::to_owned))?;
    let severity = text(&["severity", "level", "priority"]).unwrap_or_default();
    Some(Finding {
        file: text(&["file", "path", "filename"]),
        line: ["line", "line_number", "start_line"].iter().find_map(|key| line(item.get(key)?)),
        severity: severity_of(&severity.to_lowercase()),
        title,
        detail: detail.unwrap_or_default(),
    })
}

/// A number, or a text that begins with one: `12-15`.
fn line(value: &Value) -> Option<u64> {
    let digits =
        |text: &str| text.trim_start_matches('L').split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    value.as_u64().or_else(|| digits(value.as_str()?)).filter(|line| *line > 0)
}

fn severity_of(name: &str) -> &'static str {
    match name {
        "error" | "critical" | "blocker" | "high" | "bug" | "p0" | "p1" => "error",
        "warning" | "warn" | "major" | "medium" | "p2" => "warning",
        _ => "note",
    }
}

pub fn append_to(document: Document, findings: &[Finding]) -> Document {
    if findings.is_empty() {
        return document.text("The reviewer found no problems.");
    }
    let row = |finding: &Finding| {
        let file = cell(finding.file.as_ref());
        let place = match finding.line {
            Some(line) => format!("{file}:{line}"),
            None => file,
        };
        vec![finding.severity.to_owned(), place, finding.title.clone()]
    };
    document.table(&["severity", "place", "finding"], findings.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(message: &str) -> Option<Vec<(&'static str, Option<u64>, String)>> {
        let found = parse(message)?;
        Some(found.into_iter().map(|finding| (finding.severity, finding.line, finding.title)).collect())
    }

    #[test]
    fn findings_are_found_in_plain_fenced_and_surrounded_json() {
        let exact = r#"{"findings":[{"file":"a.rs","line":3,"severity":"error","title":"t","detail":"d"}]}"#;
        let fenced = format!("Here [as requested]:\n```json\n{exact}\n```\nDone {{really}}.");
        for message in [exact, &fenced, &format!("  {exact} trailing")] {
            assert_eq!(titles(message), Some(vec![("error", Some(3), "t".to_owned())]), "{message}");
        }
        let item = &parse(exact).unwrap()[0];
        assert_eq!((item.file.as_deref(), item.detail.as_str()), (Some("a.rs"), "d"));
        assert!(jsonschema::is_valid(&message_schema(), &serde_json::from_str(exact).unwrap()));
    }

    #[test]
    fn other_names_and_forms_of_values_are_understood() {
        let message = r#"[{"path":"a","line":"12-15","level":"High","message":"m"},
            {"severity":"nit","description":"first line\nmore"},{"severity":"warning"},7]"#;
        let expected = vec![("error", Some(12), "m".to_owned()), ("note", None, "first line".to_owned())];
        assert_eq!(titles(message), Some(expected));
    }

    #[test]
    fn no_problems_are_findings_and_prose_is_not() {
        assert_eq!(parse(r#"{"findings":[]}"#), Some(Vec::new()));
        assert_eq!(parse("I found nothing {of note}."), None);
        assert_eq!(parse(r#"{"result":"ok"}"#), None);
    }
}
