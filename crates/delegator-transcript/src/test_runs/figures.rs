//! Reading figures out of lines: `3 passed, 1 failed`, `total: 4, failed: 1`.

/// The number a text begins with, and what follows it.
pub(super) fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// `N words` pieces between separators; `None` if a piece is something else.
pub(super) fn counted<'t>(text: &'t str, separator: char) -> Option<Vec<(u64, &'t str)>> {
    let piece = |piece: &'t str| {
        let (count, word) = leading(piece.trim())?;
        word.starts_with(' ').then(|| (count, word.trim()))
    };
    text.split(separator).map(piece).collect()
}

/// `name: N` (or `name=N`) pieces between separators, names in lower case; other pieces are left out.
pub(super) fn named(text: &str, separator: char, mark: char) -> Vec<(String, u64)> {
    let piece = |piece: &str| {
        let (name, count) = piece.split_once(mark)?;
        let (count, rest) = leading(count.trim())?;
        let is_whole = rest.trim_end_matches(['.', ')']).is_empty();
        is_whole.then(|| (name.trim().to_ascii_lowercase(), count))
    };
    text.split(separator).filter_map(piece).collect()
}

/// The figure of one of these names.
pub(super) fn figure(figures: &[(String, u64)], name: &str) -> Option<u64> {
    figures.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_or_refused() {
        assert_eq!(counted("3 passed, 1 failed", ','), Some(vec![(3, "passed"), (1, "failed")]));
        assert_eq!(counted("3 passed, and more", ','), None);
        assert_eq!(counted("99999999999999999999999 passed", ','), None);
        assert_eq!(
            named("Total: 4, Failed:  1, Time: 3 s", ',', ':'),
            [("total".to_owned(), 4), ("failed".to_owned(), 1)]
        );
        assert_eq!(figure(&named("failures=3, errors=1)", ',', '='), "errors"), Some(1));
    }
}
