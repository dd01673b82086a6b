//! Nearest known name: the one rule behind every "did you mean".
//!
//! A suggestion is only worth making when it is probably right, so the distance allowed grows with the
//! length of what was typed, and a name that merely begins like the typed word counts as near.

const MAX_TYPED_BYTES: usize = 128;

/// The known names near enough to `typed` to suggest, nearest first.
pub fn near<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // Nobody misspells a name into something many times as long, and comparing costs the product of the lengths.
    if typed.len() > MAX_TYPED_BYTES {
        return Vec::new();
    }
    let normalized = normalize(typed);
    if normalized.is_empty() {
        return Vec::new();
    }
    let allowed = match normalized.chars().count() {
        0..=2 => 1,
        3..=7 => 2,
        _ => 3,
    };
    let mut matches: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let candidate = normalize(name);
            let distance = strsim::damerau_levenshtein(&normalized, &candidate);
            let is_prefix = normalized.len() >= 3 && candidate.starts_with(&normalized);
            // Two short words of which nothing agrees are not alike, whatever the distance says.
            let shares_something = distance < normalized.chars().count().max(candidate.chars().count());
            ((distance <= allowed && shares_something) || is_prefix).then_some((distance, name))
        })
        .collect();
    matches.sort();
    matches.into_iter().map(|(_, name)| name).collect()
}

/// The one nearest name, if there is a name near enough and no other is equally near.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let normalized = normalize(typed);
    match near(typed, known).as_slice() {
        [] => None,
        [only] => Some(only),
        [first, second, ..] => {
            let distance = |name: &str| strsim::damerau_levenshtein(&normalized, &normalize(name));
            (distance(first) < distance(second)).then_some(*first)
        }
    }
}

/// Case and the choice of separator are never the point of a misspelling.
fn normalize(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{near, nearest};

    const KNOWN: [&str; 6] = ["manifest", "schema", "config", "completions", "max_concurrent", "max_mode"];

    #[test]
    fn a_misspelling_finds_the_nearest_name() {
        assert_eq!(nearest("manifst", KNOWN), Some("manifest"));
        assert_eq!(nearest("MAX-CONCURENT", KNOWN), Some("max_concurrent"));
        assert_eq!(nearest("shcema", KNOWN), Some("schema"));
    }

    #[test]
    fn a_prefix_finds_the_name() {
        assert_eq!(nearest("compl", KNOWN), Some("completions"));
    }

    #[test]
    fn nothing_near_suggests_nothing() {
        assert_eq!(nearest("teapot", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
        assert!(near("xy", KNOWN).is_empty());
    }

    #[test]
    fn equally_near_names_give_no_single_suggestion() {
        assert_eq!(nearest("cat", ["bat", "rat"]), None);
        assert_eq!(near("cat", ["bat", "rat"]), ["bat", "rat"]);
    }
}
