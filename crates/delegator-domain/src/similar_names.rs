//! Finds the known names most similar to a misspelled one: the only rule behind every "did you mean".
//!
//! The allowed edit distance grows with the length of the typed name, so that a suggestion is probably right.
//! A typed prefix of a known name, and a whole word of it, also count as similar.

const MAX_TYPED_BYTES: usize = 128;

pub fn near<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // A longer input is no misspelling, and the comparison costs the product of both lengths.
    if typed.len() > MAX_TYPED_BYTES {
        return Vec::new();
    }
    let normalized = normalize(typed);
    if normalized.is_empty() {
        return Vec::new();
    }
    let allowed = match normalized.chars().count() {
        0..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    let mut matches: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let candidate = normalize(name);
            let distance = strsim::damerau_levenshtein(&normalized, &candidate);
            let is_prefix = normalized.len() >= 3 && candidate.starts_with(&normalized);
            // The parts of an id are no words.
            let is_text = normalized.len() >= 3 && !normalized.contains(|c: char| c.is_ascii_digit());
            let is_word = is_text && candidate.split('-').any(|word| word == normalized);
            // The first letter of a short word is rarely wrong: `ran` means `run` and not `man`.
            let is_long = normalized.chars().count() > 4;
            let begins_alike = is_long || shares_beginning(&normalized, &candidate);
            ((distance <= allowed && begins_alike) || is_prefix || is_word).then_some((distance, name))
        })
        .collect();
    matches.sort();
    matches.dedup();
    matches.into_iter().map(|(_, name)| name).collect()
}

/// The most similar name; `None` if no name is similar enough or two are equally similar.
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

/// Whether the names differ by at most one letter: one more, one less, another one, or two swapped.
pub fn is_one_letter_off(typed: &str, known: &str) -> bool {
    typed.len() <= MAX_TYPED_BYTES && strsim::damerau_levenshtein(&normalize(typed), &normalize(known)) <= 1
}

/// Whether the first letters are the same, or the first two are only in another order.
fn shares_beginning(typed: &str, known: &str) -> bool {
    let [typed, known] = [typed, known].map(|name| {
        let mut letters = name.chars();
        (letters.next(), letters.next())
    });
    typed.0 == known.0 || (typed.0 == known.1 && typed.1 == known.0)
}

/// Case, leading dashes and the choice of separator do not count as differences.
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
    fn a_whole_word_finds_the_name() {
        assert_eq!(nearest("mode", KNOWN), Some("max_mode"));
        assert_eq!(nearest("mod", KNOWN), None);
        assert_eq!(nearest("5505cb", ["01a1e2ed-5505cb"]), None);
    }

    #[test]
    fn nothing_near_suggests_nothing() {
        assert_eq!(nearest("teapot", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
        assert!(near("xy", KNOWN).is_empty());
    }

    #[test]
    fn a_name_given_twice_is_one_name() {
        assert_eq!(nearest("scheme", ["schema", "schema"]), Some("schema"));
    }

    #[test]
    fn equally_near_names_give_no_single_suggestion() {
        assert_eq!(nearest("cat", ["cab", "car"]), None);
        assert_eq!(near("cat", ["cab", "car"]), ["cab", "car"]);
    }

    #[test]
    fn short_words_must_be_almost_equal() {
        let known = ["man", "run", "wait", "exec", "env", "logs", "demo"];
        for (typed, expected) in [
            ("ran", Some("run")),
            ("urn", Some("run")),
            ("rn", Some("run")),
            ("wiat", Some("wait")),
            ("log", Some("logs")),
            ("run", Some("run")),
            ("fun", None),
            ("can", None),
            ("memo", None),
            ("edit", None),
        ] {
            assert_eq!(nearest(typed, known), expected, "{typed}");
        }
    }
}
