//! Shortens texts. A length is in characters where a person reads the text, and in bytes where memory is
//! bounded.

/// At most this many characters of a text, and an ellipsis if that is not all of it.
pub fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub fn first_line(text: &str, max_chars: usize) -> String {
    text.lines().next().unwrap_or_default().chars().take(max_chars).collect()
}

/// The last line that is not blank, at most this many characters of it.
pub fn last_line(text: &str, max_chars: usize) -> Option<String> {
    let last = text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(last.trim().chars().take(max_chars).collect())
}

/// At most this many bytes of the beginning of a text.
pub fn beginning(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// At most this many bytes of the end of a text.
pub fn end(text: &str, max_bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max_bytes))..]
}

/// A word for a command line that we print, quoted if a shell would read it differently.
pub fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,+%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole() {
        assert_eq!((shorten("äöü", 2), shorten("äöü", 3)), ("äö…".to_owned(), "äöü".to_owned()));
        assert_eq!((beginning("äöü", 3), end("äöü", 3), end("ä", 9)), ("ä", "ü", "ä"));
    }

    #[test]
    fn lines_are_found() {
        assert_eq!(first_line("one\ntwo", 2), "on");
        assert_eq!(last_line("one\n two \n\n", 9).as_deref(), Some("two"));
        assert_eq!((first_line("", 9), last_line("\n \n", 9)), (String::new(), None));
    }
}
