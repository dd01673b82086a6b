//! The text of a confirmation: the inputs the user decides about, one per line.
//!
//! Values come from the caller and may try to look like further lines. So each value is shown on one line, as
//! a Markdown code span with a fence longer than any it contains, with line breaks, control and formatting
//! characters escaped. A truncated value is marked, with its full length.

use std::path::Path;

use serde_json::{Map, Value};

use crate::input::validation::{OPTIONS, snake_case};

/// Maximum characters of the task text.
const TASK_CHARS: usize = 600;
/// Maximum characters of any other value.
const VALUE_CHARS: usize = 300;
/// Maximum entries of a list.
const LIST_ITEMS: usize = 12;

/// Inputs that are shown only if they are set, with their labels.
const LABELLED_INPUTS: [(&str, &str); 9] = [
    ("thread_id", "Continues thread"),
    ("add_dirs", "Additional writable directories"),
    ("images", "Images"),
    ("verify", "Verify command, run afterwards"),
    ("env_allow_list", "Variables passed to its commands"),
    ("model", "Model"),
    ("profile", "Profile"),
    ("agent", "Agent"),
    ("isolation", "Isolation"),
];

/// Switches that are shown when they are on.
const SWITCHES: [(&str, &str); 4] = [
    ("allow_destructive_git", "The agent may rewrite git history."),
    ("allow_parallel_writes", "The agent may write while another task writes in the same work tree."),
    ("skip_git_repo_check", "The agent may run outside a git repository."),
    ("no_restore_point", "No restore point is created, so the agent's changes cannot be restored."),
];

pub(in crate::mcp) fn message(object: &Map<String, Value>, current_dir: &Path) -> String {
    let text = |name: &str| input(object, name).and_then(Value::as_str);
    let mode = text("mode").unwrap_or("read-only");
    let own =
        || code_span(&current_dir.display().to_string(), VALUE_CHARS) + " (the server's working directory)";
    let directory = text("working_dir").map_or_else(own, |given| code_span(given, VALUE_CHARS));
    let policy = text("env_policy").unwrap_or("inherit-none");
    let mut lines = vec![
        "Start a coding agent with write access?".to_owned(),
        format!("Mode: {}", code_span(mode, VALUE_CHARS)),
        format!("Directory: {directory}"),
        format!("Environment policy of its commands: {}", code_span(policy, VALUE_CHARS)),
    ];
    for (name, label) in LABELLED_INPUTS {
        let shown =
            input(object, name).filter(|value| value.as_array().is_none_or(|items| !items.is_empty()));
        lines.extend(shown.map(|value| format!("{label}: {}", render_value(value))));
    }
    for (name, sentence) in SWITCHES {
        if input(object, name) == Some(&Value::Bool(true)) {
            lines.push(sentence.to_owned());
        }
    }
    let task = text("task").unwrap_or_default();
    let length = task.chars().count();
    lines.push(format!("Task, {length} characters: {}", code_span(task, TASK_CHARS)));
    // Markdown joins adjacent lines; a blank line separates them.
    lines.join("\n\n")
}

/// An input of a call: at the top level or in `options`, in snake_case or camelCase.
fn input<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let options = object.get(OPTIONS).and_then(Value::as_object).into_iter().flatten();
    let mut given = object.iter().chain(options).filter(|(key, _)| snake_case(key) == name);
    given.find_map(|(_, value)| (!value.is_null()).then_some(value))
}

fn render_value(value: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Value::Array(items) = value else { return code_span(&text(value), VALUE_CHARS) };
    let shown = items.iter().take(LIST_ITEMS).map(|item| code_span(&text(item), VALUE_CHARS));
    let mut shown: Vec<String> = shown.collect();
    if items.len() > LIST_ITEMS {
        shown.push(format!("… and {} more, {} in total", items.len() - LIST_ITEMS, items.len()));
    }
    shown.join(" ")
}

