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

/// Counts with their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Figures(pub(super) Vec<(String, u64)>);

impl Figures {
    /// Parses `N words` parts between separators; `None` if a part has another form.
    pub(super) fn counted(text: &str, separator: char) -> Option<Self> {
        let piece = |piece: &str| {
            let (count, name) = leading_number(piece.trim())?;
            name.starts_with(' ').then(|| (name.trim().to_owned(), count))
        };
        text.split(separator).map(piece).collect::<Option<_>>().map(Self)
    }

    /// Parses `name: N` (or `name=N`) parts between separators, names in lower case; other parts are skipped.
    pub(super) fn named(text: &str, separator: char, mark: char) -> Self {
        let piece = |piece: &str| {
            let (name, count) = piece.split_once(mark)?;
            let (count, rest) = leading_number(count.trim())?;
            let is_whole = rest.trim_end_matches(['.', ')']).is_empty();
            is_whole.then(|| (name.trim().to_ascii_lowercase(), count))
        };
        Self(text.split(separator).filter_map(piece).collect())
    }

    fn of<'f>(&'f self, names: &'f [&str]) -> impl Iterator<Item = u64> + 'f {
        self.0.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, count)| *count)
    }

    /// The first count with one of these names.
    pub(super) fn find(&self, names: &[&str]) -> Option<u64> {
        self.of(names).next()
    }

    /// The sum of the counts with these names.
    pub(super) fn sum(&self, names: &[&str]) -> u64 {
        self.of(names).fold(0, u64::saturating_add)
    }

    /// Whether all names are allowed.
    pub(super) fn all(&self, is_allowed: impl Fn(&str) -> bool) -> bool {
        self.0.iter().all(|(name, _)| is_allowed(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_or_rejected() {
        let figures = |list: &[(&str, u64)]| Figures(list.iter().map(|(n, c)| ((*n).into(), *c)).collect());
        assert_eq!(
            Figures::counted("3 passed, 1 failed", ','),
            Some(figures(&[("passed", 3), ("failed", 1)]))
        );
        assert_eq!(Figures::counted("3 passed, and more", ','), None);
        assert_eq!(Figures::counted("99999999999999999999999 passed", ','), None);
        assert_eq!(
            Figures::named("Total: 4, Failed:  1, Time: 3 s", ',', ':'),
            figures(&[("total", 4), ("failed", 1)])
        );
        assert_eq!(Figures::named("failures=3, errors=1)", ',', '=').find(&["errors"]), Some(1));
    }
}
