//! What changed within a line: the words that a deleted and an added line do not have in common. Pure.

/// A longer line is marked as a whole: comparing takes the product of the two lengths.
const MAX_WORDS: usize = 150;

/// A part of a line, and whether the other line lacks it.
pub(super) type Part<'a> = (&'a str, bool);

/// Letters and digits that belong together, or a single other character.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let end = if is_word(first) {
            rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// The parts of both lines; `None` if they have too little in common to be the same line.
pub(super) fn compare<'a>(old: &'a str, new: &'a str) -> Option<(Vec<Part<'a>>, Vec<Part<'a>>)> {
    let (old_words, new_words) = (words(old), words(new));
    if old_words.len() > MAX_WORDS || new_words.len() > MAX_WORDS {
        return None;
    }
    let common = common_words(&old_words, &new_words);
    let shared: usize = common.iter().map(|(at, _)| old_words[*at].trim().len()).sum();
    let length = |line: &str| line.split_whitespace().map(str::len).sum::<usize>();
    if 2 * shared < length(old).min(length(new)) {
        return None;
    }
    let (mut in_old, mut in_new) = (vec![false; old_words.len()], vec![false; new_words.len()]);
    for (at, other) in common {
        (in_old[at], in_new[other]) = (true, true);
    }
    Some((parts(old, &old_words, &in_old), parts(new, &new_words, &in_new)))
}

/// The places of the longest common sequence in both.
fn common_words(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let columns = new.len() + 1;
    let mut lengths = vec![0_u16; (old.len() + 1) * columns];
    for at in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            lengths[at * columns + other] = if old[at] == new[other] {
                lengths[(at + 1) * columns + other + 1] + 1
            } else {
                lengths[(at + 1) * columns + other].max(lengths[at * columns + other + 1])
            };
        }
    }
    let (mut at, mut other, mut found) = (0, 0, Vec::new());
    while at < old.len() && other < new.len() {
        if old[at] == new[other] {
            found.push((at, other));
            (at, other) = (at + 1, other + 1);
        } else if lengths[(at + 1) * columns + other] >= lengths[at * columns + other + 1] {
            at += 1;
        } else {
            other += 1;
        }
    }
    found
}

/// The line in parts that are all common or all changed.
fn parts<'a>(line: &'a str, words: &[&str], is_common: &[bool]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for (at, word) in words.iter().enumerate() {
        end += word.len();
        let is_last = is_common.get(at + 1).is_none_or(|next| *next != is_common[at]);
        if is_last {
            parts.push((&line[begin..end], !is_common[at]));
            begin = end;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(parts: &[Part<'_>]) -> String {
        parts
            .iter()
            .map(|(text, is_changed)| if *is_changed { format!("[{text}]") } else { (*text).to_owned() })
            .collect()
    }

    #[test]
    fn words_that_the_other_line_lacks_are_marked() {
        for (old, new, expected) in [
            ("let a = 1;", "let b = 1;", Some(("let [a] = 1;", "let [b] = 1;"))),
            ("f(a, b)", "f(x, b, c)", Some(("f([a], b)", "f([x], b[, c])"))),
            ("let count = 0;", "let total = 0;", Some(("let [count] = 0;", "let [total] = 0;"))),
            ("same", "same", Some(("same", "same"))),
            ("let äöü = 1;", "let äöü = 2;", Some(("let äöü = [1];", "let äöü = [2];"))),
            ("completely different", "other words here", None),
            ("", "", Some(("", ""))),
        ] {
            let found = compare(old, new).map(|(old, new)| (marked(&old), marked(&new)));
            let expected = expected.map(|(old, new): (&str, &str)| (old.to_owned(), new.to_owned()));
            assert_eq!(found, expected, "{old} / {new}");
        }
    }

    #[test]
    fn a_long_line_is_not_compared() {
        let long = "a ".repeat(MAX_WORDS);
        assert_eq!(compare(&long, &long), None);
    }
}