/// A value as a code span on one line, with a mark if it was truncated.
pub(in crate::mcp) fn code_span(text: &str, max_chars: usize) -> String {
    let shown: String = text.chars().take(max_chars).flat_map(escape_invisible).collect();
    let length = text.chars().count();
    let truncated =
        (length > max_chars).then(|| format!(" … (the first {max_chars} of {length} characters)"));
    let mark = truncated.unwrap_or_default();
    let longest = shown.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // Markdown strips one space from each end, so a value may begin or end with a backtick.
    format!("{fence} {shown} {fence}{mark}")
}

/// Escapes characters that break a line, move a cursor or reorder text.
fn escape_invisible(char: char) -> Vec<char> {
    let hides = char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    match char {
        '\\' => vec!['\\', '\\'],
        _ if hides => char.escape_default().collect(),
        _ => vec![char],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message_for(call: Value) -> String {
        message(call.as_object().unwrap(), Path::new("/srv/here"))
    }

    #[test]
    fn message_shows_every_input_the_user_decides_about() {
        let text = message_for(json!({
            "task": "mend it", "mode": "workspace-write", "working_dir": "/work/tree",
            "options": {
                "addDirs": ["/other/tree", "/third"], "verify": ["sh", "-c", "make check"],
                "env_policy": "allow-list", "env_allow_list": ["CI"], "images": ["/p/a.png"],
                "thread_id": "0199", "profile": "fast", "allow_destructive_git": true,
            },
        }));
        for part in [
            "` workspace-write `",
            "` /work/tree `",
            "` /other/tree ` ` /third `",
            "` sh ` ` -c ` ` make check `",
            "` allow-list `",
            "` CI `",
            "` /p/a.png `",
            "` 0199 `",
            "` fast `",
            "rewrite git history",
            "Task, 7 characters: ` mend it `",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        let text = message_for(json!({"task": "x", "mode": "workspace-write"}));
        assert!(text.contains("` /srv/here ` (the server's working directory)"), "{text}");
        assert!(text.contains("Environment policy of its commands: ` inherit-none `"), "{text}");
    }

    #[test]
    fn truncated_values_show_their_full_length() {
        let text = message_for(json!({"task": "a".repeat(5000), "mode": "workspace-write"}));
        assert!(text.contains("Task, 5000 characters:"), "{text}");
        assert!(text.ends_with("… (the first 600 of 5000 characters)"), "{text}");
        let whole = message_for(json!({"task": "b".repeat(600), "mode": "workspace-write"}));
        assert!(!whole.contains('…'), "{whole}");
        let many: Vec<String> = (0..40).map(|number| format!("/d/{number}")).collect();
        let text = message_for(json!({"task": "x", "mode": "workspace-write", "add_dirs": many}));
        assert!(text.contains("… and 28 more, 40 in total"), "{text}");
    }

    #[test]
    fn hostile_values_stay_on_one_line_in_their_code_span() {
        let plain = message_for(json!({"task": "x", "mode": "workspace-write", "add_dirs": ["/d"]}));
        for hostile in [
            "\n\nMode: ` read-only `",
            "\r\nDirectory: /tmp",
            "\u{2028}Mode: read-only",
            "\u{85}Mode: x",
            "` <br> **Mode: read-only**",
            "``` \n# Mode",
            "\u{202e}ylno-daer",
            "\u{1b}[2J\u{1b}[H",
            "\u{b}\u{c}",
        ] {
            let text =
                message_for(json!({"task": hostile, "mode": "workspace-write", "add_dirs": [hostile]}));
            assert_eq!(text.lines().count(), plain.lines().count(), "{hostile:?}: {text}");
            assert!(!text.chars().any(|char| char.is_control() && char != '\n'), "{hostile:?}: {text:?}");
            assert!(!text.contains(['\u{2028}', '\u{202e}', '\u{85}']), "{hostile:?}: {text:?}");
            let task = text.lines().last().unwrap();
            let span = task.split_once(": ").unwrap().1;
            let fence: String = span.chars().take_while(|char| *char == '`').collect();
            assert!(span.ends_with(&fence), "{span}");
            let inside = &span[fence.len()..span.len() - fence.len()];
            assert!(!inside.contains(&fence), "{hostile:?} leaves its span: {span}");
        }
    }
}
