//! Parses counts: `3 passed, 1 failed`, `total: 4, failed: 1`.

/// Splits a leading number off a text.
pub(super) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The text after `N) `.
pub(super) fn numbered(text: &str) -> Option<&str> {
    leading_number(text)?.1.strip_prefix(") ")
}

/// Parses `N words` parts between separators; `None` if a part has another form.
pub(super) fn parse_counts<'t>(text: &'t str, separator: char) -> Option<Vec<(u64, &'t str)>> {
    let piece = |piece: &'t str| {
        let (count, word) = leading_number(piece.trim())?;
        word.starts_with(' ').then(|| (count, word.trim()))
    };
    text.split(separator).map(piece).collect()
}

/// The first count of one of these words.
pub(super) fn find_count(counts: &[(u64, &str)], words: &[&str]) -> Option<u64> {
    counts.iter().find(|(_, word)| words.contains(word)).map(|(count, _)| *count)
}

/// The sum of the counts of these words.
pub(super) fn sum_counts(counts: &[(u64, &str)], words: &[&str]) -> u64 {
    let counts = counts.iter().filter(|(_, word)| words.contains(word));
    counts.fold(0, |sum, (count, _)| sum.saturating_add(*count))
}

/// Parses `name: N` (or `name=N`) parts between separators, names in lower case; other parts are skipped.
pub(super) fn parse_named_counts(text: &str, separator: char, mark: char) -> Vec<(String, u64)> {
    let piece = |piece: &str| {
        let (name, count) = piece.split_once(mark)?;
        let (count, rest) = leading_number(count.trim())?;
        let is_whole = rest.trim_end_matches(['.', ')']).is_empty();
        is_whole.then(|| (name.trim().to_ascii_lowercase(), count))
    };
    text.split(separator).filter_map(piece).collect()
}

/// The count with this name.
pub(super) fn count_of(figures: &[(String, u64)], name: &str) -> Option<u64> {
    figures.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_or_rejected() {
        assert_eq!(parse_counts("3 passed, 1 failed", ','), Some(vec![(3, "passed"), (1, "failed")]));
        assert_eq!(parse_counts("3 passed, and more", ','), None);
        assert_eq!(parse_counts("99999999999999999999999 passed", ','), None);
        assert_eq!(
            parse_named_counts("Total: 4, Failed:  1, Time: 3 s", ',', ':'),
            [("total".to_owned(), 4), ("failed".to_owned(), 1)]
        );
        assert_eq!(count_of(&parse_named_counts("failures=3, errors=1)", ',', '='), "errors"), Some(1));
    }
}
