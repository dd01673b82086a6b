//! Finds the calls that the program suggests in its output: commands to copy into a shell, and calls of tools.
//!
//! A command counts only where a reader would copy it: alone, quoted, or behind a colon. Running text that merely names the
//! program does not count, nor does a command with a placeholder.

/// Keys of our JSON whose text comes from agents, callers or files.
const FOREIGN_KEYS: [&str; 12] = [
    "output",
    "events",
    "final_message",
    "stdout",
    "stderr",
    "partial_results",
    "agent_message",
    "raw",
    "verification",
    "examples",
    "text",
    "usage",
];

const PROGRAM: &str = "mcp-delegator ";

/// The suggested commands in a text.
pub fn commands_in(text: &str) -> Vec<String> {
    text.lines().flat_map(commands_in_line).filter(|command| !has_placeholder(command)).collect()
}

/// `T-local-…`, `[OPTIONS]`, `<FILE>` or `COMMAND`, or a part of a command of several lines. A completion script calls the
/// program with ` -- `.
fn has_placeholder(command: &str) -> bool {
    let is_name = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_part = command.ends_with('\\');
    is_part
        || command.contains(['…', '[', '<'])
        || command.contains(" -- ")
        || command.split(' ').any(is_name)
}

/// The suggested commands in an answer.
pub fn commands_in_answer(answer: &serde_json::Value) -> Vec<String> {
    match answer {
        serde_json::Value::String(text) => commands_in(text),
        serde_json::Value::Array(items) => items.iter().flat_map(commands_in_answer).collect(),
        serde_json::Value::Object(object) => object
            .iter()
            .filter(|(key, _)| !FOREIGN_KEYS.contains(&key.as_str()))
            .flat_map(|(_, value)| commands_in_answer(value))
            .collect(),
        _ => Vec::new(),
    }
}

/// Keys of our JSON whose text is a hint.
const HINT_KEYS: [&str; 2] = ["suggestion", "suggestions"];

/// The hints of an answer.
pub fn hints_in_answer(answer: &serde_json::Value) -> Vec<&str> {
    match answer {
        serde_json::Value::Array(items) => items.iter().flat_map(hints_in_answer).collect(),
        serde_json::Value::Object(object) => object
            .iter()
            .filter(|(key, _)| !FOREIGN_KEYS.contains(&key.as_str()))
            .flat_map(|(key, value)| match HINT_KEYS.contains(&key.as_str()) {
                true => texts_in(value),
                false => hints_in_answer(value),
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn texts_in(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::String(text) => vec![text],
        serde_json::Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        _ => Vec::new(),
    }
}

/// The hints in a text for people.
pub fn hints_in(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("hint: ")).collect()
}

/// Why a hint on the command line cannot be followed as it is written: it has the name of a tool's input instead of a
/// flag, or a marker that should have become a name. A hint about the configuration names keys.
pub fn misnamed_inputs<'a>(hint: &'a str, inputs: &[String]) -> Vec<&'a str> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = hint.split(|letter| !is_name(letter)).filter(|_| !hint.contains("config"));
    let named = words.filter(|word| inputs.iter().any(|input| input == word));
    named.chain(["{input:", "{set:", "{call}"].into_iter().filter(|marker| hint.contains(marker))).collect()
}

fn commands_in_line(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    // A line of a completion script.
    if line.trim_start().starts_with(['_', '\'', '"', '&', '(']) {
        return found;
    }
    for (at, _) in line.match_indices(PROGRAM) {
        let (before, rest) = line.split_at(at);
        let end = match before.chars().next_back() {
            None => Some(rest.len()),
            Some('`') => rest.find('`'),
            Some('\'') => closing_quote(rest),
            _ if before.ends_with(": ") || before.trim().is_empty() => Some(rest.len()),
            _ => None,
        };
        let command = end.map(|end| without_shell_syntax(&rest[..end]).to_owned());
        found.extend(command.filter(|command| !is_version(command)));
    }
    found
}

/// The command without a redirection, a pipe or a comment behind it.
fn without_shell_syntax(command: &str) -> &str {
    let ends = [" < ", " > ", " | ", " #"].iter().filter_map(|syntax| command.find(syntax));
    command[..ends.min().unwrap_or(command.len())].trim_end()
}

/// `mcp-delegator 3.6.0` is the program's version, not a command.
fn is_version(command: &str) -> bool {
    command[PROGRAM.len().min(command.len())..].starts_with(|first: char| first.is_ascii_digit())
}

/// The quote that ends a quoted command: a space or punctuation follows, and the quotes inside are in pairs.
fn closing_quote(text: &str) -> Option<usize> {
    let quotes: Vec<usize> = text.match_indices('\'').map(|(at, _)| at).collect();
    let ends = |at: usize| !text[at + 1..].starts_with(|next: char| next.is_alphanumeric() || next == '-');
    quotes.iter().enumerate().find(|(inside, at)| inside % 2 == 0 && ends(**at)).map(|(_, at)| *at)
}

/// Names and arguments of the suggested tool calls in a text, such as `_codex_local_wait {"task_id":"T-…"}`.
pub fn tool_calls_in(text: &str) -> Vec<(String, serde_json::Value)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("_codex_") {
        let name: String = text[at..]
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
            .collect();
        let Some(rest) = text[at + name.len()..].strip_prefix(' ') else { continue };
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        if let (true, Some(Ok(arguments))) = (rest.starts_with('{'), values.next()) {
            found.push((name, arguments));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_found_where_a_reader_copies_them() {
        let text = "Next: mcp-delegator local wait T-1\nhint: Run 'mcp-delegator local status' to list the tasks.\n\
                    Continue: mcp-delegator local resume 'Go on.' --task-id T-1\n- use `mcp-delegator doctor`.\n\
                    the mcp-delegator server starts\nmcp-delegator logs T-local-…\nmcp-delegator 3.6.0\n\
                    mcp-delegator events summarize - < session.jsonl  # from a file";
        let expected = [
            "mcp-delegator local wait T-1",
            "mcp-delegator local status",
            "mcp-delegator local resume 'Go on.' --task-id T-1",
            "mcp-delegator doctor",
            "mcp-delegator events summarize -",
        ];
        assert_eq!(commands_in(text), expected);
        let answer = json!({"error": {"suggestion": text}, "data": {"stdout": "mcp-delegator nonsense"}});
        assert_eq!(commands_in_answer(&answer), expected);
    }

    #[test]
    fn a_hint_with_the_input_of_a_tool_is_found() {
        let answer = json!({"error": {"suggestion": "a", "problems": [{"suggestion": "b"}]}, "output": {"suggestion": "c"},
                            "metadata": {"suggestions": ["d"]}});
        let mut hints = hints_in_answer(&answer);
        hints.sort_unstable();
        assert_eq!(hints, ["a", "b", "d"]);
        assert_eq!(hints_in("error: x\nhint: y\n"), ["y"]);
        let inputs = ["dry_run".to_owned()];
        assert_eq!(misnamed_inputs("Give --dry-run.", &inputs), Vec::<&str>::new());
        assert_eq!(misnamed_inputs("Set dry_run to true.", &inputs), ["dry_run"]);
        assert_eq!(misnamed_inputs("Then {set:all}.", &inputs), ["{set:"]);
    }

    #[test]
    fn tool_calls_are_found_with_their_arguments() {
        let text =
            r#"Next: `_codex_local_wait {"task_id":"T-1"}` or _codex_local_status, see _codex_local_run."#;
        assert_eq!(tool_calls_in(text), [("_codex_local_wait".to_owned(), json!({"task_id": "T-1"}))]);
    }
}
